import type { BulkAction, BulkResult } from '../letter/bulk-action.ts'
import type { LetterFilter } from '../letter/query.ts'
import { formatCounts, formatDone } from './bulk-format.ts'
import { followAction, type Until } from './bulk-progress.ts'
import {
  askConfirmation,
  describeOutcome,
  legalStates,
  type ActionOptions,
  type FilterAction,
  type LetterAction,
} from './action-description.ts'
import type { OpenedQueue } from './open.ts'
import { readPages } from './pages.ts'
import { formatCount, toJson } from './print.ts'
import { userName } from './user-name.ts'
import { terminal } from './terminal.ts'

/** Plans a bulk action, asks for confirmation, and runs it in this process. */
export async function actOnFilter(
  action: LetterAction,
  { name, options: planOptions = {}, until = 'acted' }: FilterAction,
  opened: OpenedQueue,
  given: LetterFilter,
  options: ActionOptions,
): Promise<void> {
  const { dlq, letters } = opened
  const filter = { ...given, state: legalStates(action, given) }
  if ((await letters.find({ ...filter, limit: 1 })).items.length === 0)
    return void (options.json || terminal.stdout.write('No letter matches.\n'))
  const plan = await dlq.plan(name, filter, { by: options.by ?? userName(), ...planOptions })
  if (!options.yes && !(await confirmPlan(opened, plan)))
    return void terminal.stdout.write('Nothing was changed.\n')
  const done = await followAction(opened, () => dlq.run(plan.id, plan.by), until)
  if (options.json) await printResults(opened, done)
  else terminal.stdout.write(formatSummary(action, done, until))
  const { failed, skipped } = done.progress
  if (failed + skipped > 0 || done.state === 'stopped') terminal.exitCode ??= 1
  if (options.json) return
  const note = await action.finalNote?.(opened, new Set(Object.keys(done.queues)))
  if (note !== undefined) terminal.stdout.write(`${note}\n`)
}

/** A plan that is not confirmed is cancelled. */
export async function confirmPlan(
  { dlq }: OpenedQueue,
  { id, by, action, count, states }: BulkAction,
): Promise<boolean> {
  let isConfirmed = false
  try {
    const what = `${formatCount(count, 'letter')} (${formatCounts(states)})`
    isConfirmed = await askConfirmation({ name: action }, what)
    return isConfirmed
  } finally {
    if (!isConfirmed) await dlq.cancel(id, by)
  }
}

function formatSummary(action: LetterAction, done: BulkAction, until: Until): string {
  const { succeeded, waiting, failed, skipped, indeterminate } = done.progress
  const isPlain = done.progress.pending + failed + skipped + indeterminate === 0
  if (until === 'finished' || !isPlain) return formatDone(done)
  const outcome = describeOutcome(action, { state: waiting > 0 ? 'pending' : 'resolved' })
  return `${formatCount(succeeded + waiting, 'letter')} ${outcome}.\n`
}

/** Letters that are read at once. Their ids must fit into the URL of a request. */
const pageLetters = 200

/** A line for each letter, in the order in which the action came to it. */
async function printResults({ dlq, letters }: OpenedQueue, { id }: BulkAction): Promise<void> {
  for await (const results of readPages((from) =>
    dlq.results(id, { limit: pageLetters, ...from }),
  )) {
    const ids = results.map((result) => result.id)
    const { items } = await letters.find({ ids, limit: ids.length })
    const found = new Map(items.map((letter) => [letter.id, letter]))
    for (const result of results) {
      const { queue, state } = found.get(result.id) ?? {}
      terminal.stdout.write(`${toJson({ ...toLine(result), queue, state })}\n`)
    }
  }
}

function toLine({ id, outcome, runs, error }: BulkResult): object {
  const isOk = outcome === 'succeeded' || outcome === 'waiting'
  return { id, ok: isOk, ...(isOk ? {} : { outcome, message: error }), runs }
}
