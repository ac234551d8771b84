import type { LetterFilter } from '../../letter/query.ts'
import type { TallyKey } from '../../store.ts'
import type { Books } from './books.ts'
import type { Cell } from '../rows/codes.ts'
import {
  grow,
  hasCounts,
  isUncounted,
  valuesOf as valuesIn,
  wordOf,
  type CodedKey,
  type UncountedKey,
} from '../rows/tally.ts'
import { cellsWhere, namedCounts } from './counters.ts'
import { cellTest } from './filter.ts'
import { searchStride } from './find.ts'
import type { Place } from '../search.ts'
import type { Verbs } from './protocol.ts'
import { tagsOf } from '../rows/rest.ts'
import { unpackSummary } from '../rows/unpack.ts'
import { entryBySeq, findLetter, type Entry } from './reading.ts'

type Counted = Map<string, number>
type CellKey = CodedKey | 'queue'

/** Letters that one step of a scan counts. */
const strideLetters = 500

/** From the counts where they can answer; otherwise letter by letter, in bounded steps. */
export function* tally(
  books: Books,
  { by, filter }: Verbs['tally']['ask'],
): Generator<undefined, Verbs['tally']['answer']> {
  if (!hasCounts(by, filter)) return [...(yield* scanned(books, by, filter))]
  if (by === 'group' || by === 'tag') return [...namedCounts(books.db, by, cellTest(books, filter))]
  const counted: Counted = new Map()
  for (const [cell, n] of cellsWhere(books.counters, cellTest(books, filter)))
    grow(counted, valueOf(books, cell, by), n)
  return [...counted]
}

function* scanned(books: Books, by: TallyKey, filter: LetterFilter): Generator<undefined, Counted> {
  const counted: Counted = new Map()
  let after: Place | undefined
  for (;;) {
    const stride = searchStride(books, {
      filter,
      order: 'oldest',
      limit: strideLetters,
      whole: false,
      ...(after ? { after } : {}),
    })
    for (const { seq } of stride.spots)
      for (const value of valuesAt(books, seq, by)) grow(counted, value, 1)
    if (!stride.next) return counted
    after = stride.next
    yield
  }
}

function valuesAt(books: Books, seq: number, by: TallyKey): string[] {
  if (isUncounted(by)) {
    const found = findLetter(books, 'seq', seq, 'summary')
    return found ? valuesIn(unpackSummary(found.kept), by) : []
  }
  const entry = entryBySeq(books, seq)
  return entry ? valuesOf(books, entry, by) : []
}

function valuesOf(
  books: Books,
  { queue, row }: Entry,
  by: Exclude<TallyKey, UncountedKey>,
): string[] {
  if (by === 'group') return [row.fingerprint]
  if (by === 'tag') return tagsOf(row)
  return [valueOf(books, { ...row, queue }, by)]
}

function valueOf(books: Books, cell: Cell, by: CellKey): string {
  return by === 'queue' ? books.queues.name(cell.queue) : wordOf(by, cell[by])
}
