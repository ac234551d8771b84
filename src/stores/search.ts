import { checkQuery } from '../check/filter.ts'
import { checkKeys, keysOf } from '../check/keys.ts'
import { RedriveError } from '../errors.ts'
import {
  defaultLimit,
  readCursor,
  type LetterFilter,
  type LetterQuery,
  type Order,
} from '../letter/query.ts'
import type { RecordQuery } from '../store.ts'

/** A position in an order: the last letter returned. */
export interface Place {
  key: string
  id: string
}

/** A validated query with defaults and a decoded cursor. */
export interface Search {
  filter: LetterFilter
  order: Order
  limit: number
  after?: Place
  whole: boolean
  /** Whether the page may end before its limit and before the end. */
  partial?: boolean
}

export function searchOf(query: LetterQuery): Search {
  checkQuery(query)
  const { order = 'newest', limit = defaultLimit, cursor, payload, partial, ...filter } = query
  const position = cursor === undefined ? undefined : readCursor(cursor, order)
  // No key or id contains a lone surrogate, and some servers reject them.
  const sound = position?.key.isWellFormed() && position.id.isWellFormed()
  if (cursor !== undefined && !sound) throw invalid(`cursor is not a cursor of order ${order}`)
  const after = position ? { after: position } : {}
  const early = partial === true ? { partial } : {}
  return { filter, order, limit, whole: payload === true, ...early, ...after }
}

const recordQueryKeys = keysOf<RecordQuery>({ prefix: true, after: true, limit: true, ids: true })

/** Checks a query for records. The ids are distinct and ascending then. */
export function recordQueryOf(query: RecordQuery): RecordQuery {
  checkKeys('the record query', query, recordQueryKeys)
  const { limit, ids, ...rest } = query
  if (limit !== undefined && (!Number.isInteger(limit) || limit < 0))
    throw invalid(`limit must be an integer of at least 0, got ${limit}`)
  if (ids === undefined) return query
  const other = Object.entries({ limit, ...rest }).find(([, value]) => value !== undefined)
  if (other)
    throw invalid(`ids and ${other[0]} cannot be used together in the record query: remove one`)
  return { ids: [...new Set(ids)].toSorted() }
}

function invalid(message: string): RedriveError {
  return new RedriveError('INVALID_INPUT', message)
}
