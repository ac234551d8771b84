import {
  archived,
  categoryCode,
  policyCode,
  priorityCode,
  stateCode,
  states,
} from '../../kept/codes.ts'
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

export function listed<T>(value: T | readonly T[]): readonly T[] {
  return Array.isArray(value) ? (value as readonly T[]) : [value as T]
}

/** Archived letters are out of sight unless they are asked for, by state or by id. */
export function wantedStates({ state, ids }: LetterFilter): number[] {
  if (state !== undefined) return [...new Set(listed(state).map(stateCode))]
  return states.flatMap((_, code) => (ids === undefined && code === archived ? [] : [code]))
}

export function rowFilter(filter: LetterFilter): RowFilter {
  const { queue, category, priority, policy, reason, group, lane, tenant, tag } = filter
  const { since, until, settledBefore, expiresBefore, dependent } = filter
  const some = <T, U>(value: T | readonly T[] | undefined, each: (one: T) => U): U[] | undefined =>
    value === undefined ? undefined : listed(value).map(each)
  const text = (one: string): string => one.toWellFormed()
  const all = {
    queues: some(queue, text),
    states: wantedStates(filter),
    categories: some(category, categoryCode),
    priorities: some(priority, priorityCode),
    policies: some(policy, policyCode),
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

const cellFields = new Set<string>(['queue', 'state', 'category', 'priority', 'policy'])

/** Whether the counts alone can answer: no other field is named. */
export function isCountable(filter: LetterFilter): boolean {
  return Object.entries(filter).every(
    ([field, wanted]) => wanted === undefined || cellFields.has(field),
  )
}
