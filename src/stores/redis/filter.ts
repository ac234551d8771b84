import { states } from '../rows/codes.ts'
import { cellCodes, listed } from '../rows/tally.ts'
import type { LetterFilter } from '../../letter/query.ts'

/** A filter for the script `scan`: the conditions on the row alone. `matches` decides. */
export interface RowFilter {
  queues?: string[]
  states?: number[]
  categories?: number[]
  priorities?: number[]
  policies?: number[]
  reasons?: string[]
  groups?: string[]
  lanes?: string[]
  tenants?: string[]
  tag?: string
  since?: string
  until?: string
  settledBefore?: string
  expiresBefore?: string
  dependent?: boolean
}

/** The states that match, since indexes are separated by state. */
export function wantedStates(filter: LetterFilter): number[] {
  return cellCodes(filter).states ?? [...states.keys()]
}

export function rowFilter(filter: LetterFilter): RowFilter {
  const { queue, reason, group, lane, tenant, tag } = filter
  const { since, until, settledBefore, expiresBefore, dependent } = filter
  const some = <T, U>(value: T | readonly T[] | undefined, each: (one: T) => U): U[] | undefined =>
    value === undefined ? undefined : listed(value).map(each)
  const text = (one: string): string => one.toWellFormed()
  const all = {
    ...cellCodes(filter),
    queues: some(queue, text),
    states: wantedStates(filter),
    reasons: some(reason, (one) => one as string),
    groups: some(group, text),
    lanes: some(lane, text),
    tenants: some(tenant, text),
    tag: tag?.toWellFormed(),
    since,
    until,
    settledBefore,
    expiresBefore,
    dependent,
  }
  return Object.fromEntries(Object.entries(all).filter(([, value]) => value !== undefined))
}
