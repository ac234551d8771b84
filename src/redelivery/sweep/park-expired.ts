import { toTimestamp } from '../../letter/time.ts'
import { parkLetters, sweepLimit, type ChoreContext, type ChoreResult } from './chore.ts'

/** Parks pending letters whose `expiresAt` has passed. */
export async function parkExpired(context: ChoreContext): Promise<ChoreResult> {
  const { items } = await context.store.find({
    state: 'pending',
    expiresBefore: toTimestamp(context.nowMs),
    limit: sweepLimit,
  })
  return parkLetters(context, items, 'expired', 'expired before it could be run')
}
