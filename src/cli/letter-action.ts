import type { Command } from 'commander'
import { RedriveError } from '../errors.ts'
import type { DeadLetter, State } from '../letter/letter.ts'
import { moveTable } from '../letter/move-table.ts'
import { maxLimit, type LetterFilter, type LetterQuery } from '../letter/query.ts'
import { explainError, formatError } from './error-output.ts'
import { actOnFilter } from './filter-action.ts'
import {
  askConfirmation,
  describeOutcome,
  legalStates,
  type ActionOptions,
  type LetterAction,
} from './action-description.ts'
import { addFilterOptions, readFilter } from './filter.ts'
import { resolveId } from './letter-ids.ts'
import { withQueue, type OpenedQueue } from './open.ts'
import { readPages } from './pages.ts'
import { createProgressLine } from './progress-line.ts'
import { userName } from './user-name.ts'
import { formatCount, toJson, escapeLine, paint } from './print.ts'
import { terminal } from './terminal.ts'

export function addLetterAction(program: Command, action: LetterAction): Command {
  const command = program
    .command(action.name)
    .description(action.description)
    .argument('[ids...]', 'ids, id prefixes or source ids, instead of a filter')
  return addFilterOptions(command)
    .option('-a, --all', 'all letters in a state that allows the action')
    .option('-y, --yes', 'do not ask for confirmation')
    .option('--by <name>', 'your name, for the history')
    .addHelpText('after', formatExamples(action.usage ?? action.name))
    .action((ids: string[], _, self: Command) => {
      const options = self.optsWithGlobals<ActionOptions>()
      return withQueue(
        options,
        (opened) => runAction(action, opened, ids, options),
        () => action.queueOptions?.(options),
      )
    })
}

const formatExamples = (usage: string): string => `
Examples:
  redrive ${usage} 01995c3a 01995c4f
  redrive ${usage} --queue charge-card --since 2h
  redrive ${usage} --group v1-a77e7f3bef6b9a28 --yes

With --json each line is the outcome for one letter: {"id", "ok", "queue",
"state"} or {"id", "ok", "code", "message"}.`

async function runAction(
  action: LetterAction,
  opened: OpenedQueue,
  ids: string[],
  options: ActionOptions,
): Promise<void> {
  const filter = readFilter(options, opened.clock.now())
  const filtered = options.all === true || Object.keys(filter).length > 0
  if (ids.length > 0 === filtered)
    throw new RedriveError(
      'INVALID_INPUT',
      `${action.name} needs either ids or a filter such as --queue, --state or --group (--all for every letter)`,
    )
  if (filtered && action.bulk) return actOnFilter(action, action.bulk(), opened, filter, options)
  const selected = filtered
    ? await selectLetters(action, opened, filter, options)
    : await resolveIds(opened, ids)
  if (!selected) return void terminal.stdout.write('Nothing was changed.\n')
  const outcomes = await applyAction(action, opened, selected, options)
  printOutcomes(action, outcomes, filtered, options)
  const queues = new Set(outcomes.flatMap((outcome) => ('queue' in outcome ? [outcome.queue] : [])))
  const note =
    options.json || queues.size === 0 ? undefined : await action.finalNote?.(opened, queues)
  if (note !== undefined) terminal.stdout.write(`${note}\n`)
}

async function resolveIds({ letters }: OpenedQueue, args: string[]): Promise<string[]> {
  const ids: string[] = []
  for (const arg of args) ids.push(await resolveId(letters, arg))
  return [...new Set(ids)]
}

/**
 * Selects the matching letters once, before the confirmation and before any of them changes:
 * letters that match later were not confirmed. Undefined if the person declines.
 */
async function selectLetters(
  action: LetterAction,
  { letters }: OpenedQueue,
  filter: LetterFilter,
  options: ActionOptions,
): Promise<string[] | undefined> {
  const legal: readonly State[] = moveTable[action.name].from
  const selectedStates = legalStates(action, filter)
  const query: LetterQuery = {
    ...filter,
    state: [...selectedStates],
    order: 'oldest',
    limit: maxLimit,
  }
  const ids: string[] = []
  const counts = new Map<State, number>()
  for await (const page of readPages((from) => letters.find({ ...query, ...from })))
    for (const { id, state } of page) {
      ids.push(id)
      counts.set(state, (counts.get(state) ?? 0) + 1)
    }
  if (ids.length === 0) return []
  const by = legal.flatMap((state) => {
    const count = counts.get(state)
    return count === undefined ? [] : [`${count.toLocaleString('en')} ${state}`]
  })
  const what = `${formatCount(ids.length, 'letter')} (${by.join(', ')})`
  return options.yes || (await askConfirmation(action, what)) ? ids : undefined
}

type Outcome =
  | Pick<DeadLetter, 'id' | 'queue' | 'state' | 'reason'>
  | { id: string; error: unknown }

/** Number of concurrent actions, so that the store can batch its writes. */
const batchSize = 100

async function applyAction(
  action: LetterAction,
  { dlq, clock }: OpenedQueue,
  ids: string[],
  options: ActionOptions,
): Promise<Outcome[]> {
  const by = options.by ?? userName()
  const outcomes: Outcome[] = []
  const line = createProgressLine(terminal.stderr, clock)
  for (let start = 0; start < ids.length; start += batchSize) {
    const batch = ids.slice(start, start + batchSize)
    const run = async (id: string): Promise<Outcome> =>
      action.run(dlq, id, by).then(
        ({ queue, state, reason }) => ({
          id,
          queue,
          state,
          ...(reason === undefined ? {} : { reason }),
        }),
        (error: unknown) => ({ id, error }),
      )
    outcomes.push(...(await Promise.all(batch.map(run))))
    line.show({ label: action.name, done: outcomes.length, total: ids.length })
  }
  line.close()
  return outcomes
}

const maxPrintedErrors = 10

function printOutcomes(
  action: LetterAction,
  outcomes: readonly Outcome[],
  filtered: boolean,
  options: ActionOptions,
): void {
  const failed = outcomes.filter((outcome) => 'error' in outcome)
  if (options.json)
    for (const outcome of outcomes) terminal.stdout.write(`${toJson(toJsonOutcome(outcome))}\n`)
  else {
    if (filtered || outcomes.length > maxPrintedErrors)
      terminal.stdout.write(formatOutcomes(action, outcomes))
    else
      for (const outcome of outcomes)
        if ('queue' in outcome)
          terminal.stdout.write(
            `${outcome.id}  ${escapeLine(outcome.queue)}  ${paint('green', describeOutcome(action, outcome))}\n`,
          )
    for (const { error } of failed.slice(0, maxPrintedErrors))
      terminal.stderr.write(formatError(explainError(error)))
    if (failed.length > maxPrintedErrors)
      terminal.stderr.write(`… ${failed.length} failed in total\n`)
  }
  if (failed.length > 0) terminal.exitCode = explainError(failed[0]!.error).exit
}

/** One line per kind of outcome. */
function formatOutcomes(action: LetterAction, outcomes: readonly Outcome[]): string {
  if (outcomes.length === 0) return 'No letter matches.\n'
  const done = outcomes.flatMap((outcome) =>
    'queue' in outcome ? [describeOutcome(action, outcome)] : [],
  )
  if (done.length === 0) return `0 letters ${describeOutcome(action, { state: 'pending' })}.\n`
  return [...Map.groupBy(done, (what) => what)]
    .map(([what, all]) => `${formatCount(all.length, 'letter')} ${what}.\n`)
    .join('')
}

function toJsonOutcome(outcome: Outcome): object {
  const { id } = outcome
  if ('queue' in outcome) return { id, ok: true, queue: outcome.queue, state: outcome.state }
  const { code, message } = explainError(outcome.error)
  return { id, ok: false, code, message }
}
