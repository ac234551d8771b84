import type { DeadMessage } from '../dead-message.ts'
import type { Heartbeat } from '../heartbeat.ts'

export const doneActions = ['processed', 'alerted', 'replayed', 'discarded'] as const

/** What became of a dead message. `park`: it is to be kept aside, with the reason why. */
export type Handled = { action: (typeof doneActions)[number] } | { action: 'park'; why: string }

export interface HandlerContext {
  /** 1 for the first time that a handler sees it. */
  attempt: number
  /** Aborts when the lease is lost, and when the consumer stops and this takes too long to end. */
  signal: AbortSignal
  /** Beat while there is progress: it extends the lease. */
  heartbeat: Heartbeat
}

/**
 * Deals with one dead message. It may see one twice. Returning nothing means processed; throwing, and returning anything that is not
 * a `Handled`, means that it comes again.
 */
export type DeadLetterHandler = (
  dead: DeadMessage,
  context: HandlerContext,
) => Handled | void | Promise<Handled | void>
