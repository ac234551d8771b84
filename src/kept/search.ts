import { RedriveError } from '../errors.ts'
import {
  defaultLimit,
  maxLimit,
  orders,
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
  const { order = 'newest', limit = defaultLimit, cursor, payload, ...filter } = query
  if (!orders.includes(order)) throw invalid(`order must be one of ${orders.join(', ')}`)
  if (!Number.isInteger(limit) || limit < 0 || limit > maxLimit)
    throw invalid(`limit must be a whole number from 0 to ${maxLimit}, not ${limit}`)
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

/** A removal that names nothing would take everything, which nobody means. */
export function checkRemoval(which: LetterFilter): void {
  if (Object.values(which).every((wanted) => wanted === undefined))
    throw invalid('a removal must say what goes; to clear everything, name the states')
}

function invalid(message: string): RedriveError {
  return new RedriveError('INVALID_INPUT', message)
}
