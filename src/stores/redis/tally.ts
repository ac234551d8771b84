import { actions, partsOf, priorities, type Cell } from '../rows/codes.ts'
import {
  among,
  cellCodes,
  groupValueOf,
  grow,
  isGroupKey,
  listed,
  passes,
  wordOf,
  type UncountedKey,
} from '../rows/tally.ts'
import type { LetterFilter } from '../../letter/query.ts'
import type { TallyKey, Total } from '../../store.ts'

type CountedKey = Exclude<TallyKey, UncountedKey>

/** A counter: a cell, its queue, and in `groups` and `tags` a name. */
export interface Counted {
  cell: Cell
  queue: string
  name: string
  count: number
}

/** Reads the counters of a hash. */
export function countsIn(fields: readonly Buffer[], named: boolean): Counted[] {
  const counts: Counted[] = []
  for (let at = 0; at < fields.length; at += 2)
    counts.push({ ...fieldOf(fields[at]!, named), count: Number(fields[at + 1]!.toString()) })
  return counts
}

/** `CODE:QUEUE`, or `CODE:LENGTH:NAMEQUEUE` with the length of the name in bytes. */
function fieldOf(field: Buffer, named: boolean): Omit<Counted, 'count'> {
  const colon = field.indexOf(58)
  const cell = partsOf(Number(field.toString('latin1', 0, colon)))
  if (!named) return { cell, queue: field.toString('utf8', colon + 1), name: '' }
  const second = field.indexOf(58, colon + 1)
  const end = second + 1 + Number(field.toString('latin1', colon + 1, second))
  return { cell, name: field.toString('utf8', second + 1, end), queue: field.toString('utf8', end) }
}

/** Adds up the counters that pass, by the tally key. */
export function tallyOf(
  counts: Counted[],
  by: CountedKey,
  filter: LetterFilter,
): Map<string, number> {
  const passes = cellTest(filter)
  const tally = new Map<string, number>()
  for (const counted of counts)
    if (counted.count > 0 && passes(counted)) grow(tally, valueOf(counted, by), counted.count)
  return tally
}

function cellTest(filter: LetterFilter): (counted: Counted) => boolean {
  const queues =
    filter.queue === undefined ? undefined : listed(filter.queue).map((name) => name.toWellFormed())
  const groups =
    filter.group === undefined ? undefined : listed(filter.group).map((name) => name.toWellFormed())
  const wanted = cellCodes(filter)
  return ({ cell, queue, name }) =>
    among(queues, queue) && among(groups, name) && passes(wanted, cell)
}

function valueOf({ cell, queue, name }: Counted, by: CountedKey): string {
  if (isGroupKey(by)) return groupValueOf(by, name, cell.state)
  if (by === 'tag') return name
  return by === 'queue' ? queue : wordOf(by, cell[by])
}

/** `ACTION:PRIORITY:QUEUE` and "COUNT RETRIES MAXRETRIES BACKOFFMS". */
export function totalsIn(fields: readonly Buffer[]): Total[] {
  const totals: Total[] = []
  for (let at = 0; at < fields.length; at += 2) {
    const [, action, priority, queue] = /^(\d+):(\d):([\s\S]*)$/.exec(fields[at]!.toString())!
    const [count, retries, maxRetries, backoffMs] = fields[at + 1]!.toString()
      .split(' ')
      .map(Number)
    totals.push({
      action: actions[Number(action)]!,
      queue: queue!,
      priority: priorities[Number(priority)]!,
      count: count!,
      retries: retries!,
      maxRetries: maxRetries!,
      backoffMs: backoffMs!,
    })
  }
  return totals
}

export function totalFields(totals: readonly Total[]): string[] {
  return totals.flatMap(({ action, priority, queue, count, retries, maxRetries, backoffMs }) => [
    `${actions.indexOf(action)}:${priorities.indexOf(priority)}:${queue.toWellFormed()}`,
    `${count} ${retries} ${maxRetries} ${backoffMs}`,
  ])
}
