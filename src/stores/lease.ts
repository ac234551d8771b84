import { RedriveError } from '../errors.ts'

/**
 * Rejects a lease that never ends or has already ended, before any letter is claimed.
 */
export function checkLease(leaseMs: number): void {
  if (leaseMs >= 0) return
  throw new RedriveError('INVALID_INPUT', `leaseMs must be a number of at least 0, got ${leaseMs}`)
}
