import { readFileSync } from 'node:fs'
import { Option, type Command } from 'commander'
import { RedriveError } from '../../errors.ts'
import {
  filterActionNames,
  noProgress,
  type BulkAction,
  type BulkResult,
  type FilterActionName,
  type Outcome,
} from '../../letter/bulk-action.ts'
import type { ResultsQuery } from '../../bulk/bulk.ts'
import type { PlanOptions, UndoOptions } from '../../bulk/plan-options.ts'
import { priorities, type Priority } from '../../letter/letter.ts'
import {
  formatActions,
  formatDone,
  formatPlan,
  formatPlanned,
  outcomeStyle,
} from '../bulk-format.ts'
import { followAction } from '../bulk-progress.ts'
import { confirmPlan } from '../filter-action.ts'
import { addFilterOptions, collect, readFilter, readFutureTime, readLimit } from '../filter.ts'
import type { FilterOptions } from '../filter.ts'
import { withQueue, type ConfigOptions, type GlobalOptions, type OpenedQueue } from '../open.ts'
import type { QueueAccess } from '../queue-access.ts'
import { escapeLine, formatTable, lineWidth, printEither, toJson } from '../print.ts'
import { userName } from '../user-name.ts'
import { addConfigOptions } from './config.ts'
import { replayOptions } from './replay.ts'
import { terminal } from '../terminal.ts'

const examples = `
Examples:
  redrive bulk plan retry --queue charge-card --canary
  redrive bulk run 0199e3f2                   with progress; Ctrl-C pauses it
  redrive bulk results 0199e3f2 --outcome failed
  redrive bulk undo 0199e3f2 --reason "the patch was wrong"
  redrive bulk plan remove --state archived --until 90d --reason "audit is over"

A plan fixes the letters: those that change before the action reaches them are
skipped. This process and all workers of the store can run a planned action.`

interface LimitOptions {
  by?: string
  reason?: string
  rate?: string
  concurrency?: string
  canary?: true | string
  startAt?: string
  window?: string
}

interface PlanCommandOptions extends ConfigOptions, FilterOptions, LimitOptions {
  all?: boolean
  at?: string
  to?: string
  newPriority?: Priority
  addTag?: string[]
  removeTag?: string[]
  patch?: string
}

export function addBulk(program: Command): void {
  const bulk = program
    .command('bulk')
    .description('plan, run and follow actions on many letters')
    .addHelpText('after', examples)
  addPlan(bulk)
  addUndo(bulk)
  addRun(bulk, 'run', 'run a planned action, and show its progress', (dlq, id) => dlq.run(id))
  addRun(bulk, 'resume', 'continue an action that was paused or stopped', (dlq, id) =>
    dlq.resume(id),
  )
  addControl(bulk, 'pause', 'act on no further letters until resume', (dlq, id, by) =>
    dlq.pause(id, by),
  )
  addControl(bulk, 'cancel', 'end an action; what it has done stays done', (dlq, id, by) =>
    dlq.cancel(id, by),
  )
  addControl(bulk, 'approve', 'approve the plan of another person', (dlq, id, by) =>
    dlq.approve(id, by),
  )
  addShow(bulk)
  addResults(bulk)
  addList(bulk)
}

function addPlan(bulk: Command): void {
  const command = bulk
    .command('plan')
    .argument('<action>', filterActionNames.join(', '))
    .description('fix the letters of an action and show what it would do')
  addConfigOptions(addFilterOptions(command)).option(
    '-a, --all',
    'all letters in a state that allows the action',
  )
  addLimitOptions(command, 'why; required for remove, resolve and edit')
    .option('--at <when>', 'retry: when the letters become due')
    .option('--to <mailbox>', 'replay: another mailbox')
    .addOption(new Option('--new-priority <priority>', 'priority: the new one').choices(priorities))
    .option('--add-tag <tag>', 'tag: may be repeated', collect)
    .option('--remove-tag <tag>', 'tag: may be repeated', collect)
    .option('--patch <file>', 'edit: a file with a JSON Patch (RFC 6902) of the payloads')
    .action((name: FilterActionName, _, self: Command) => {
      const options = self.optsWithGlobals<PlanCommandOptions>()
      return useQueue(options, async ({ dlq, clock }) => {
        const filter = readFilter(options, clock.now())
        if (Object.keys(filter).length === 0 && !options.all)
          throw new RedriveError(
            'INVALID_INPUT',
            'bulk plan needs a filter such as --queue, --state or --group (--all for every letter)',
          )
        const plan = await dlq.plan(name, filter, readPlanOptions(options, clock.now()))
        printEither(options, plan, formatPlan(plan))
      })
    })
}

function addLimitOptions(command: Command, reason: string): Command {
  return command
    .option('--by <name>', 'your name, for the history')
    .option('--reason <text>', reason)
    .option('--rate <number>', 'letters per second')
    .option('--concurrency <number>', 'letters that may wait for their outcome at the same time')
    .option('--canary [share]', 'act on 1, 10, 100, … letters; stop if more fail (default: 0.05)')
    .option('--start-at <when>', 'not before: in 15m, 2h, or at an ISO timestamp')
    .option('--window <from-to>', 'only at this time of day in UTC, such as 22:00-06:00')
}

function readLimitOptions(options: LimitOptions, nowMs: number): UndoOptions {
  const { reason, rate, concurrency, canary, startAt, window } = options
  return {
    by: options.by ?? userName(),
    ...(reason === undefined ? {} : { reason }),
    ...(rate === undefined ? {} : { rate: Number(rate) }),
    ...(concurrency === undefined ? {} : { concurrency: Number(concurrency) }),
    ...(canary === undefined
      ? {}
      : { canary: canary === true ? true : { maxFailureShare: Number(canary) } }),
    ...(startAt === undefined ? {} : { startAt: readFutureTime('--start-at', startAt, nowMs) }),
    ...(window === undefined ? {} : { window: readWindow(window) }),
  }
}

function readPlanOptions(options: PlanCommandOptions, nowMs: number): PlanOptions {
  const { at, to, newPriority, addTag: addTags, removeTag: removeTags } = options
  return {
    ...readLimitOptions(options, nowMs),
    ...(at === undefined ? {} : { at: readFutureTime('--at', at, nowMs) }),
    ...(to === undefined ? {} : { to }),
    ...(newPriority === undefined ? {} : { priority: newPriority }),
    ...(addTags === undefined ? {} : { addTags }),
    ...(removeTags === undefined ? {} : { removeTags }),
    ...(options.patch === undefined ? {} : { patch: readPatchFile(options.patch) }),
  }
}

function readPatchFile(file: string): NonNullable<PlanOptions['patch']> {
  try {
    return JSON.parse(readFileSync(file, 'utf8')) as NonNullable<PlanOptions['patch']>
  } catch (error) {
    throw new RedriveError(
      'INVALID_INPUT',
      `--patch: ${file} is not a file with JSON: ${(error as Error).message}`,
    )
  }
}

function readWindow(text: string): { from: string; to: string } {
  const [, from, to] = /^(\d\d:\d\d)-(\d\d:\d\d)$/.exec(text) ?? []
  if (from !== undefined && to !== undefined) return { from, to }
  throw new RedriveError(
    'INVALID_INPUT',
    `--window must be two times such as 22:00-06:00, got "${text}"`,
  )
}

interface UndoCommandOptions extends ConfigOptions, LimitOptions {
  yes?: boolean
}

function addUndo(bulk: Command): void {
  const command = bulk
    .command('undo')
    .argument('<id>', 'id of a bulk edit, or its beginning')
    .description('restore the payloads that a bulk edit has changed')
  addLimitOptions(addConfigOptions(command), 'why; required')
    .option('-y, --yes', 'do not ask for confirmation')
    .action((given: string, _, self: Command) => {
      const options = self.optsWithGlobals<UndoCommandOptions>()
      return useQueue(options, (opened) => undoEdit(opened, given, options))
    })
}

/** Plans the undo of a bulk edit, asks for confirmation, and runs it in this process. */
async function undoEdit(
  opened: OpenedQueue,
  given: string,
  options: UndoCommandOptions,
): Promise<void> {
  const { dlq, clock } = opened
  const editId = await resolveAction(dlq, given)
  const plan = await dlq.planUndo(editId, readLimitOptions(options, clock.now()))
  if (plan.approval) return printEither(options, plan, formatPlan(plan))
  if (!options.json) terminal.stdout.write(formatPlanned(plan))
  if (!options.yes && !(await confirmPlan(opened, plan)))
    return void terminal.stdout.write('Nothing was changed.\n')
  const done = await followAction(opened, () => dlq.run(plan.id), 'finished')
  printEither(options, done, formatDone(done))
  const { failed, skipped } = done.progress
  if (failed + skipped > 0 || done.state === 'stopped') terminal.exitCode ??= 1
}

function addRun(
  bulk: Command,
  name: string,
  description: string,
  start: (dlq: QueueAccess, id: string) => Promise<BulkAction>,
): void {
  addConfigOptions(bulk.command(name).argument('<id>', 'id of the action, or its beginning'))
    .description(description)
    .option('--detach', 'do not wait: a worker of this store runs the action')
    .action((given: string, _, self: Command) => {
      const options = self.optsWithGlobals<ConfigOptions & { detach?: boolean }>()
      return useQueue(options, async (opened) => {
        const id = await resolveAction(opened.dlq, given)
        const begin = (): Promise<BulkAction> => start(opened.dlq, id)
        const done = options.detach ? await begin() : await followAction(opened, begin, 'finished')
        printEither(options, done, formatDone(done))
        if (done.state === 'stopped' || done.progress.failed > 0) terminal.exitCode ??= 1
      })
    })
}

function addControl(
  bulk: Command,
  name: string,
  description: string,
  control: (dlq: QueueAccess, id: string, by: string) => Promise<BulkAction>,
): void {
  bulk
    .command(name)
    .argument('<id>', 'id of the action, or its beginning')
    .description(description)
    .option('--by <name>', 'your name')
    .action((given: string, _, self: Command) => {
      const options = self.optsWithGlobals<GlobalOptions & { by?: string }>()
      return withQueue(options, async ({ dlq }) => {
        const id = await resolveAction(dlq, given)
        const action = await control(dlq, id, options.by ?? userName())
        printEither(options, action, formatDone(action))
      })
    })
}

function addShow(bulk: Command): void {
  bulk
    .command('show')
    .argument('<id>', 'id of the action, or its beginning')
    .description('print an action and its progress')
    .action((given: string, _, self: Command) => {
      const options = self.optsWithGlobals<GlobalOptions>()
      return withQueue(options, async ({ dlq }) => {
        const action = await dlq.bulkAction(await resolveAction(dlq, given))
        const text = action.state === 'planned' ? formatPlan(action) : formatDone(action)
        printEither(options, action, text)
      })
    })
}

function addList(bulk: Command): void {
  bulk
    .command('list')
    .description('list actions, newest first')
    .option('-n, --limit <count>', 'maximum number of actions', '20')
    .action((_, self: Command) => {
      const options = self.optsWithGlobals<GlobalOptions & { limit: string }>()
      return withQueue(options, async ({ dlq, clock }) => {
        const actions = await dlq.bulkActions(readLimit(options.limit))
        if (options.json) for (const action of actions) terminal.stdout.write(`${toJson(action)}\n`)
        else if (actions.length === 0) terminal.stdout.write('No bulk actions.\n')
        else terminal.stdout.write(formatActions(actions, clock.now()))
      })
    })
}

interface ResultsCommandOptions extends GlobalOptions {
  outcome?: string[]
  limit: string
  cursor?: string
}

function addResults(bulk: Command): void {
  bulk
    .command('results')
    .argument('<id>', 'id of the action, or its beginning')
    .description('print what an action did to each letter')
    .option('--outcome <outcome>', Object.keys(noProgress).join(', '), collect)
    .option('-n, --limit <count>', 'maximum number of letters', '20')
    .option('--cursor <cursor>', 'continue from this cursor')
    .action((given: string, _, self: Command) => {
      const options = self.optsWithGlobals<ResultsCommandOptions>()
      return withQueue(options, async ({ dlq }) => {
        const id = await resolveAction(dlq, given)
        const { items, cursor } = await dlq.results(id, readResultsQuery(options))
        if (options.json) for (const item of items) terminal.stdout.write(`${toJson(item)}\n`)
        else terminal.stdout.write(formatResults(items))
        if (cursor !== undefined) terminal.stderr.write(`--cursor ${cursor}\n`)
      })
    })
}

function readResultsQuery({ outcome, limit, cursor }: ResultsCommandOptions): ResultsQuery {
  const outcomes = outcome?.flatMap((list) => list.split(',')) as Outcome[] | undefined
  return {
    limit: readLimit(limit),
    ...(outcomes ? { outcome: outcomes } : {}),
    ...(cursor === undefined ? {} : { cursor }),
  }
}

function formatResults(items: readonly BulkResult[]): string {
  if (items.length === 0) return 'No letter has such an outcome.\n'
  const lines = formatTable<BulkResult>(
    [
      { title: 'ID', cell: ({ id }) => id },
      {
        title: 'OUTCOME',
        cell: ({ outcome }) => outcome,
        style: ({ outcome }) => outcomeStyle[outcome],
      },
      { title: 'RUNS', cell: ({ runs }) => (runs === undefined ? '' : String(runs)) },
      { title: 'ERROR', cell: ({ error = '' }) => escapeLine(error), minWidth: 10 },
    ],
    items,
    lineWidth(),
  )
  return `${lines.join('\n')}\n`
}

/** Opens the queue with the mailboxes and the rules of the configuration. */
function useQueue<T>(options: ConfigOptions, use: (opened: OpenedQueue) => Promise<T>): Promise<T> {
  return withQueue(options, use, () => replayOptions(options))
}

/** Finds an action by its id or the beginning of its id, which narrow tables end with dots. */
async function resolveAction(dlq: QueueAccess, given: string): Promise<string> {
  if (given.length >= 36) return given
  const start = given.toLowerCase().replace(/(…|\.\.+)$/, '')
  const found = (await dlq.bulkActions(1000)).filter(({ id }) => id.startsWith(start))
  if (found.length === 1) return found[0]!.id
  if (found.length === 0)
    throw new RedriveError(
      'ACTION_NOT_FOUND',
      `no bulk action has an id that begins with "${given}": redrive bulk list shows the actions`,
    )
  throw new RedriveError(
    'INVALID_INPUT',
    `"${given}" is the beginning of several ids, give more characters: ${found
      .slice(0, 5)
      .map(({ id }) => id)
      .join(', ')}`,
  )
}
