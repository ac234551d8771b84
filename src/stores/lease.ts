import { RedriveError } from '../errors.ts'
import type { DeadLetter } from '../letter/letter.ts'
import type { Change } from '../letter/moves.ts'
import type { LeaseRef } from '../store.ts'

/**
 * Rejects a lease that never ends or has already ended, before any letter is claimed.
 */
export function checkLease(leaseMs: number): void {
  if (leaseMs >= 0) return
  throw new RedriveError('INVALID_INPUT', `leaseMs must be a number of at least 0, got ${leaseMs}`)
}

/** Leased under this epoch, even past the end of the lease as long as nobody claimed it again. */
export function isLeased(letter: DeadLetter, { epoch, worker }: Omit<LeaseRef, 'id'>): boolean {
  const isOwner = worker === undefined || letter.lease?.worker === worker
  return letter.state === 'retrying' && letter.epoch === epoch && isOwner
}

/** Whether the letter is still as the change expects. */
export function meetsGuard(letter: DeadLetter, { guard }: Change): boolean {
  return 'epoch' in guard ? isLeased(letter, guard) : letter.version === guard.version
}
