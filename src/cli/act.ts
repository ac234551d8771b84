import { userInfo } from 'node:os'
import { createInterface } from 'node:readline/promises'
import type { Command } from 'commander'
import { RedriveError } from '../errors.ts'
import type { DeadLetter, State } from '../letter/letter.ts'
import { moveTable } from '../letter/move-table.ts'
import { maxLimit, type LetterFilter, type LetterQuery } from '../letter/query.ts'
import type { QueueOptions } from '../options/options.ts'
import type { DeadLetterQueue } from '../queue.ts'
import { explain, tell } from './failures.ts'
import { addFilterOptions, readFilter, type FilterOptions } from './filter.ts'
import { resolveId } from './letter-ids.ts'
import {
  withQueue,
  type ConfigOptions,
  type GlobalOptions,
  type Opened,
  type OpenedQueue,
} from './open.ts'
import { pages } from './pages.ts'
import { counted, json, line, paint } from './print.ts'

/** An action on letters, chosen by id or by filter. */
export interface Act {
  name: 'retry' | 'replay' | 'review' | 'archive' | 'restore'
  /** The command in examples, if the name alone is not enough. */
  usage?: string
  description: string
  /** Describes the outcome for a letter. */
  done: string | ((letter: Pick<DeadLetter, 'state'>) => string)
  /** Options of the queue that the action needs, from the configuration. */
  queueOptions?: (options: ConfigOptions) => Promise<QueueOptions>
  run: (dlq: DeadLetterQueue, id: string, by: string) => Promise<DeadLetter>
  /** A note that is printed once at the end. */
  after?: (opened: Opened, queues: ReadonlySet<string>) => Promise<string | undefined>
}

interface ActOptions extends GlobalOptions, FilterOptions {
  all?: boolean
  yes?: boolean
  by?: string
}

export function addAct(program: Command, act: Act): Command {
  const command = program
    .command(act.name)
    .description(act.description)
    .argument('[ids...]', 'ids, id prefixes or source ids, instead of a filter')
  return addFilterOptions(command)
    .option('-a, --all', 'all letters in a state that allows it')
    .option('-y, --yes', 'do not ask for confirmation')
    .option('--by <name>', 'your name, for the history')
    .addHelpText('after', examplesOf(act.usage ?? act.name))
    .action((ids: string[], _, self: Command) => {
      const options = self.optsWithGlobals<ActOptions>()
      return withQueue(
        options,
        (opened) => perform(act, opened, ids, options),
        () => act.queueOptions?.(options),
      )
    })
}

const examplesOf = (usage: string): string => `
Examples:
  redrive ${usage} 01995c3a 01995c4f
  redrive ${usage} --queue charge-card --since 2h
  redrive ${usage} --group v1-a77e7f3bef6b9a28 --yes

With --json each line is what became of one letter: {"id", "ok", "queue",
"state"} or {"id", "ok", "code", "message"}.`

async function perform(
  act: Act,
  opened: OpenedQueue,
  ids: string[],
  options: ActOptions,
): Promise<void> {
  const filter = readFilter(options, opened.clock.now())
  const filtered = options.all === true || Object.keys(filter).length > 0
  if (ids.length > 0 === filtered)
    throw new RedriveError(
      'INVALID_INPUT',
      `${act.name} needs either ids or a filter such as --queue, --state or --group (--all for every letter)`,
    )
  const chosen = filtered
    ? await choose(act, opened, filter, options)
    : await resolveAll(opened, ids)
  if (!chosen) return void process.stdout.write('Nothing was changed.\n')
  const outcomes = await actOn(act, opened, chosen, options)
  report(act, outcomes, filtered, options)
  const queues = new Set(outcomes.flatMap((outcome) => ('queue' in outcome ? [outcome.queue] : [])))
  const note = options.json || queues.size === 0 ? undefined : await act.after?.(opened, queues)
  if (note !== undefined) process.stdout.write(`${note}\n`)
}

async function resolveAll({ store }: Opened, given: string[]): Promise<string[]> {
  const ids: string[] = []
  for (const one of given) ids.push(await resolveId(store, one))
  return [...new Set(ids)]
}

/**
 * Selects the matching letters once, before the confirmation and before any of them changes:
 * letters that match later were not confirmed. Undefined if the person declines.
 */
async function choose(
  act: Act,
  { store }: Opened,
  filter: LetterFilter,
  options: ActOptions,
): Promise<string[] | undefined> {
  const legal: readonly State[] = moveTable[act.name].from
  const wanted =
    filter.state === undefined
      ? legal
      : [filter.state].flat().filter((state) => legal.includes(state))
  if (wanted.length === 0)
    throw new RedriveError(
      'ILLEGAL_MOVE',
      `${act.name} is possible in these states: ${legal.join(', ')}`,
    )
  const query: LetterQuery = { ...filter, state: [...wanted], order: 'oldest', limit: maxLimit }
  const ids: string[] = []
  const counts = new Map<State, number>()
  for await (const letters of pages((from) => store.find({ ...query, ...from })))
    for (const { id, state } of letters) {
      ids.push(id)
      counts.set(state, (counts.get(state) ?? 0) + 1)
    }
  if (ids.length === 0) return []
  const by = legal.flatMap((state) => {
    const count = counts.get(state)
    return count === undefined ? [] : [`${count.toLocaleString('en')} ${state}`]
  })
  const what = `${counted(ids.length, 'letter')} (${by.join(', ')})`
  return options.yes || (await confirmed(act, what)) ? ids : undefined
}

async function confirmed(act: Act, what: string): Promise<boolean> {
  if (!process.stdin.isTTY || !process.stdout.isTTY)
    throw new RedriveError('INVALID_INPUT', `${act.name} would act on ${what}: add --yes to do it`)
  const asking = createInterface({ input: process.stdin, output: process.stdout })
  const ended = new AbortController()
  asking.once('close', () => ended.abort())
  const answer = await asking
    .question(`${act.name} ${what}? [y/N] `, { signal: ended.signal })
    .catch(() => '')
  asking.close()
  return /^y(es)?$/i.test(answer.trim())
}

type Outcome = { id: string; queue: string; state: State } | { id: string; error: unknown }

/** Number of concurrent actions, so that the store can batch its writes. */
const batchSize = 100

async function actOn(
  act: Act,
  { dlq }: OpenedQueue,
  ids: string[],
  options: ActOptions,
): Promise<Outcome[]> {
  const by = options.by ?? userName()
  const outcomes: Outcome[] = []
  for (let start = 0; start < ids.length; start += batchSize) {
    const batch = ids.slice(start, start + batchSize)
    const run = async (id: string): Promise<Outcome> =>
      act.run(dlq, id, by).then(
        ({ queue, state }) => ({ id, queue, state }),
        (error: unknown) => ({ id, error }),
      )
    outcomes.push(...(await Promise.all(batch.map(run))))
    if (process.stderr.isTTY && ids.length > batchSize)
      process.stderr.write(`\r${outcomes.length} of ${ids.length}\u001b[K`)
  }
  if (process.stderr.isTTY && ids.length > batchSize) process.stderr.write('\r\u001b[K')
  return outcomes
}

function userName(): string {
  try {
    return userInfo().username
  } catch {
    return 'operator' // A user without a name, as in some containers.
  }
}

const maxPrintedErrors = 10

function report(
  act: Act,
  outcomes: readonly Outcome[],
  filtered: boolean,
  options: ActOptions,
): void {
  const failed = outcomes.filter((outcome) => 'error' in outcome)
  if (options.json)
    for (const outcome of outcomes) process.stdout.write(`${json(forPrograms(outcome))}\n`)
  else {
    if (filtered || outcomes.length > maxPrintedErrors) process.stdout.write(summary(act, outcomes))
    else
      for (const outcome of outcomes)
        if ('queue' in outcome)
          process.stdout.write(
            `${outcome.id}  ${line(outcome.queue)}  ${paint('green', doneOf(act, outcome))}\n`,
          )
    for (const { error } of failed.slice(0, maxPrintedErrors))
      process.stderr.write(tell(explain(error)))
    if (failed.length > maxPrintedErrors) process.stderr.write(`… ${failed.length} failed in all\n`)
  }
  if (failed.length > 0) process.exitCode = explain(failed[0]!.error).exit
}

/** A line for each kind of outcome. */
function summary(act: Act, outcomes: readonly Outcome[]): string {
  if (outcomes.length === 0) return 'No letter matches.\n'
  const done = outcomes.flatMap((outcome) => ('queue' in outcome ? [doneOf(act, outcome)] : []))
  if (done.length === 0) return `0 letters ${doneOf(act, { state: 'pending' })}.\n`
  return [...Map.groupBy(done, (what) => what)]
    .map(([what, all]) => `${counted(all.length, 'letter')} ${what}.\n`)
    .join('')
}

function doneOf({ done }: Act, letter: Pick<DeadLetter, 'state'>): string {
  return typeof done === 'string' ? done : done(letter)
}

function forPrograms(outcome: Outcome): object {
  const { id } = outcome
  if ('queue' in outcome) return { id, ok: true, queue: outcome.queue, state: outcome.state }
  const { code, message } = explain(outcome.error)
  return { id, ok: false, code, message }
}
