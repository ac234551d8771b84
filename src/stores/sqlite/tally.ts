import type { LetterFilter } from '../../letter/query.ts'
import type { TallyKey } from '../../store.ts'
import type { StoreContext } from './context.ts'
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
import { scanStep } from './find.ts'
import type { Place } from '../search.ts'
import type { Methods } from './protocol.ts'
import { tagsOf } from '../rows/rest.ts'
import { unpackSummary } from '../rows/unpack.ts'
import { entryBySeq, findLetter, type Entry } from './reading.ts'

type Counted = Map<string, number>
type CellKey = CodedKey | 'queue'

/** Number of letters that one step counts. */
const lettersPerStep = 500

/** Uses the maintained counts if they suffice; otherwise scans letters in steps. */
export function* tally(
  context: StoreContext,
  { by, filter }: Methods['tally']['request'],
): Generator<undefined, Methods['tally']['response']> {
  if (!hasCounts(by, filter)) return [...(yield* scanned(context, by, filter))]
  if (by === 'group' || by === 'tag')
    return [...namedCounts(context.db, by, cellTest(context, filter))]
  const counted: Counted = new Map()
  for (const [cell, n] of cellsWhere(context.counters, cellTest(context, filter)))
    grow(counted, valueOf(context, cell, by), n)
  return [...counted]
}

function* scanned(
  context: StoreContext,
  by: TallyKey,
  filter: LetterFilter,
): Generator<undefined, Counted> {
  const counted: Counted = new Map()
  let after: Place | undefined
  for (;;) {
    const step = scanStep(context, {
      filter,
      order: 'oldest',
      limit: lettersPerStep,
      whole: false,
      ...(after ? { after } : {}),
    })
    for (const { seq } of step.entries)
      for (const value of valuesAt(context, seq, by)) grow(counted, value, 1)
    if (!step.next) return counted
    after = step.next
    yield
  }
}

function valuesAt(context: StoreContext, seq: number, by: TallyKey): string[] {
  if (isUncounted(by)) {
    const found = findLetter(context, 'seq', seq, 'summary')
    return found ? valuesIn(unpackSummary(found.letter), by) : []
  }
  const entry = entryBySeq(context, seq)
  return entry ? valuesOf(context, entry, by) : []
}

function valuesOf(
  context: StoreContext,
  { queue, row }: Entry,
  by: Exclude<TallyKey, UncountedKey>,
): string[] {
  if (by === 'group') return [row.fingerprint]
  if (by === 'tag') return tagsOf(row)
  return [valueOf(context, { ...row, queue }, by)]
}

function valueOf(context: StoreContext, cell: Cell, by: CellKey): string {
  return by === 'queue' ? context.queues.name(cell.queue) : wordOf(by, cell[by])
}
