import type { DeadLetter, LetterSummary } from '../../letter/letter.ts'
import { matches, sortKey, type LetterFilter, type Order } from '../../letter/query.ts'
import { toTimestamp } from '../../letter/time.ts'
import type { Place } from '../search.ts'
import { needsReading } from '../rows/source-key.ts'
import { unpack, unpackSummary } from '../rows/unpack.ts'
import { toText, type Reply, type RedisConnection } from '../../backends/redis/connection.ts'
import { fetchLetters, type Extent } from './fetch-letters.ts'
import { rowFilter } from './filter.ts'
import { keptOf, type Fields, type Hint } from './form.ts'
import { scripts } from './scripts.ts'
import { hintOf, keyless, narrowKeys, scoreOf, rangeSetsOf, type RangeSet } from './ranges.ts'

export interface Found {
  letter: DeadLetter | LetterSummary
  place: Place
}

export interface SearchStep {
  /** The matching letters, in order. */
  found: Found[]
  /** Where the next step continues. Absent at the end. */
  next?: Place
}

export interface SearchRequest {
  filter: LetterFilter
  order: Order
  extent: Extent
  /** The maximum number of letters. */
  limit: number
  after?: Place | undefined
}

/**
 * Index entries that one script reads, so that no script blocks the server for long. Reading
 * letters costs more than reading rows.
 */
const stepEntries = 500
const readStepEntries = 200

/** A step ends early past this number of payload bytes. */
const maxStepBytes = 8 * 2 ** 20

/**
 * The maximum number of letters to sort here; beyond it, they are read in the order of an index.
 */
const maxPoints = 2000

/** Searches in bounded steps. */
export class Searcher {
  readonly #connection: RedisConnection
  readonly #tag: string
  #strays = 0

  constructor(connection: RedisConnection, tag: string) {
    this.#connection = connection
    this.#tag = tag
  }

  strays(): number {
    return this.#strays
  }

  async step(request: SearchRequest): Promise<SearchStep> {
    const points = await this.#pointsOf(request)
    if (points) return this.#amongPoints(points, request)
    const [rangeSet, then] = await rangeSetsOf(this.#connection, this.#tag, request)
    const steps = await Promise.all(
      rangeSet.groups.map((keys) => this.#scan(rangeSet, keys, request)),
    )
    const step = steps.length === 1 ? steps[0]! : merged(steps, request)
    return step.next || !then ? step : { ...step, next: { key: keyless, id: '' } }
  }

  /** The ids, if they are given or an index shows that they are few but in another order. */
  async #pointsOf({ filter, order }: SearchRequest): Promise<string[] | undefined> {
    if (filter.ids) return [...new Set(filter.ids)]
    const ranges: [key: string, ...range: string[]][] = []
    if (filter.expiresBefore !== undefined)
      ranges.push(['x', '-inf', `(${scoreOf(filter.expiresBefore)}`, 'BYSCORE'])
    if (order === 'due' || order === 'settled')
      for (const key of narrowKeys(filter)) ranges.push([key, '-', '+', 'BYLEX'])
    const most = ['LIMIT', '0', String(maxPoints + 1)]
    for (const [key, ...range] of ranges) {
      const found = await this.#connection.send('ZRANGE', `${this.#tag}:${key}`, ...range, ...most)
      const ids = (found as Reply[]).map(toText)
      if (ids.length <= maxPoints) return ids
    }
    return undefined
  }

  /** Reads a few letters, sorts them, and returns those after the position. */
  async #amongPoints(ids: string[], request: SearchRequest): Promise<SearchStep> {
    const { filter, order, extent, limit, after } = request
    const found: Found[] = []
    for (let at = 0; at < ids.length; at += stepEntries) {
      const some = ids.slice(at, at + stepEntries)
      for (const { id, fields } of await fetchLetters(
        this.#connection,
        some,
        extent,
        maxStepBytes,
      )) {
        const letter = letterOf(id, fields, extent)
        const waits = (fields[6] as Buffer[]).length > 0
        const place = { key: sortKey(letter, order), id }
        if (!matches(letter, filter) || (filter.dependent ?? waits) !== waits) continue
        if (!after || comesAfter(place, after, order)) found.push({ letter, place })
      }
    }
    return cut(inOrder(found, order), limit)
  }

  async #scan(rangeSet: RangeSet, keys: string[], request: SearchRequest): Promise<SearchStep> {
    const { filter, order, extent, limit, after } = request
    const most = needsReading(filter) ? readStepEntries : stepEntries
    const { by, need, before } = rangeSet
    // An empty id is the start.
    const from = after && after.id !== '' ? [by === 'id' ? 0 : scoreOf(after.key), after.id] : false
    const spec = { keys, by, need, before, extent, most, after: from }
    const rest = {
      desc: order === 'newest',
      limit,
      bytes: maxStepBytes,
      filter: rowFilter(filter),
    }
    const reply = await this.#connection.run(scripts.scan, [JSON.stringify({ ...spec, ...rest })])
    const [more, lastAt, lastId, lost, spots] = reply as ScanReply
    this.#strays += lost
    const placeOf = (id: string, time: Buffer | null): Place => ({
      id,
      key: time !== null ? keyOf(time) : need ? keyless : id,
    })
    const found = spots.flatMap(([id, time, n, fields]) => {
      const letter = letterOf(toText(id), fields, extent, hintOf(keys[n - 1]!))
      return matches(letter, filter) ? [{ letter, place: placeOf(letter.id, time) }] : []
    })
    if (more === 0 || lastId === null) return { found }
    return { found, next: placeOf(toText(lastId), lastAt) }
  }
}

type ScanReply = [
  more: number,
  lastAt: Buffer | null,
  lastId: Buffer | null,
  lost: number,
  spots: [id: Buffer, time: Buffer | null, key: number, fields: Fields][],
]

/**
 * Merges the steps of several groups. The result reaches only as far as the group that is least
 * far.
 */
function merged(steps: SearchStep[], { order, limit }: SearchRequest): SearchStep {
  let reach: Place | undefined
  for (const { next } of steps) if (next && (!reach || comesAfter(reach, next, order))) reach = next
  const found = steps
    .flatMap((step) => step.found)
    .filter(({ place }) => !reach || !comesAfter(place, reach, order))
  const page = cut(inOrder(found, order), limit)
  return page.next || !reach ? page : { ...page, next: reach }
}

function inOrder(found: Found[], order: Order): Found[] {
  return found.sort((a, b) => (comesAfter(b.place, a.place, order) ? -1 : 1))
}

function cut(found: Found[], limit: number): SearchStep {
  if (found.length <= limit) return { found }
  return { found: found.slice(0, limit), next: found[limit - 1]!.place }
}

/** The score of a zset as a sort key: a timestamp, since letters are sorted by it. */
function keyOf(time: Buffer): string {
  const ms = Number(toText(time))
  if (!Number.isFinite(ms)) return keyless
  // `toTimestamp` begins in 1970, and a page that ends earlier would continue from there.
  return ms < 0 ? new Date(ms).toISOString() : toTimestamp(ms)
}

function letterOf(
  id: string,
  fields: Fields,
  extent: Extent,
  hint?: Hint,
): DeadLetter | LetterSummary {
  const kept = keptOf(id, fields, hint)
  return extent === 'whole' ? unpack(kept) : unpackSummary(kept)
}

function comesAfter(one: Place, other: Place, order: Order): boolean {
  if (order === 'newest') return one.id < other.id
  if (order === 'oldest') return one.id > other.id
  return one.key > other.key || (one.key === other.key && one.id > other.id)
}
