import type { DeadMessage } from '../dead-message.ts'
import type { Heartbeat } from '../heartbeat.ts'

export const doneActions = ['processed', 'alerted', 'replayed', 'discarded'] as const

/** What a handler did with a dead message. `park` stores it separately, with the reason. */
export type Handled = { action: (typeof doneActions)[number] } | { action: 'park'; why: string }

export interface HandlerContext {
  /** 1 for the first time that a handler gets the message. */
  attempt: number
  /**
   * Aborts when the lease is lost, or when the consumer stops and the handler does not end in time.
   */
  signal: AbortSignal
  /** Beat while there is progress: a beat extends the lease. */
  heartbeat: Heartbeat
}

/**
 * Handles one dead message, possibly more than once. Returning nothing means processed; after an
 * error, or a return value that is not a `Handled`, the message is delivered again.
 */
export type DeadLetterHandler = (
  dead: DeadMessage,
  context: HandlerContext,
) => Handled | void | Promise<Handled | void>
