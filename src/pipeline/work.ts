import { retry, type RetryOptions } from '../clock/retry.ts'
import { hasCode, type RedriveError } from '../errors.ts'
import type { OutgoingRecord, Sender } from '../backends/kafka/sender.ts'
import type { Entry } from './our-part.ts'

/** The result of a record. */
export interface Work {
  /** All messages are sent before the record is done. */
  outgoing: readonly OutgoingRecord[]
  /** Called when the brokers have stored the messages. */
  done?: () => void
  /** Called when sending failed. It is retried. */
  failed?: (error: unknown) => void
  /**
   * Returns the work to send if a message is too large for its topic. Default: retried like any
   * other error.
   */
  instead?: (error: RedriveError) => Promise<Work>
}

/** A processed record, which is done once the brokers have its results. */
export interface Finished {
  entry: Entry
  work: Work
}

/**
 * Sends the results of a record until the brokers have them. Returns the work that was sent:
 * `work`, or its replacement if a message was too large for its topic.
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
