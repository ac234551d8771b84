import type { LetterFilter } from '../../letter/query.ts'
import type { TallyKey } from '../../store.ts'
import type { Place } from '../search.ts'
import { needsReading } from '../rows/source-key.ts'
import {
  grow,
  isCountable,
  isUncounted,
  valuesOf,
  wordOf,
  type CodedKey,
  type UncountedKey,
} from '../rows/tally.ts'
import { unpackSummary } from '../rows/unpack.ts'
import { matches } from '../../letter/query.ts'
import type { StoreContext } from './context.ts'
import { readNamedCounts, readCells } from './counters.ts'
import { cellTest, codesOf, conditionOf } from './filter.ts'
import { searchStep, resolveFilter } from './find.ts'
import { readLetters } from './read-letters.ts'
import { fromText } from './text.ts'

type Counted = Map<string, number>
type CellKey = CodedKey | 'queue'

/** A count that reads every letter may take long, and blocks nobody. */
const scanTimeoutMs = 120_000
const stepLetters = 500

/** Counts from the counters if possible, otherwise letter by letter. */
export async function tally(
  context: StoreContext,
  by: TallyKey,
  filter: LetterFilter,
): Promise<Counted> {
  if (isUncounted(by) || needsReading(filter)) return countByReading(context, by, filter)
  if (!isCountable(filter)) return countByScan(context, by, filter)
  const passes = cellTest(await codesOf(context, filter))
  if (by === 'group' || by === 'tag') return readNamedCounts(context.connection, by, passes)
  const cells = await readCells((sql, values) => context.connection.read(sql, values))
  const nameOf = await context.queues.names(cells.map(([{ queue }]) => queue))
  const counted: Counted = new Map()
  for (const [cell, n] of cells) if (passes(cell)) grow(counted, valueOf(by, cell[by], nameOf), n)
  return counted
}

const columns: Record<Exclude<TallyKey, UncountedKey>, string> = {
  queue: 'l.queue',
  state: 'l.state',
  category: 'l.category',
  priority: 'l.priority',
  policy: 'l.policy',
  group: 'l.fingerprint',
  tag: 't.tag',
}

async function countByScan(
  context: StoreContext,
  by: keyof typeof columns,
  filter: LetterFilter,
): Promise<Counted> {
  const values: unknown[] = []
  const condition = conditionOf(filter, await codesOf(context, filter), values)
  const tags = by === 'tag' ? 'JOIN @tags t ON t.id = l.id' : ''
  const sql = `SELECT ${columns[by]}, count(*) FROM @letters l ${tags} WHERE ${condition} GROUP BY 1`
  const rows = (await context.connection.read(sql, values, { timeoutMs: scanTimeoutMs })) as [
    number | string,
    number,
  ][]
  const nameOf = await context.queues.names(
    by === 'queue' ? rows.map(([queue]) => queue as number) : [],
  )
  const counted: Counted = new Map()
  for (const [value, n] of rows)
    grow(
      counted,
      typeof value === 'string' ? fromText(value) : valueOf(by as CellKey, value, nameOf),
      n,
    )
  return counted
}

/** Reads every letter, for keys and filters that no column has. */
async function countByReading(
  context: StoreContext,
  by: TallyKey,
  filter: LetterFilter,
): Promise<Counted> {
  const counted: Counted = new Map()
  const query = await resolveFilter(context, { filter, order: 'oldest' })
  let after: Place | undefined
  do {
    const step = await searchStep(context, query, stepLetters, after)
    const ids = step.entries.map(({ id }) => id)
    for (const kept of (await readLetters(context, ids, 'summary')).values()) {
      const letter = unpackSummary(kept)
      if (matches(letter, filter)) for (const value of valuesOf(letter, by)) grow(counted, value, 1)
    }
    after = step.next
  } while (after)
  return counted
}

function valueOf(by: CellKey, code: number, nameOf: (queue: number) => string): string {
  return by === 'queue' ? nameOf(code) : wordOf(by, code)
}
