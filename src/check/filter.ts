import { RedriveError } from '../errors.ts'
import { checkKeys, checkOneOf, describeValue, keysOf, type KeyCheck } from './keys.ts'
import { categories, priorities, reasons, states, type RetryPolicy } from '../letter/letter.ts'
import { maxLimit, orders, type LetterFilter, type LetterQuery } from '../letter/query.ts'
import { isTimestamp } from '../letter/time.ts'
import { tallyKeys, type SearchOptions, type TallyKey } from '../store.ts'

/** The kinds of retry policy. TypeScript rejects a list that forgets one. */
const policies = keysOf<Record<RetryPolicy['kind'], true>>({
  never: true,
  immediate: true,
  fixed: true,
  linear: true,
  exponential: true,
  custom: true,
})

type Check = (key: string, value: unknown) => void

const checkString: Check = (key, value) => {
  if (typeof value !== 'string') throw invalidValue(key, 'a string', value)
}

const checkBoolean: Check = (key, value) => {
  if (typeof value !== 'boolean') throw invalidValue(key, 'true or false', value)
}

const checkStrings: Check = (key, value) => {
  if (!Array.isArray(value) || !value.every((one) => typeof one === 'string'))
    throw invalidValue(key, 'an array of strings', value)
}

const checkStringOrStrings: Check = (key, value) => {
  if (typeof value !== 'string') checkStrings(key, value)
}

const checkTime: Check = (key, value) => {
  if (typeof value !== 'string' || !isTimestamp(value))
    throw invalidValue(
      key,
      'a timestamp like 2026-01-01T00:00:00.000Z (Date.toISOString() gives one)',
      value,
    )
}

const oneOf =
  (allowed: readonly string[]): Check =>
  (key, value) => {
    checkString(key, value)
    checkOneOf(key, value, allowed)
  }

const someOf =
  (allowed: readonly string[], renamed: KeyCheck['renamed'] = {}): Check =>
  (key, value) =>
    checkOneOf(key, value, allowed, { renamed })

/** Metadata is compared with scalars. An empty object is rejected: it would match every letter. */
const checkMetadata: Check = (key, value) => {
  if (typeof value !== 'object' || value === null || Array.isArray(value))
    throw invalidValue(key, 'an object with metadata keys and values', value)
  const entries = Object.entries(value).filter(([, inner]) => inner !== undefined)
  if (entries.length === 0)
    throw new RedriveError('INVALID_INPUT', `${key} must name at least one key of the metadata`)
  for (const [name, inner] of entries)
    if (!isScalar(inner))
      throw invalidValue(`${key}.${name}`, 'a string, a finite number, true, false or null', inner)
}

function isScalar(value: unknown): boolean {
  if (typeof value === 'number') return Number.isFinite(value)
  return value === null || typeof value === 'string' || typeof value === 'boolean'
}

/** Names of the states in other systems. */
export const stateNames = {
  queued: 'pending',
  waiting: 'pending',
  delayed: 'pending',
  scheduled: 'pending',
  requeued: 'pending',
  processing: 'retrying',
  running: 'retrying',
  active: 'retrying',
  in_progress: 'retrying',
  success: 'resolved',
  succeeded: 'resolved',
  completed: 'resolved',
  done: 'resolved',
  abandoned: 'exhausted',
  failed: 'exhausted',
  dead: 'exhausted',
  discarded: 'exhausted',
  manual_review: 'parked',
  review: 'parked',
  deleted: 'archived',
}

/** Names of the keys in other systems, and their plurals. */
const keyNames = {
  id: 'ids',
  letterId: 'ids',
  status: 'state',
  states: 'state',
  type: 'queue',
  queues: 'queue',
  operationType: 'queue',
  mailbox: 'queue',
  errorCategory: 'category',
  error_category: 'category',
  categories: 'category',
  priorities: 'priority',
  retryPolicy: 'policy',
  retry_policy: 'policy',
  fingerprint: 'group',
  tags: 'tag',
  taskId: 'sourceId',
  task_id: 'sourceId',
  messageId: 'sourceId',
  streamId: 'sourceId',
  workflowId: 'sourceId',
  search: 'text',
  message: 'text',
  error: 'text',
  from: 'since',
  after: 'since',
  to: 'until',
  before: 'until',
}

const filterChecks: Record<keyof LetterFilter, Check> = {
  ids: checkStrings,
  queue: checkStringOrStrings,
  state: someOf(states, stateNames),
  category: someOf(categories),
  priority: someOf(priorities),
  policy: oneOf(policies),
  reason: oneOf(reasons),
  group: checkStringOrStrings,
  tag: checkString,
  lane: checkString,
  tenant: checkString,
  sourceId: checkString,
  metadata: checkMetadata,
  text: checkString,
  since: checkTime,
  until: checkTime,
  settledBefore: checkTime,
  expiresBefore: checkTime,
  dependent: checkBoolean,
}

const queryChecks: Record<keyof LetterQuery, Check> = {
  ...filterChecks,
  order: oneOf(orders),
  limit: checkLimit,
  cursor: checkString,
  payload: checkBoolean,
  partial: checkBoolean,
}

/**
 * Rejects a filter with an unknown key, an unknown value, or a value of the wrong type. The error
 * names the key or value and the nearest known one.
 */
export function checkFilter(filter: LetterFilter): void {
  checkFields('the letter filter', filter, filterChecks)
}

/** Like `checkFilter`, for a query: a filter with `order`, `limit`, `cursor` and others. */
export function checkQuery(query: LetterQuery): void {
  checkFields('the letter query', query, queryChecks)
}

/** Like `checkFilter`, for letters to remove: at least one condition is required. */
export function checkRemoval(filter: LetterFilter): void {
  checkFilter(filter)
  if (Object.values(filter).every((value) => value === undefined))
    throw new RedriveError(
      'INVALID_INPUT',
      `a filter without conditions would remove every letter: give at least one; for all letters, list the states (state: ${JSON.stringify(states)})`,
    )
}

/** Checks the key and the filter of a tally. */
export function checkTally(by: TallyKey, filter: LetterFilter): void {
  checkOneOf('tally key', by, tallyKeys)
  checkFilter(filter)
}

const searchKeys = keysOf<SearchOptions>({ payload: true, limit: true, among: true })

/** Checks the query and options of a full-text search. */
export function checkSearch(text: string, options: SearchOptions): void {
  checkString('the search text', text)
  checkKeys('search options', options, searchKeys)
  const { payload, limit, among } = options
  if (payload !== undefined) checkBoolean('payload', payload)
  if (limit !== undefined) checkLimit('limit', limit)
  if (among !== undefined) checkFilter(among)
}

function checkLimit(key: string, value: unknown): void {
  if (typeof value !== 'number' || !Number.isInteger(value) || value < 0 || value > maxLimit)
    throw invalidValue(key, `an integer from 0 to ${maxLimit}`, value)
}

function checkFields(thing: string, value: object, checks: Record<string, Check>): void {
  checkKeys(thing, value, Object.keys(checks), { renamed: keyNames })
  for (const [key, inner] of Object.entries(value))
    if (inner !== undefined) checks[key]!(key, inner)
}

function invalidValue(key: string, expected: string, value: unknown): RedriveError {
  return new RedriveError(
    'INVALID_INPUT',
    `${key} must be ${expected}, got ${describeValue(value)}`,
  )
}
