/**
 * All events of loops. An event is emitted after the fact, and listeners cannot stop anything. No
 * event contains a body or headers.
 */
export type LoopEvent =
  | ({ type: 'message-done'; durationMs: number } & MessageFacts)
  /** The message is delivered again after `delaySeconds`. */
  | ({ type: 'message-failed'; during: Stage; error: unknown; delaySeconds: number } & MessageFacts)
  /**
   * The failure is not counted, because the breaker of the loop is not closed. The message is
   * delivered again after `delaySeconds`.
   */
  | ({
      type: 'message-deferred'
      during: Stage
      error: unknown
      delaySeconds: number
    } & MessageFacts)
  /**
   * The message was released before it ran or finished, because the loop stops or its breaker has
   * opened.
   */
  | { type: 'message-released'; mailbox: string; messageId: string }
  /**
   * The lease was lost: the pending action was not done, and another consumer may have the message.
   */
  | { type: 'message-lost'; mailbox: string; messageId: string; during: string }
  /** The message was removed without a dead letter, because `withoutPolicy` is `reply-and-ack`. */
  | ({ type: 'message-refused'; error: unknown } & MessageFacts)
  | ({
      type: 'dead-lettered'
      errorType: string
      errorMessage: string
      destination: string
    } & MessageFacts)
  /** `errorType` is the type of the error that the message died of. */
  | ({
      type: 'dead-letter-handled'
      action: string
      errorType: string
      durationMs: number
    } & DeadFacts)
  /** The message is delivered again after `delaySeconds`. */
  | ({ type: 'dead-letter-failed'; error: unknown; delaySeconds: number } & DeadFacts)
  /** Without a destination, the message stays in its mailbox, hidden. */
  | ({ type: 'dead-letter-parked'; why: string; destination?: string } & DeadFacts)
  /**
   * Messages were removed from the mailbox of the loop because they were older than its
   * `retentionSeconds`.
   */
  | { type: 'messages-expired'; mailbox: string; count: number }
  /** `oldestAgeSeconds` is the age of the oldest message, where the broker reports it. */
  | { type: 'depth'; mailbox: string; depth: number; oldestAgeSeconds?: number }
  /** The breaker of the loop changed. Open: nothing is received before `until`. */
  | {
      type: 'loop-breaker'
      mailbox: string
      state: 'open' | 'half-open' | 'closed'
      until?: string
      cause?: string
    }
  /** The loop restarts after `restartMs`; if absent, the group stops. */
  | { type: 'loop-crashed'; loop: string; error: unknown; restartMs?: number }
  | { type: 'loop-stalled'; loop: string; elapsedMs: number }
  | { type: 'error'; during: string; error: unknown }

/** The stage in which a delivery failed. */
export type Stage = 'receive' | 'decode' | 'process' | 'reply'

export interface MessageFacts {
  mailbox: string
  messageId: string
  requestId?: string
  deliveries: number
}

export interface DeadFacts extends MessageFacts {
  /** The mailbox of the message before it was dead-lettered. */
  sourceMailbox: string
  ageSeconds: number
}

export type Emit = (event: LoopEvent) => void

/** The listeners of a loop. */
export interface Listeners {
  onEvent?: (event: LoopEvent) => unknown
  hub?: { emit(event: LoopEvent): void }
}

/**
 * Returns a function that emits events to the listeners. An error of a listener is emitted once as
 * `error`, and never reaches the loop.
 */
export function createEmit({ onEvent, hub }: Listeners): Emit {
  if (!onEvent && !hub) return () => {}
  const reportListenerError = (event: LoopEvent, error: unknown): void => {
    if (event.type !== 'error') emit({ type: 'error', during: `listener of ${event.type}`, error })
  }
  const emit = (event: LoopEvent): void => {
    try {
      const returned = onEvent?.(event)
      if (returned instanceof Promise)
        returned.catch((error: unknown) => reportListenerError(event, error))
    } catch (error) {
      reportListenerError(event, error)
    }
    hub?.emit(event)
  }
  return emit
}
