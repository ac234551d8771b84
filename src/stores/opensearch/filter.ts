import { states, type State } from '../../letter/letter.ts'
import type { LetterFilter } from '../../letter/query.ts'
import { toMetadataTerm, toTerm } from './fields.ts'

type Clause = Record<string, unknown>

export interface Conditions {
  bool: { filter: Clause[]; must_not: Clause[] }
}

/** Translates a filter to a query. `matches` in `letter/query.ts` defines its meaning. */
export function conditionsOf(filter: LetterFilter): Conditions {
  const must: Clause[] = [{ terms: { status: statesOf(filter) } }]
  const mustNot: Clause[] = []
  const addTerms = (field: string, wanted: string | readonly string[] | undefined): void => {
    if (wanted !== undefined) must.push({ terms: { [field]: listOf(wanted).map(toTerm) } })
  }
  addTerms('letter_id', filter.ids)
  addTerms('queue', filter.queue)
  addTerms('category', filter.category)
  addTerms('priority', filter.priority)
  addTerms('retry_policy', filter.policy)
  addTerms('reason', filter.reason)
  addTerms('fingerprint', filter.group)
  addTerms('tags', filter.tag)
  addTerms('lane', filter.lane)
  addTerms('tenant', filter.tenant)
  addTerms('source_id', filter.sourceId)
  for (const [key, value] of Object.entries(filter.metadata ?? {}))
    if (value !== undefined) must.push({ term: { metadata_terms: toMetadataTerm(key, value) } })
  addRange(must, 'dead_lettered_at', 'gte', filter.since)
  addRange(must, 'dead_lettered_at', 'lt', filter.until)
  addRange(must, 'settled_at', 'lt', filter.settledBefore)
  addRange(must, 'expires_at', 'lt', filter.expiresBefore)
  if (filter.text) must.push(...textClauses(filter.text.toLowerCase().toWellFormed()))
  if (filter.dependent !== undefined)
    (filter.dependent ? must : mustNot).push({ exists: { field: 'waits_for' } })
  return { bool: { filter: must, must_not: mustNot } }
}

/** Every query has a condition on the state, so that drafts, which have no state, do not match. */
function statesOf({ state, ids }: LetterFilter): State[] {
  if (state !== undefined) return listOf(state)
  return ids === undefined ? states.filter((one) => one !== 'archived') : [...states]
}

function listOf<T>(wanted: T | readonly T[]): T[] {
  return Array.isArray(wanted) ? (wanted as T[]) : [wanted as T]
}

function addRange(
  must: Clause[],
  field: string,
  bound: 'gte' | 'lt',
  at: string | undefined,
): void {
  if (at !== undefined) must.push({ range: { [`${field}.iso`]: { [bound]: at } } })
}

/** The server rejects longer repetitive patterns: compiling them takes quadratic time. */
const maxPatternLength = 200

const containsText = `for (mention in doc['mentions']) { if (mention.contains(params.text)) { return true } } return false`

/**
 * Matches the text anywhere in `mentions`. A long text is matched by its beginning, and a script
 * then checks the whole text.
 */
function textClauses(text: string): Clause[] {
  const cut = text.slice(0, maxPatternLength)
  // The cut may have split a surrogate pair.
  const beginning = cut.isWellFormed() ? cut : cut.slice(0, -1)
  const pattern = `*${beginning.replaceAll(/[\\*?]/g, String.raw`\$&`)}*`
  const wildcard = { wildcard: { mentions: { value: pattern } } }
  if (text.length <= maxPatternLength) return [wildcard]
  return [wildcard, { script: { script: { source: containsText, params: { text } } } }]
}
