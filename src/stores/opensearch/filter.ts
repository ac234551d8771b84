import { states, type State } from '../../letter/letter.ts'
import type { LetterFilter } from '../../letter/query.ts'
import { metadataTerm, term } from './fields.ts'

type Clause = Record<string, unknown>

export interface Conditions {
  bool: { filter: Clause[]; must_not: Clause[] }
}

/** Translates a filter to a query. `matches` in `letter/query.ts` defines its meaning. */
export function conditionsOf(filter: LetterFilter): Conditions {
  const must: Clause[] = [{ terms: { status: statesOf(filter) } }]
  const mustNot: Clause[] = []
  const among = (field: string, wanted: string | readonly string[] | undefined): void => {
    if (wanted !== undefined) must.push({ terms: { [field]: listOf(wanted).map(term) } })
  }
  among('letter_id', filter.ids)
  among('queue', filter.queue)
  among('category', filter.category)
  among('priority', filter.priority)
  among('retry_policy', filter.policy)
  among('reason', filter.reason)
  among('fingerprint', filter.group)
  among('tags', filter.tag)
  among('lane', filter.lane)
  among('tenant', filter.tenant)
  among('source_id', filter.sourceId)
  for (const [key, value] of Object.entries(filter.metadata ?? {}))
    if (value !== undefined) must.push({ term: { metadata_terms: metadataTerm(key, value) } })
  range(must, 'dead_lettered_at', 'gte', filter.since)
  range(must, 'dead_lettered_at', 'lt', filter.until)
  range(must, 'settled_at', 'lt', filter.settledBefore)
  range(must, 'expires_at', 'lt', filter.expiresBefore)
  if (filter.text) must.push(...containing(filter.text.toLowerCase().toWellFormed()))
  if (filter.dependent !== undefined)
    (filter.dependent ? must : mustNot).push({ exists: { field: 'waits_for' } })
  return { bool: { filter: must, must_not: mustNot } }
}

/** Always present, so that a draft, which has no state, is never found. */
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

/** The server rejects longer repetitive patterns: compiling them takes quadratic time. */
const longestPattern = 200

const wholeText = `for (said in doc['mentions']) { if (said.contains(params.text)) { return true } } return false`

/**
 * Matches the text anywhere. The rest of a long text is checked by a script on the matches of its
 * beginning.
 */
function containing(text: string): Clause[] {
  const beginning = text.slice(0, longestPattern)
  // Not in the middle of a surrogate pair.
  const sound = beginning.isWellFormed() ? beginning : beginning.slice(0, -1)
  const pattern = `*${sound.replaceAll(/[\\*?]/g, String.raw`\$&`)}*`
  const begun = { wildcard: { mentions: { value: pattern } } }
  if (text.length <= longestPattern) return [begun]
  return [begun, { script: { script: { source: wholeText, params: { text } } } }]
}
