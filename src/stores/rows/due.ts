import { toMs } from '../../letter/time.ts'
import { pending, retrying } from './codes.ts'
import type { Row } from './row.ts'

/** From when a claim may take the letter, or what it is ordered by. Null: it has no such time. */
export function dueOf(row: Row): number | null {
  if (row.state === retrying) return moment(row.leasedUntil ?? row.updatedAt)
  if (row.retryAt !== null) return moment(row.retryAt)
  return row.state === pending ? moment(row.deadLetteredAt) : null
}

/**
 * A moment that is none counts as long past, so that the letter is seen rather than forgotten. So does one before 1970: lists
 * go by these numbers as text, in which one below zero has no place.
 */
function moment(at: string): number {
  const ms = toMs(at)
  return ms > 0 ? ms : 0
}
