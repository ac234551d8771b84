import { RedriveError } from '../errors.ts'
import type { CaptureContext } from './context.ts'

/**
 * Many failures take several overlapping writes, which one transaction of the caller cannot
 * contain.
 */
export function rejectClient<C extends { context: CaptureContext }>(captured: C): C {
  if (captured.context.client === undefined) return captured
  throw new RedriveError(
    'INVALID_INPUT',
    'client is not allowed in enqueueAll: call enqueue for each failure',
  )
}
