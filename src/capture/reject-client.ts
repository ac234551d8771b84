import { RedriveError } from '../errors.ts'
import type { CaptureContext } from './context.ts'

/**
 * Rejects `client` where several failures are stored at once: their writes are shared and overlap,
 * so they cannot be part of a transaction of the caller.
 */
export function rejectClient<C extends { context: CaptureContext }>(captured: C): C {
  if (captured.context.client === undefined) return captured
  throw new RedriveError(
    'INVALID_INPUT',
    '`client` is allowed in enqueue only: call enqueue for each failure that belongs to your transaction',
  )
}
