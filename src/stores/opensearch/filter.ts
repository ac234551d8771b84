import { states, type State } from '../../letter/letter.ts'
import type { LetterFilter } from '../../letter/query.ts'
import { term } from './fields.ts'

type Clause = Record<string, unknown>

export interface Conditions {
  bool: { filter: Clause[]; must_not: Clause[] }
}

/** A filter in the words of the server. What it means is said by `matches` in `letter/query.ts`. */
export function conditionsOf(filter: LetterFilter): Conditions {
  const must: Clause[] = [{ terms: { status: statesOf(filter) } }]
  const mustNot: Clause[] = []
  const among = (field: string, wanted: string | readonly string[] | undefined): void => {
    if (wanted !== undefined) must.push({ terms: { [field]: listOf(wanted).map(term) } })
  }
  among('task_id', filter.ids)
  among('queue', filter.queue)
  among('error_category', filter.category)
  among('priority', filter.priority)
  among('retry_policy', filter.policy)
  among('reason', filter.reason)
  among('fingerprint', filter.group)
  among('tags', filter.tag)
  among('lane', filter.lane)
  among('tenant', filter.tenant)
  range(must, 'dead_lettered_at', 'gte', filter.since)
  range(must, 'dead_lettered_at', 'lt', filter.until)
  range(must, 'settled_at', 'lt', filter.settledBefore)
  range(must, 'expires_at', 'lt', filter.expiresBefore)
  if (filter.text) must.push({ wildcard: { mentions: { value: containing(filter.text) } } })
  if (filter.dependent !== undefined)
    (filter.dependent ? must : mustNot).push({ exists: { field: 'waits_for' } })
  return { bool: { filter: must, must_not: mustNot } }
}

/** Always named, so that a draft, which has no state, is never found. */
function statesOf({ state, ids }: LetterFilter): State[] {
  if (state !== undefined) return listOf(state)
  return ids === undefined ? states.filter((one) => one !== 'archived') : [...states]
}

function listOf<T>(wanted: T | readonly T[]): T[] {
  return Array.isArray(wanted) ? (wanted as T[]) : [wanted as T]
}

function range(must: Clause[], field: string, bound: 'gte' | 'lt', at: string | undefined): void {
  if (at !== undefined) must.push({ range: { [`${field}.iso`]: { [bound]: at } } })
}

/** A pattern that means the text and nothing else, anywhere. */
function containing(text: string): string {
  return `*${text
    .toLowerCase()
    .toWellFormed()
    .replaceAll(/[\\*?]/g, String.raw`\$&`)}*`
}
