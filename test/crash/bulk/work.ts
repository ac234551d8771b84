import type { QueueOptions } from '../../../src/options/options.ts'

export const queue = 'bulk'

/** Short leases, so that the work of a killed process continues soon. */
export const options: QueueOptions = {
  leaseMs: 1000,
  pollMs: 100,
  sweepMs: 1000,
  maxConcurrent: 256,
  claimBatch: 256,
  breaker: false,
  concurrency: false,
  alerts: false,
}

/** The handler rejects some letters, chosen by their ids. */
export function isRejected(id: string): boolean {
  return Number.parseInt(id.slice(-2), 16) < 16
}
