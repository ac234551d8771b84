import type { LetterFilter, Order } from '../../letter/query.ts'
import type { Place, Search } from '../search.ts'
import { priorities, pending, retrying, wait } from './codes.ts'
import { sourceKey } from './source-key.ts'
import { listed } from './tally.ts'

/** The sort key of letters without the time that a search is ordered by: after all others. */
export const keyless = '~'

/** With more ranges than this, letters are read by id. */
const maxRanges = 512

/** A page ends early past this number of payload bytes: it may always be shorter than its limit. */
const maxPageBytes = 32 * 2 ** 20

/** A partial page ends after this number of steps, which is about a fifth of a second. */
const maxPartialSteps = 32

/** Part of an index. Stores name queues by number or by name. */
export type Range<Q> =
  | { index: 'ids'; ids: readonly string[] }
  | { index: 'list'; queue: Q; state: number }
  | { index: 'due'; queue: Q; wait: number; priority: number }
  | { index: 'settled'; queue: Q; state: number }
  | { index: NarrowIndex; value: string }
  | { index: 'unmet' }
  | { index: 'all' }

export type NarrowIndex = 'source' | 'tag' | 'lane' | 'group' | 'tenant'

/** Ranges that are read together and merged into one order. */
export interface Stage<Q> {
  ranges: Range<Q>[]
  /**
   * What entries are sorted by before their id. `none`: only letters without the time of the order.
   * `computed`: the time of the order, which the index does not have.
   */
  key: 'id' | 'due' | 'settled' | 'none' | 'computed'
  /** Descending. */
  isDown: boolean
}

export interface PlanInput<Q> {
  filter: LetterFilter
  order: Order
  /** The queues that the filter allows. */
  queues: readonly Q[]
  /** The codes of the states that the filter allows. */
  states: readonly number[]
  /** The ids, where the filter or an index gives few of them. */
  ids: readonly string[] | undefined
  /** Whether a narrower index has fewer letters than the queues and states. */
  preferNarrow: boolean
}

/**
 * The index ranges that contain all letters that can match, in the requested order. Empty ranges
 * are included: a letter that moves to another range during a search must be found there.
 */
export function planStages<Q>(input: PlanInput<Q>): Stage<Q>[] {
  const { filter, order, ids } = input
  const isDown = order === 'newest'
  const isById = isDown || order === 'oldest'
  if (ids) return [{ ranges: [{ index: 'ids', ids }], key: isById ? 'id' : 'computed', isDown }]
  if (isById) return [{ ranges: idRanges(input), key: 'id', isDown }]
  const ranges: Range<Q>[] = order === 'due' ? dueRanges(input) : listRanges(input, 'settled')
  const timed: Stage<Q> = { ranges, key: order, isDown }
  const last: Stage<Q> = { ranges: listRanges(input, 'list'), key: 'none', isDown }
  return order === 'settled' && filter.settledBefore !== undefined ? [timed] : [timed, last]
}

function idRanges<Q>(input: PlanInput<Q>): Range<Q>[] {
  const narrow = input.preferNarrow ? narrowRanges<Q>(input.filter) : undefined
  if (narrow && narrow.length <= maxRanges) return narrow
  const ranges = listRanges(input, 'list')
  return ranges.length > maxRanges ? [{ index: 'all' }] : ranges
}

/** The ranges of the most selective field that has an index of its own. */
export function narrowRanges<Q>(filter: LetterFilter): Range<Q>[] | undefined {
  const { tag, sourceId, lane, group, tenant, dependent } = filter
  if (tag !== undefined) return [{ index: 'tag', value: tag }]
  if (sourceId !== undefined) return [{ index: 'source', value: sourceKey(sourceId) }]
  if (lane !== undefined) return [{ index: 'lane', value: lane }]
  if (group !== undefined)
    return [...new Set(listed(group))].map((value) => ({ index: 'group', value }))
  if (tenant !== undefined) return [{ index: 'tenant', value: tenant }]
  return dependent === true ? [{ index: 'unmet' }] : undefined
}

function listRanges<Q>({ queues, states }: PlanInput<Q>, index: 'list' | 'settled'): Range<Q>[] {
  return queues.flatMap((queue) => states.map((state) => ({ index, queue, state })))
}

/** The due index is by queue, wait and priority. Leased letters have no retryAt. */
function dueRanges<Q>({ queues, states }: PlanInput<Q>): Range<Q>[] {
  const waits = new Set<number>()
  for (const state of states)
    if (state === pending) waits.add(wait.ready).add(wait.held)
    else if (state !== retrying) waits.add(wait.resting)
  return queues.flatMap((queue) =>
    [...waits].flatMap((place) =>
      priorities.map((_, priority) => ({ index: 'due' as const, queue, wait: place, priority })),
    ),
  )
}

/** A request for letters of a stage, in order. A step may end before `wanted` are found. */
export interface StepRequest<Q> {
  stage: Stage<Q>
  after: Place | undefined
  wanted: number
}

export interface Found<T> {
  place: Place
  item: T
  /** The size of its payload, if that was read. */
  bytes: number
}

export interface Step<T> {
  found: Found<T>[]
  /** Where the next step continues. Absent at the end of the stage. */
  next?: Place
}

/**
 * Reads a page in steps: yields requests and is given what was found. It reads one letter more than
 * requested, to know whether there is a next page.
 */
export function* readPage<Q, T>(
  stages: readonly Stage<Q>[],
  { limit, after: start, partial = false }: Pick<Search, 'limit' | 'after' | 'partial'>,
): Generator<StepRequest<Q>, { items: T[]; next?: Place }, Step<T>> {
  const items: T[] = []
  let bytes = 0
  let last: Place | undefined
  let steps = 0
  for (const stage of stages) {
    const isLastStage = stage.key === 'none'
    if (start?.key === keyless && !isLastStage && stages.length > 1) continue
    let after = isLastStage && start?.key !== keyless ? undefined : start
    do {
      const step: Step<T> = yield { stage, after, wanted: limit + 1 - items.length }
      for (const found of step.found) {
        if (last && (items.length === limit || bytes > maxPageBytes)) return { items, next: last }
        items.push(found.item)
        bytes += found.bytes
        last = found.place
      }
      after = step.next
      if (after && partial && ++steps >= maxPartialSteps) return { items, next: after }
    } while (after)
  }
  return { items }
}

/** Compares two places in the order of a stage. */
export function comparePlaces(a: Place, b: Place, isDown: boolean): number {
  const up = a.key === b.key ? compareStrings(a.id, b.id) : compareStrings(a.key, b.key)
  return isDown ? -up : up
}

function compareStrings(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0
}

/** Added to times in sort keys, so that those before 1970 are positive as well. */
const keyOffsetMs = 10 ** 15

/** The sort key of a time: digits that sort like the timestamps. */
export function timeKey(ms: number): string {
  return String(ms + keyOffsetMs).padStart(16, '0')
}

/** The time of a sort key. NaN: the key is not one of a time. */
export function keyTime(key: string): number {
  return Number(key) - keyOffsetMs
}
