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

/** A value of metadata that a filter can ask for. */
export type JsonScalar = Exclude<Json, Json[] | { [key: string]: Json }>

/**
 * Which letters. All given fields must match; a list means any of them, and an empty list matches
 * no letter. Without `state` or `ids`, archived letters are left out. Unknown keys and values are
 * rejected: see `checkFilter`.
 */
export interface LetterFilter {
  ids?: string[]
  queue?: string | string[]
  state?: State | State[]
  category?: ErrorCategory | ErrorCategory[]
  priority?: Priority | Priority[]
  policy?: RetryPolicy['kind']
  reason?: Reason
  /** A fingerprint: letters of one cause. */
  group?: string
  tag?: string
  lane?: string
  tenant?: string
  /**
   * The id that the source knows the work by: see `sourceIdOf`. Every store has an index for it.
   */
  sourceId?: string
  /**
   * Top-level keys of the metadata with the value that each must have. OpenSearch has an index for
   * them; the other stores read each letter that the other conditions leave.
   */
  metadata?: { [key: string]: JsonScalar }
  /**
   * Substring of the queue, or of the name, message or code of the last failure; case does not
   * matter.
   */
  text?: string
  /** Dead-lettered at or after. */
  since?: Timestamp
  /** Dead-lettered before. */
  until?: Timestamp
  /** Came to rest before. */
  settledBefore?: Timestamp
  /** Has an `expiresAt` before. */
  expiresBefore?: Timestamp
  /**
   * True: still waits for letters that it depends on. The store alone knows, so `matches` leaves it
   * to the store.
   */
  dependent?: boolean
}

/**
 * newest, oldest: by id, which is by time of capture. due: soonest retryAt first, letters without
 * one last. settled: longest at rest first, letters not at rest last.
 */
export const orders = ['newest', 'oldest', 'due', 'settled'] as const
export type Order = (typeof orders)[number]

export interface LetterQuery extends LetterFilter {
  order?: Order
  /** Default: 50. At most 1,000; 0 gives none. */
  limit?: number
  cursor?: string
  /** True: whole letters, with bytes and history. */
  payload?: boolean
}

export interface Page<T> {
  items: T[]
  /** Hand it back to get the next page. Absent on the last one. */
  cursor?: string
}

export const defaultLimit = 50
export const maxLimit = 1000

const among = <T>(wanted: T | T[] | undefined, value: T): boolean =>
  wanted === undefined || (Array.isArray(wanted) ? wanted.includes(value) : wanted === value)

/**
 * What a filter means. Stores that filter in another language must agree with this, and are tested
 * against it.
 */
export function matches(letter: DeadLetter | LetterSummary, filter: LetterFilter): boolean {
  if (filter.state === undefined && filter.ids === undefined && letter.state === 'archived')
    return false
  return (
    among(filter.ids, letter.id) &&
    among(filter.queue, letter.queue) &&
    among(filter.state, letter.state) &&
    among(filter.category, letter.category) &&
    among(filter.priority, letter.priority) &&
    among(filter.policy, letter.policy.kind) &&
    among(filter.reason, letter.reason) &&
    among(filter.group, letter.fingerprint) &&
    among(filter.lane, letter.lane) &&
    among(filter.tenant, letter.tenant) &&
    (filter.sourceId === undefined || sourceIdOf(letter) === filter.sourceId.toWellFormed()) &&
    (filter.metadata === undefined || hasMetadata(letter, filter.metadata)) &&
    (filter.tag === undefined || letter.tags.includes(filter.tag)) &&
    (filter.text === undefined || mentions(letter, filter.text)) &&
    (filter.since === undefined || letter.deadLetteredAt >= filter.since) &&
    (filter.until === undefined || letter.deadLetteredAt < filter.until) &&
    before(letter.settledAt, filter.settledBefore) &&
    before(letter.expiresAt, filter.expiresBefore)
  )
}

/** Own keys only: a key named `constructor` must not find what every object inherits. */
function hasMetadata(
  { metadata }: DeadLetter | LetterSummary,
  wanted: { [key: string]: JsonScalar },
): boolean {
  return Object.entries(wanted).every(
    ([key, value]) =>
      value === undefined || (Object.hasOwn(metadata, key) && metadata[key] === value),
  )
}

function before(at: Timestamp | undefined, limit: Timestamp | undefined): boolean {
  return limit === undefined || (at !== undefined && at < limit)
}

function mentions(letter: DeadLetter | LetterSummary, text: string): boolean {
  const needle = text.toLowerCase()
  const { name, message, code } = letter.failure
  return [letter.queue, name, message, code].some((field) => field?.toLowerCase().includes(needle))
}

/** What letters sort by in this order; the id decides between equals. */
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
 * An opaque place in a list (keys and ids are ASCII). Not a secret and not trusted: it is parsed
 * like any other input.
 */
export function writeCursor(position: CursorPosition): string {
  const { order, key, id } = position
  return btoa(JSON.stringify([order, key, id])).replaceAll('=', '')
}

/** Undefined when the text is not a cursor for this order. */
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
