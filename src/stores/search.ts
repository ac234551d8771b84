import { checkQuery } from '../check/filter.ts'
import { RedriveError } from '../errors.ts'
import {
  defaultLimit,
  readCursor,
  type LetterFilter,
  type LetterQuery,
  type Order,
} from '../letter/query.ts'

/** A place in an order: what was given out last. */
export interface Place {
  key: string
  id: string
}

/** A query as a driver carries it out: checked, with its defaults, and its cursor read. */
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
  // Halves of characters are in no key and no id, and not every server takes them.
  const sound = position?.key.isWellFormed() && position.id.isWellFormed()
  if (cursor !== undefined && !sound) throw invalid(`cursor is not one of order ${order}`)
  const after = position ? { after: position } : {}
  return { filter, order, limit, whole: payload === true, ...after }
}

/** How many records a list may have. Undefined: all of them. */
export function checkListLimit(limit: number | undefined): void {
  if (limit !== undefined && (!Number.isInteger(limit) || limit < 0))
    throw invalid(`limit must be a whole number from 0 on, not ${limit}`)
}

function invalid(message: string): RedriveError {
  return new RedriveError('INVALID_INPUT', message)
}
