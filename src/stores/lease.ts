import { RedriveError } from '../errors.ts'

/**
 * Looked at before anything is taken: a lease without an end would leave its letters nowhere, and one that ends before it begins
 * would give them to two.
 */
export function checkLease(leaseMs: number): void {
  if (leaseMs >= 0) return
  throw new RedriveError('INVALID_INPUT', `leaseMs must be a number from 0 on, not ${leaseMs}`)
}
