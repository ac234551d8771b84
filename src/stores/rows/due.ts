import { toMs } from '../../letter/time.ts'
import { pending, retrying } from './codes.ts'
import type { Row } from './row.ts'

/** From when the letter can be claimed, or the time it is ordered by. Null: none. */
export function dueOf(row: Row): number | null {
  if (row.state === retrying) return toDueMs(row.leasedUntil ?? row.updatedAt)
  if (row.retryAt !== null) return toDueMs(row.retryAt)
  return row.state === pending ? toDueMs(row.deadLetteredAt) : null
}

/**
 * An invalid timestamp counts as overdue, so that the letter is claimed rather than forgotten. So
 * does one before 1970: lists order these numbers as strings, which cannot be negative.
 */
function toDueMs(at: string): number {
  const ms = toMs(at)
  return ms > 0 ? ms : 0
}
