import type { Timestamp } from '../letter/time.ts'
import type { Message } from '../mailbox.ts'
import type { Heartbeat } from './heartbeat.ts'

/** One delivery, as `process` sees it. */
export interface ProcessContext {
  message: Message
  requestId?: string
  /** 1 for the first delivery. */
  attempt: number
  /** Aborts when the lease is lost, or when the loop stops and the work does not end in time. */
  signal: AbortSignal
  /** Beat while there is progress: a beat extends the lease, and shows that the loop is alive. */
  heartbeat: Heartbeat
  /**
   * The same for every delivery of this message: pass it on, so that duplicates can be detected.
   */
  idempotencyKey: string
}

/** What is known about a request at the time of its reply. */
export interface Facts {
  /** Undefined if the message could not be decoded. */
  request: unknown
  requestId?: string
  durationMs: number
  completedAt: Timestamp
}

/** The parts in which kinds of loops differ. */
export interface Work {
  process(request: unknown, context: ProcessContext): unknown
  /** The reply after success. */
  answer(output: unknown, facts: Facts): unknown
  /** The reply after the final failure. */
  refuse(error: string, facts: Facts): unknown
}
