import type { StoreContext } from './context.ts'
import { needsReading } from '../rows/source-key.ts'
import { agrees } from './filter.ts'
import type { Place, Search } from '../search.ts'
import type { Methods } from './protocol.ts'
import { findLetter } from './reading.ts'
import { stagesOf, type IndexEntry, type Stage } from './streams.ts'

/**
 * Number of index entries that one step reads before other calls run. Steps that read whole letters
 * read fewer.
 */
const lettersPerStep = 1000
const lettersPerReadingStep = 200

/** A page ends early after this many payload bytes. */
const maxPageBytes = 32 * 2 ** 20

export interface ScanStep {
  /** Matching entries, in order. */
  entries: IndexEntry[]
  /** Where the next step continues. Absent: there are no more entries. */
  next?: Place
}

/**
 * One bounded step of a search. Each step starts at a position in the order, so that a letter is
 * seen once, even if letters change between steps.
 */
export function scanStep(context: StoreContext, search: Search): ScanStep {
  const { filter, limit, order, after } = search
  const reads = needsReading(filter)
  const most = Math.max(limit, reads ? lettersPerReadingStep : lettersPerStep)
  const entries: IndexEntry[] = []
  let seen = 0
  let last: IndexEntry | undefined
  for (const stage of stagesOf(context, filter, order, after))
    for (const entry of mergeStreams(stage, Math.min(limit, most))) {
      if (entries.length === limit || seen === most)
        return last ? { entries, next: placeOf(last) } : { entries }
      seen += 1
      last = entry
      if (entry.fits && (!reads || agrees(context, entry.seq, filter))) entries.push(entry)
    }
  return { entries }
}

const placeOf = ({ key, id }: IndexEntry): Place => ({ key, id })

/** Merges the streams of a stage, reading each in chunks. */
function* mergeStreams({ streams, before }: Stage, wanted: number): Generator<IndexEntry> {
  const chunk = Math.ceil(wanted / Math.max(1, streams.length)) + 8
  const heads = streams.map((read) => ({ read, entries: read(undefined, chunk), at: 0 }))
  for (;;) {
    let first: (typeof heads)[number] | undefined
    for (const head of heads) {
      if (head.at === head.entries.length && head.at >= chunk) {
        head.entries = head.read(head.entries.at(-1), chunk)
        head.at = 0
      }
      const entry = head.entries[head.at]
      if (entry && (!first || before(entry, first.entries[first.at]!))) first = head
    }
    if (!first) return
    yield first.entries[first.at++]!
  }
}

/**
 * Reads a page in steps. Searches for one letter more than requested to know whether there is a
 * next page.
 */
export function* find(
  context: StoreContext,
  search: Search,
): Generator<undefined, Methods['find']['response']> {
  const letters: Methods['find']['response']['letters'] = []
  let after = search.after
  let last: IndexEntry | undefined
  let bytes = 0
  for (;;) {
    const left = search.limit + 1 - letters.length
    const step = scanStep(context, { ...search, limit: left, ...(after ? { after } : {}) })
    for (const entry of step.entries) {
      if (letters.length === search.limit || bytes > maxPageBytes)
        return last ? { letters, next: placeOf(last) } : { letters }
      const found = findLetter(context, 'seq', entry.seq, search.whole ? 'whole' : 'summary')
      if (!found) continue
      bytes += found.letter[4]?.byteLength ?? 0
      letters.push(found.letter)
      last = entry
    }
    if (!step.next) return { letters }
    after = step.next
    yield
  }
}
