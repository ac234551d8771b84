import { retry, type RetryOptions } from '../clock/retry.ts'
import { hasCode, type RedriveError } from '../errors.ts'
import type { Outgoing, Sender } from '../backends/kafka/sender.ts'
import type { Entry } from './our-part.ts'

/** What comes of a record. */
export interface Work {
  /** All of it is sent before the record is done. */
  outgoing: readonly Outgoing[]
  /** The brokers have it. */
  done?: () => void
  /** They did not take it. It is tried again by itself. */
  failed?: (error: unknown) => void
  /** What is sent if a topic takes nothing so large. Unless said, it is tried again like any other. */
  instead?: (error: RedriveError) => Promise<Work>
}

/** A record that was worked on, and is not done before the brokers have what came of it. */
export interface Finished {
  entry: Entry
  work: Work
}

/**
 * Sends all that came of a record until the brokers have it, and returns the work that was sent:
 * `work`, or what it gives instead where a topic refuses a message as too large.
 */
export async function sendWork(work: Work, sender: Sender, retries: RetryOptions): Promise<Work> {
  if (work.outgoing.length === 0) return work
  let last = work
  const send = (): Promise<unknown> =>
    Promise.all(last.outgoing.map((message) => sender.send(message)))
  const onError = (error: unknown, attempt: number): void => {
    last.failed?.(error)
    retries.onError?.(error, attempt)
  }
  return retry({ ...retries, onError }, async () => {
    try {
      await send()
    } catch (error) {
      if (!last.instead || !hasCode(error, 'TOO_LARGE')) throw error
      last = await last.instead(error)
      await send()
    }
    return last
  })
}
