import { splitResults, type Outcome } from '../../backends/batcher.ts'
import type { Argument, Reply } from '../../backends/redis/connection.ts'

/** Batches in flight: the server works on one while the replies to the other are read. */
export const maxInFlight = 2

/** Splits the replies of a script into one list per call. */
export function splitReplies<R>(
  requests: readonly Argument[][][],
  replies: readonly Reply[],
  read: (reply: Reply) => R,
): Outcome<R[]>[] {
  return splitResults(replies, requests).map((own) => ({ value: own.map(read) }))
}
