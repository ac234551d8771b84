import type { StoreContext } from './context.ts'
import { needsReading } from '../rows/source-key.ts'
import { agrees } from './filter.ts'
import type { Place, Search } from '../search.ts'
import type { Methods } from './protocol.ts'
import { findLetter } from './reading.ts'
import { stagesOf, type Spot, type Stage } from './streams.ts'

/**
 * Letters that one step looks at before other calls get their turn. Reading letters costs more than
 * reading columns.
 */
const strideSpots = 1000
const readStrideSpots = 200

/** Past this many payload bytes a page ends early: a page may always be shorter than its limit. */
const maxPageBytes = 32 * 2 ** 20

export interface Stride {
  /** What matched, in order. */
  spots: Spot[]
  /** Where the next stride goes on. Absent at the end. */
  next?: Place
}

/**
 * One bounded step of a search. Each step starts afresh from a place in the order, so that a letter
 * is seen once, at its place, however long the whole takes and whatever moves meanwhile.
 */
export function searchStride(context: StoreContext, search: Search): Stride {
  const { filter, limit, order, after } = search
  const reads = needsReading(filter)
  const most = Math.max(limit, reads ? readStrideSpots : strideSpots)
  const spots: Spot[] = []
  let seen = 0
  let last: Spot | undefined
  for (const stage of stagesOf(context, filter, order, after))
    for (const spot of spotsOf(stage, Math.min(limit, most))) {
      if (spots.length === limit || seen === most)
        return last ? { spots, next: placeOf(last) } : { spots }
      seen += 1
      last = spot
      if (spot.fits && (!reads || agrees(context, spot.seq, filter))) spots.push(spot)
    }
  return { spots }
}

const placeOf = ({ key, id }: Spot): Place => ({ key, id })

/** The streams of a stage as one, each read a little at a time. */
function* spotsOf({ streams, before }: Stage, wanted: number): Generator<Spot> {
  const chunk = Math.ceil(wanted / Math.max(1, streams.length)) + 8
  const heads = streams.map((read) => ({ read, spots: read(undefined, chunk), at: 0 }))
  for (;;) {
    let first: (typeof heads)[number] | undefined
    for (const head of heads) {
      if (head.at === head.spots.length && head.at >= chunk) {
        head.spots = head.read(head.spots.at(-1), chunk)
        head.at = 0
      }
      const spot = head.spots[head.at]
      if (spot && (!first || before(spot, first.spots[first.at]!))) first = head
    }
    if (!first) return
    yield first.spots[first.at++]!
  }
}

/**
 * A page, in as many steps as it takes. One letter more than asked is looked for, to know whether
 * there is a next page.
 */
export function* find(
  context: StoreContext,
  search: Search,
): Generator<undefined, Methods['find']['response']> {
  const letters: Methods['find']['response']['letters'] = []
  let after = search.after
  let last: Spot | undefined
  let bytes = 0
  for (;;) {
    const left = search.limit + 1 - letters.length
    const stride = searchStride(context, { ...search, limit: left, ...(after ? { after } : {}) })
    for (const spot of stride.spots) {
      if (letters.length === search.limit || bytes > maxPageBytes)
        return last ? { letters, next: placeOf(last) } : { letters }
      const found = findLetter(context, 'seq', spot.seq, search.whole ? 'whole' : 'summary')
      if (!found) continue
      bytes += found.kept[4]?.byteLength ?? 0
      letters.push(found.kept)
      last = spot
    }
    if (!stride.next) return { letters }
    after = stride.next
    yield
  }
}
