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
import type { Books } from './books.ts'
import { namedCounts, readCells } from './counters.ts'
import { cellTest, codesOf, conditionOf } from './filter.ts'
import { searchStride, soughtBy } from './find.ts'
import { lettersById } from './reading.ts'
import { fromText } from './text.ts'

type Counted = Map<string, number>
type CellKey = CodedKey | 'queue'

/** A count that has to look at every letter may take long, and harms nobody meanwhile. */
const scanTimeoutMs = 120_000
const strideLetters = 500

/** From the counts where they can answer; otherwise letter by letter. */
export async function tally(books: Books, by: TallyKey, filter: LetterFilter): Promise<Counted> {
  if (isUncounted(by) || needsReading(filter)) return readThrough(books, by, filter)
  if (!isCountable(filter)) return scanned(books, by, filter)
  const passes = cellTest(await codesOf(books, filter))
  if (by === 'group' || by === 'tag') return namedCounts(books.connection, by, passes)
  const cells = await readCells((sql, values) => books.connection.read(sql, values))
  const nameOf = await books.queues.names(cells.map(([{ queue }]) => queue))
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

async function scanned(
  books: Books,
  by: keyof typeof columns,
  filter: LetterFilter,
): Promise<Counted> {
  const values: unknown[] = []
  const condition = conditionOf(filter, await codesOf(books, filter), values)
  const tags = by === 'tag' ? 'JOIN @tags t ON t.id = l.id' : ''
  const sql = `SELECT ${columns[by]}, count(*) FROM @letters l ${tags} WHERE ${condition} GROUP BY 1`
  const rows = (await books.connection.read(sql, values, { timeoutMs: scanTimeoutMs })) as [
    number | string,
    number,
  ][]
  const nameOf = await books.queues.names(
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

/** Reads every letter, for what only the letters themselves have. */
async function readThrough(books: Books, by: TallyKey, filter: LetterFilter): Promise<Counted> {
  const counted: Counted = new Map()
  const sought = await soughtBy(books, { filter, order: 'oldest' })
  let after: Place | undefined
  do {
    const stride = await searchStride(books, sought, strideLetters, after)
    const ids = stride.spots.map(({ id }) => id)
    for (const kept of (await lettersById(books, ids, 'summary')).values()) {
      const letter = unpackSummary(kept)
      if (matches(letter, filter)) for (const value of valuesOf(letter, by)) grow(counted, value, 1)
    }
    after = stride.next
  } while (after)
  return counted
}

function valueOf(by: CellKey, code: number, nameOf: (queue: number) => string): string {
  return by === 'queue' ? nameOf(code) : wordOf(by, code)
}
