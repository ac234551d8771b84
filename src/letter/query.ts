import type {
  DeadLetter,
  ErrorCategory,
  Json,
  LetterSummary,
  Priority,
  Reason,
  RetryPolicy,
  State,
} from './letter.ts'
import { sourceIdOf } from './source-id.ts'
import type { Timestamp } from './time.ts'

/** A metadata value that a filter can match. */
export type JsonScalar = Exclude<Json, Json[] | { [key: string]: Json }>

/**
 * Selects letters. All given fields must match; a list matches any of its values, and an empty list
 * matches no letter. Without `state` or `ids`, archived letters are left out. Unknown keys and
 * values are rejected: see `checkFilter`.
 */
export interface LetterFilter {
  ids?: string[]
  queue?: string | string[]
  state?: State | State[]
  category?: ErrorCategory | ErrorCategory[]
  priority?: Priority | Priority[]
  policy?: RetryPolicy['kind']
  reason?: Reason
  /** Fingerprints: letters with the same cause. */
  group?: string | string[]
  tag?: string
  lane?: string
  tenant?: string
  /**
   * The id of the work in its source: see `sourceIdOf`. Every store has an index for it.
   */
  sourceId?: string
  /**
   * Top-level metadata keys and their values. OpenSearch has an index for them; the other stores
   * read each letter that matches the other conditions.
   */
  metadata?: { [key: string]: JsonScalar }
  /**
   * Substring of the queue, or of the name, message or code of the last failure, case-insensitive.
   */
  text?: string
  /** Dead-lettered at or after. */
  since?: Timestamp
  /** Dead-lettered before. */
  until?: Timestamp
  /** Settled before. */
  settledBefore?: Timestamp
  /** Expires before. */
  expiresBefore?: Timestamp
  /**
   * True: the letter still waits for its dependencies. Only the store knows, so `matches` ignores
   * it.
   */
  dependent?: boolean
}

/**
 * newest, oldest: by id, which is by time of capture. due: earliest retryAt first, letters without
 * one last. settled: earliest settledAt first, letters without one last.
 */
export const orders = ['newest', 'oldest', 'due', 'settled'] as const
export type Order = (typeof orders)[number]

export interface LetterQuery extends LetterFilter {
  order?: Order
  /** Maximum number of letters, from 0 to 1,000. Default: 50. */
  limit?: number
  cursor?: string
  /** True: complete letters, with payload bytes and history. */
  payload?: boolean
  /**
   * True: a search that reads many letters ends early. The page then has fewer letters than
   * `limit`, perhaps none, and a cursor that continues the search.
   */
  partial?: boolean
}

export interface Page<T> {
  items: T[]
  /** Pass it as `cursor` to get the next page. Absent on the last page. */
  cursor?: string
}

export const defaultLimit = 50
export const maxLimit = 1000

const isAmong = <T>(wanted: T | T[] | undefined, value: T): boolean =>
  wanted === undefined || (Array.isArray(wanted) ? wanted.includes(value) : wanted === value)

/**
 * Whether a letter matches a filter. This defines the meaning of filters: stores that filter in a
 * query language are tested against it.
 */
export function matches(letter: DeadLetter | LetterSummary, filter: LetterFilter): boolean {
  if (filter.state === undefined && filter.ids === undefined && letter.state === 'archived')
    return false
  return (
    isAmong(filter.ids, letter.id) &&
    isAmong(filter.queue, letter.queue) &&
    isAmong(filter.state, letter.state) &&
    isAmong(filter.category, letter.category) &&
    isAmong(filter.priority, letter.priority) &&
    isAmong(filter.policy, letter.policy.kind) &&
    isAmong(filter.reason, letter.reason) &&
    isAmong(filter.group, letter.fingerprint) &&
    isAmong(filter.lane, letter.lane) &&
    isAmong(filter.tenant, letter.tenant) &&
    (filter.sourceId === undefined || sourceIdOf(letter) === filter.sourceId.toWellFormed()) &&
    (filter.metadata === undefined || hasMetadata(letter, filter.metadata)) &&
    (filter.tag === undefined || letter.tags.includes(filter.tag)) &&
    (filter.text === undefined || containsText(letter, filter.text)) &&
    (filter.since === undefined || letter.deadLetteredAt >= filter.since) &&
    (filter.until === undefined || letter.deadLetteredAt < filter.until) &&
    isBefore(letter.settledAt, filter.settledBefore) &&
    isBefore(letter.expiresAt, filter.expiresBefore)
  )
}

/** Own keys only: a key named `constructor` must not match an inherited property. */
function hasMetadata(
  { metadata }: DeadLetter | LetterSummary,
  wanted: { [key: string]: JsonScalar },
): boolean {
  return Object.entries(wanted).every(
    ([key, value]) =>
      value === undefined || (Object.hasOwn(metadata, key) && metadata[key] === value),
  )
}

function isBefore(at: Timestamp | undefined, limit: Timestamp | undefined): boolean {
  return limit === undefined || (at !== undefined && at < limit)
}

function containsText(letter: DeadLetter | LetterSummary, text: string): boolean {
  const needle = text.toLowerCase()
  const { name, message, code } = letter.failure
  return [letter.queue, name, message, code].some((field) => field?.toLowerCase().includes(needle))
}

/** The sort key of a letter in this order. Letters with equal keys sort by id. */
export function sortKey(letter: DeadLetter | LetterSummary, order: Order): string {
  if (order === 'due') return letter.retryAt ?? '~'
  if (order === 'settled') return letter.settledAt ?? '~'
  return letter.id
}

export interface CursorPosition {
  order: Order
  key: string
  id: string
}

/**
 * An opaque position in a list (keys and ids are ASCII). It is not a secret, and it is parsed like
 * any other untrusted input.
 */
export function writeCursor(position: CursorPosition): string {
  const { order, key, id } = position
  return btoa(JSON.stringify([order, key, id])).replaceAll('=', '')
}

/** Undefined if the string is not a cursor for this order. */
export function readCursor(text: string, order: Order): CursorPosition | undefined {
  try {
    const parsed: unknown = JSON.parse(atob(text))
    if (!Array.isArray(parsed) || parsed.length !== 3 || parsed[0] !== order) return undefined
    const [, key, id] = parsed as unknown[]
    return typeof key === 'string' && typeof id === 'string' ? { order, key, id } : undefined
  } catch {
    return undefined
  }
}
