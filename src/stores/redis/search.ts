import type { DeadLetter, LetterSummary } from '../../letter/letter.ts'
import { matches, sortKey, type LetterFilter, type Order } from '../../letter/query.ts'
import { toTimestamp } from '../../letter/time.ts'
import type { Place } from '../search.ts'
import { needsReading } from '../rows/source-key.ts'
import { unpack, unpackSummary } from '../rows/unpack.ts'
import { toText, type Reply, type RedisConnection } from '../../backends/redis/connection.ts'
import { fetchLetters, type Extent } from './fetching.ts'
import { rowFilter } from './filter.ts'
import { keptOf, type Fields, type Hint } from './form.ts'
import { scripts } from './scripts.ts'
import { hintOf, keyless, narrowKeys, scoreOf, stagesOf, type Stage } from './stages.ts'

export interface Found {
  letter: DeadLetter | LetterSummary
  place: Place
}

export interface Stride {
  /** What matched, in order. */
  found: Found[]
  /** Where the next stride goes on. Absent at the end. */
  next?: Place
}

export interface Searcher {
  /** One bounded step of a search, from a place on. */
  stride(ask: StrideAsk): Promise<Stride>
  /** Entries of indexes that led to no letter, as far as searches met them. */
  strays(): number
}

export interface StrideAsk {
  filter: LetterFilter
  order: Order
  extent: Extent
  /** How many letters are wanted. */
  limit: number
  after?: Place | undefined
}

/** Letters that one script looks at, so that the server is never busy for long. Reading letters costs more than reading rows. */
const strideSpots = 500
const readStrideSpots = 200

/** Past this many payload bytes a step ends early. */
const maxStrideBytes = 8 * 2 ** 20

/** More letters than this are not sorted here but walked through in the order of an index. */
const maxPoints = 2000

export function searcher(connection: RedisConnection, tag: string): Searcher {
  return new RedisSearcher(connection, tag)
}

class RedisSearcher implements Searcher {
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

  async stride(ask: StrideAsk): Promise<Stride> {
    const points = await this.#pointsOf(ask)
    if (points) return this.#amongPoints(points, ask)
    const [stage, then] = await stagesOf(this.#connection, this.#tag, ask)
    const strides = await Promise.all(stage.groups.map((keys) => this.#scan(stage, keys, ask)))
    const stride = strides.length === 1 ? strides[0]! : merged(strides, ask)
    return stride.next || !then ? stride : { ...stride, next: { key: keyless, id: '' } }
  }

  /** The ids themselves, where they are given or an index says that they are few but in another order. */
  async #pointsOf({ filter, order }: StrideAsk): Promise<string[] | undefined> {
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

  /** Letters that are few are read, put in order, and given from the place on. */
  async #amongPoints(ids: string[], ask: StrideAsk): Promise<Stride> {
    const { filter, order, extent, limit, after } = ask
    const found: Found[] = []
    for (let at = 0; at < ids.length; at += strideSpots) {
      const some = ids.slice(at, at + strideSpots)
      for (const { id, fields } of await fetchLetters(
        this.#connection,
        some,
        extent,
        maxStrideBytes,
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

  async #scan(stage: Stage, keys: string[], ask: StrideAsk): Promise<Stride> {
    const { filter, order, extent, limit, after } = ask
    const most = needsReading(filter) ? readStrideSpots : strideSpots
    const { by, need, before } = stage
    // An empty id stands for the beginning.
    const from = after && after.id !== '' ? [by === 'id' ? 0 : scoreOf(after.key), after.id] : false
    const spec = { keys, by, need, before, extent, most, after: from }
    const rest = {
      desc: order === 'newest',
      limit,
      bytes: maxStrideBytes,
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

/** The steps of several groups as one. It reaches only as far as the group that has come the least far. */
function merged(strides: Stride[], { order, limit }: StrideAsk): Stride {
  let reach: Place | undefined
  for (const { next } of strides)
    if (next && (!reach || comesAfter(reach, next, order))) reach = next
  const found = strides
    .flatMap((stride) => stride.found)
    .filter(({ place }) => !reach || !comesAfter(place, reach, order))
  const page = cut(inOrder(found, order), limit)
  return page.next || !reach ? page : { ...page, next: reach }
}

function inOrder(found: Found[], order: Order): Found[] {
  return found.sort((a, b) => (comesAfter(b.place, a.place, order) ? -1 : 1))
}

function cut(found: Found[], limit: number): Stride {
  if (found.length <= limit) return { found }
  return { found: found.slice(0, limit), next: found[limit - 1]!.place }
}

/** A time in a zset as places have it: the moment, since that is what letters sort by. */
function keyOf(time: Buffer): string {
  const ms = Number(toText(time))
  if (!Number.isFinite(ms)) return keyless
  // `toTimestamp` begins in 1970, and a page that ends before would go on from there.
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
