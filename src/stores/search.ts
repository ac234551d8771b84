import { checkQuery } from '../check/filter.ts'
import { RedriveError } from '../errors.ts'
import {
  defaultLimit,
  readCursor,
  type LetterFilter,
  type LetterQuery,
  type Order,
} from '../letter/query.ts'

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
}

export function searchOf(query: LetterQuery): Search {
  checkQuery(query)
  const { order = 'newest', limit = defaultLimit, cursor, payload, ...filter } = query
  const position = cursor === undefined ? undefined : readCursor(cursor, order)
  // No key or id contains a lone surrogate, and some servers reject them.
  const sound = position?.key.isWellFormed() && position.id.isWellFormed()
  if (cursor !== undefined && !sound) throw invalid(`cursor is not a cursor of order ${order}`)
  const after = position ? { after: position } : {}
  return { filter, order, limit, whole: payload === true, ...after }
}

/** Checks the limit of a list of records. Undefined: no limit. */
export function checkListLimit(limit: number | undefined): void {
  if (limit !== undefined && (!Number.isInteger(limit) || limit < 0))
    throw invalid(`limit must be an integer of at least 0, got ${limit}`)
}

function invalid(message: string): RedriveError {
  return new RedriveError('INVALID_INPUT', message)
}
