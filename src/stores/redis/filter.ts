import { states } from '../rows/codes.ts'
import { cellCodes, listed } from '../rows/tally.ts'
import type { LetterFilter } from '../../letter/query.ts'

/** A filter as the script `scan` takes it: what can be told from the row alone. `matches` has the last word. */
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

/** All states that letters may be in, since places are looked up by state. */
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
