import type { GroupFacet, TrendPoint } from '../letter/group.ts'
import type { DeadLetter, ErrorCategory, Failure, Json, LetterSummary } from '../letter/letter.ts'
import { toMs, toTimestamp, type Timestamp } from '../letter/time.ts'

export interface Facet {
  count: number
  firstAt: Timestamp
  lastAt: Timestamp
}

/** What is known about the failures of a fingerprint, besides the number of its letters. */
export interface Seen {
  newest: { id: string; queue: string; category: ErrorCategory; title: string }
  firstAt: Timestamp
  lastAt: Timestamp
  /** Failures by hour ("2026-01-04T09") and by day ("2026-01-04"). */
  hours: Map<string, number>
  days: Map<string, number>
  queues: Map<string, Facet>
  tenants: Map<string, Facet>
  hosts: Map<string, Facet>
  /** The name of failures without a version is "". */
  versions: Map<string, Facet>
}

const hourMs = 3_600_000
const dayMs = 24 * hourMs
const trendHours = 48
export const trendDays = 30
/** Names that are kept of each facet; the least frequent ones are dropped. */
const maxNames = 20
const maxVersions = 50
/** Names that are collected in memory between two writes. */
const maxPendingNames = 100
const maxName = 200
const maxTitle = 160

/** "Error: first line of the message". */
export function titleOf({ name, message }: Failure): string {
  return `${name}: ${message.split('\n', 1)[0]!.slice(0, maxTitle)}`
}

/** What is recorded of a failure. `deadLetteredAt` is the time of the failure. */
export type TrackedFailure = Pick<
  DeadLetter,
  'id' | 'queue' | 'category' | 'failure' | 'fingerprint' | 'app' | 'deadLetteredAt'
> & { tenant?: string | undefined }

/** Collects the failures of a fingerprint in memory. `add` is on the path of every capture. */
export class PendingGroup {
  #firstAt = ''
  #lastAt = ''
  #id = ''
  #queue = ''
  #category: ErrorCategory = 'unknown'
  #failure: Failure | undefined
  readonly #hours = new Map<string, number>()
  readonly #queues = new Map<string, Facet>()
  readonly #tenants = new Map<string, Facet>()
  readonly #hosts = new Map<string, Facet>()
  readonly #versions = new Map<string, Facet>()

  add({ id, queue, category, failure, tenant, app, deadLetteredAt: at }: TrackedFailure): void {
    if (this.#firstAt === '' || at < this.#firstAt) this.#firstAt = at
    if (at >= this.#lastAt) {
      this.#lastAt = at
      this.#id = id
      this.#queue = queue
      this.#category = category
      this.#failure = failure
    }
    const hour = at.slice(0, 13)
    this.#hours.set(hour, (this.#hours.get(hour) ?? 0) + 1)
    addTo(this.#queues, queue, at)
    if (tenant !== undefined) addTo(this.#tenants, tenant, at)
    if (app) addTo(this.#hosts, app.host, at)
    addTo(this.#versions, app?.version ?? '', at)
  }

  seen(): Seen {
    const title = this.#failure ? titleOf(this.#failure) : ''
    return {
      newest: { id: this.#id, queue: this.#queue, category: this.#category, title },
      firstAt: this.#firstAt,
      lastAt: this.#lastAt,
      hours: this.#hours,
      days: daysOf(this.#hours),
      queues: this.#queues,
      tenants: this.#tenants,
      hosts: this.#hosts,
      versions: this.#versions,
    }
  }
}

function addTo(facets: Map<string, Facet>, name: string, at: Timestamp): void {
  const facet = facets.get(name)
  if (facet) {
    facet.count++
    if (at > facet.lastAt) facet.lastAt = at
    else if (at < facet.firstAt) facet.firstAt = at
  } else if (facets.size < maxPendingNames) facets.set(name, { count: 1, firstAt: at, lastAt: at })
}

function daysOf(hours: ReadonlyMap<string, number>): Map<string, number> {
  const days = new Map<string, number>()
  for (const [hour, count] of hours) {
    const day = hour.slice(0, 10)
    days.set(day, (days.get(day) ?? 0) + count)
  }
  return days
}

/** What one letter shows, for letters that were captured without a record of their group. */
export function seenOf(letter: DeadLetter | LetterSummary): Seen {
  const { id, queue, category, failure, deadLetteredAt: at, tenant, app } = letter
  const facet = (name: string | undefined): Map<string, Facet> =>
    new Map(name === undefined ? [] : [[name, { count: 1, firstAt: at, lastAt: at }]])
  return {
    newest: { id, queue, category, title: titleOf(failure) },
    firstAt: at,
    lastAt: at,
    hours: new Map(),
    days: new Map(),
    queues: facet(queue),
    tenants: facet(tenant),
    hosts: facet(app?.host),
    versions: facet(app?.version),
  }
}

/** Adds up what two records know. The result is bounded. */
export function mergeSeen(a: Seen, b: Seen): Seen {
  const lastAt = a.lastAt > b.lastAt ? a.lastAt : b.lastAt
  const lastMs = toMs(lastAt)
  const oldestHour = toTimestamp(lastMs - (trendHours - 1) * hourMs).slice(0, 13)
  const oldestDay = toTimestamp(lastMs - (trendDays - 1) * dayMs).slice(0, 10)
  return {
    newest: a.lastAt > b.lastAt ? a.newest : b.newest,
    firstAt: a.firstAt < b.firstAt ? a.firstAt : b.firstAt,
    lastAt,
    hours: mergeCounts(a.hours, b.hours, oldestHour),
    days: mergeCounts(a.days, b.days, oldestDay),
    queues: mergeFacets(a.queues, b.queues, maxNames),
    tenants: mergeFacets(a.tenants, b.tenants, maxNames),
    hosts: mergeFacets(a.hosts, b.hosts, maxNames),
    versions: mergeFacets(a.versions, b.versions, maxVersions),
  }
}

type Counts = ReadonlyMap<string, number>

function mergeCounts(a: Counts, b: Counts, oldest: string): Map<string, number> {
  const sums = new Map<string, number>()
  for (const counts of [a, b])
    for (const [key, count] of counts)
      if (key >= oldest) sums.set(key, (sums.get(key) ?? 0) + count)
  return sums
}

type Facets = ReadonlyMap<string, Facet>

function mergeFacets(a: Facets, b: Facets, max: number): Map<string, Facet> {
  const sums = new Map(a)
  for (const [name, facet] of b) {
    const other = sums.get(name)
    sums.set(name, other ? addFacets(other, facet) : facet)
  }
  return sums.size <= max ? sums : new Map(byCount(sums).slice(0, max))
}

function addFacets(a: Facet, b: Facet): Facet {
  return {
    count: a.count + b.count,
    firstAt: a.firstAt < b.firstAt ? a.firstAt : b.firstAt,
    lastAt: a.lastAt > b.lastAt ? a.lastAt : b.lastAt,
  }
}

function byCount(facets: Facets): [string, Facet][] {
  return [...facets].sort(([a, one], [b, other]) => other.count - one.count || (a < b ? -1 : 1))
}

/** The queues of all failures. Undefined: a full list of queues may lack others. */
export function seenQueues({ queues }: Pick<Seen, 'queues'>): string[] | undefined {
  return queues.size > 0 && queues.size < maxNames ? [...queues.keys()] : undefined
}

/** The facets for people, the most frequent first. */
export function facetsOf(facets: Facets): GroupFacet[] {
  return byCount(facets)
    .filter(([name]) => name !== '')
    .map(([name, { count, firstAt, lastAt }]) => ({
      name,
      count,
      firstSeen: firstAt,
      lastSeen: lastAt,
    }))
}

/** Failures of the last 48 hours and 30 days, the oldest first. The last point is the present. */
export function trendOf(
  { hours, days }: Pick<Seen, 'hours' | 'days'>,
  nowMs: number,
): { hours: TrendPoint[]; days: TrendPoint[] } {
  return {
    hours: points(hours, nowMs, trendHours, hourMs, 13),
    days: points(days, nowMs, trendDays, dayMs, 10),
  }
}

/** Failures in each of the last 24 clock hours, the oldest first. */
export function lastDayOf({ hours }: Pick<Seen, 'hours'>, nowMs: number): number[] {
  return points(hours, nowMs, 24, hourMs, 13).map(({ count }) => count)
}

function points(
  counts: Counts,
  nowMs: number,
  length: number,
  stepMs: number,
  digits: number,
): TrendPoint[] {
  return Array.from({ length }, (_, n) => {
    const startMs = nowMs - (nowMs % stepMs) - (length - 1 - n) * stepMs
    const at = toTimestamp(startMs)
    return { at, count: counts.get(at.slice(0, digits)) ?? 0 }
  })
}

/** Failures of the last 24 hours, minus those of the 24 hours before. */
export function growthOf({ hours }: Pick<Seen, 'hours'>, nowMs: number): number {
  const middle = toTimestamp(nowMs - 23 * hourMs).slice(0, 13)
  const oldest = toTimestamp(nowMs - 47 * hourMs).slice(0, 13)
  let growth = 0
  for (const [hour, count] of hours)
    if (hour >= middle) growth += count
    else if (hour >= oldest) growth -= count
  return growth
}

/** All failures of a record that was not shortened. */
export function countFailures({ hours }: Pick<Seen, 'hours'>): number {
  return [...hours.values()].reduce((sum, count) => sum + count, 0)
}

/** Failures in the clock hour of a timestamp. */
export function countInHour({ hours }: Pick<Seen, 'hours'>, at: Timestamp): number {
  return hours.get(at.slice(0, 13)) ?? 0
}

type StoredFacet = [name: string, count: number, firstAt: string, lastAt: string]

interface StoredSeen {
  newest: Seen['newest']
  firstAt: string
  lastAt: string
  hours: Record<string, number>
  days: Record<string, number>
  queues: StoredFacet[]
  tenants: StoredFacet[]
  hosts: StoredFacet[]
  versions: StoredFacet[]
}

/** As stored in a record. */
export function writeSeen(seen: Seen): Json {
  const facets = (map: Facets): StoredFacet[] =>
    [...map].map(([name, { count, firstAt, lastAt }]) => [
      name.slice(0, maxName).toWellFormed(),
      count,
      firstAt,
      lastAt,
    ])
  const stored: StoredSeen = {
    newest: { ...seen.newest, title: seen.newest.title.toWellFormed() },
    firstAt: seen.firstAt,
    lastAt: seen.lastAt,
    hours: Object.fromEntries(seen.hours),
    days: Object.fromEntries(seen.days),
    queues: facets(seen.queues),
    tenants: facets(seen.tenants),
    hosts: facets(seen.hosts),
    versions: facets(seen.versions),
  }
  return stored as unknown as Json
}

export function readSeen(value: Json): Seen {
  const stored = value as unknown as StoredSeen
  const facets = (list: StoredFacet[]): Map<string, Facet> =>
    new Map(list.map(([name, count, firstAt, lastAt]) => [name, { count, firstAt, lastAt }]))
  return {
    newest: stored.newest,
    firstAt: stored.firstAt,
    lastAt: stored.lastAt,
    hours: new Map(Object.entries(stored.hours)),
    days: new Map(Object.entries(stored.days)),
    queues: facets(stored.queues),
    tenants: facets(stored.tenants),
    hosts: facets(stored.hosts),
    versions: facets(stored.versions),
  }
}
