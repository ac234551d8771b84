import { splitResults, type Outcome } from '../../backends/batcher.ts'
import type { Argument, Reply } from '../../backends/redis/connection.ts'

/** Batches that may be on their way at once: the server works on one while the answers to the other are read. */
export const maxInFlight = 2

/** The answers of a script, back to the calls that they belong to. */
export function together<R>(
  asks: readonly Argument[][][],
  replies: readonly Reply[],
  read: (reply: Reply) => R,
): Outcome<R[]>[] {
  return splitResults(replies, asks).map((own) => ({ value: own.map(read) }))
}
