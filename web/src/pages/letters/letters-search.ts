import { categories, priorities, reasons, states, type FilterInput } from 'redrive/api'
import type { LettersInput } from '../../api/queries.ts'
import { entriesOf, listOf, oneOf, someOf } from '../../app/search-params.ts'
import { filterKeys } from '../../format/filter.ts'

const hourMs = 3_600_000

/** Time ranges that end now, in milliseconds. */
const ranges = {
  '1h': hourMs,
  '6h': 6 * hourMs,
  '24h': 24 * hourMs,
  '7d': 7 * 24 * hourMs,
  '30d': 30 * 24 * hourMs,
} as const
export type Range = keyof typeof ranges
export const rangeNames = Object.keys(ranges) as Range[]
export const rangeLabels: Record<Range, string> = {
  '1h': 'last hour',
  '6h': 'last 6 hours',
  '24h': 'last 24 hours',
  '7d': 'last 7 days',
  '30d': 'last 30 days',
}

/** The whole state of the list of letters. */
export interface LettersSearch extends FilterInput {
  order?: 'newest' | 'oldest'
  /** Full-text search, where the server has it. */
  words?: string
  /** Full-text search also reads payloads. */
  payload?: true
  /** In the place of `since`: a range that ends now. */
  last?: Range
  /** The id of the saved view that was opened last. */
  view?: string
  /** In the place of the columns that the browser keeps. */
  columns?: string[]
}

const textFields = ['text', 'words', 'tag', 'tenant', 'lane', 'sourceId', 'view'] as const
const times = ['since', 'until', 'settledBefore', 'expiresBefore'] as const
const lists = ['queue', 'group', 'ids', 'columns'] as const
const policies = ['never', 'immediate', 'fixed', 'linear', 'exponential', 'custom'] as const

/** The state in an address. What is not understood is left out. */
export function parseLettersSearch(search: Record<string, unknown>): LettersSearch {
  const found: Record<string, unknown> = {
    ...pick(textFields, (key) => listOf(search[key])[0]),
    ...pick(times, (key) => timestampOf(search[key])),
    ...pick(lists, (key) => listOf(search[key])),
    state: someOf(states, search['state']),
    category: someOf(categories, search['category']),
    priority: someOf(priorities, search['priority']),
    reason: oneOf(reasons, search['reason']),
    policy: oneOf(policies, search['policy']),
    order: oneOf(['newest', 'oldest'] as const, search['order']),
    last: oneOf(rangeNames, search['last']),
    dependent: booleanOf(search['dependent']),
    payload: booleanOf(search['payload']) || undefined,
    metadata: metadataOf(search['metadata']),
  }
  return Object.fromEntries(Object.entries(found).filter(([, value]) => !isEmpty(value)))
}

function pick<K extends string>(
  keys: readonly K[],
  read: (key: K) => unknown,
): Record<string, unknown> {
  return Object.fromEntries(keys.map((key) => [key, read(key)]))
}

function isEmpty(value: unknown): boolean {
  return value === undefined || value === '' || (Array.isArray(value) && value.length === 0)
}

function timestampOf(value: unknown): string | undefined {
  const [text] = listOf(value)
  const ms = text === undefined ? Number.NaN : Date.parse(text)
  return Number.isNaN(ms) ? undefined : new Date(ms).toISOString()
}

function booleanOf(value: unknown): boolean | undefined {
  const [text] = listOf(value)
  return text === 'true' ? true : text === 'false' ? false : undefined
}

function metadataOf(value: unknown): FilterInput['metadata'] | undefined {
  const entries = entriesOf(value)
  if (entries.length === 0) return undefined
  return Object.fromEntries(entries.map(([key, value]) => [key, readScalar(value)]))
}

/** A metadata value: JSON if it is a number, a boolean or null, otherwise a string. */
export function readScalar(text: string): string | number | boolean | null {
  return /^(-?\d+(\.\d+)?|true|false|null)$/.test(text)
    ? (JSON.parse(text) as number | boolean | null)
    : text
}

/** Ranges begin at whole steps, so that an answer that was read just now can be used again. */
const stepMs = 5 * 60_000

/** The filter of the search. A range becomes the time at which it begins. */
export function filterOf(search: LettersSearch, nowMs: number): FilterInput {
  const filter: Record<string, unknown> = Object.fromEntries(
    filterKeys.filter((key) => search[key] !== undefined).map((key) => [key, search[key]]),
  )
  if (search.last !== undefined) {
    const begin = nowMs - ranges[search.last]
    filter['since'] = new Date(begin - (begin % stepMs)).toISOString()
  }
  return filter
}

/** What the list asks the server for. */
export function withOrder(filter: FilterInput, { order }: LettersSearch): LettersInput {
  return { ...filter, ...(order ? { order } : {}) }
}

/** The search without any condition: what is left is how the list looks. */
export function withoutFilter({ order, columns }: LettersSearch): LettersSearch {
  return { ...(order ? { order } : {}), ...(columns ? { columns } : {}) }
}

/** Whether the search has a condition. */
export function isFiltered(search: LettersSearch): boolean {
  return (
    search.words !== undefined ||
    search.last !== undefined ||
    filterKeys.some((key) => search[key] !== undefined)
  )
}
