/**
 * Everything that loops tell. It is told after it has happened, and whoever listens can stop nothing. No event holds a
 * body or headers.
 */
export type LoopEvent =
  | ({ type: 'message-done'; durationMs: number } & MessageFacts)
  /** It comes again after `delaySeconds`. */
  | ({ type: 'message-failed'; during: Stage; error: unknown; delaySeconds: number } & MessageFacts)
  /** Given back untried or unfinished, because the loop stops. */
  | { type: 'message-released'; mailbox: string; messageId: string }
  /** Its lease was lost: what was about to be done was not, and somebody else may have it. */
  | { type: 'message-lost'; mailbox: string; messageId: string; during: string }
  /** Taken off without a dead letter, as `withoutPolicy: 'reply-and-ack'` asks. */
  | ({ type: 'message-refused'; error: unknown } & MessageFacts)
  | ({
      type: 'dead-lettered'
      errorType: string
      errorMessage: string
      destination: string
    } & MessageFacts)
  /** `errorType` is that of the error that the message died of. */
  | ({
      type: 'dead-letter-handled'
      action: string
      errorType: string
      durationMs: number
    } & DeadFacts)
  /** It comes again after `delaySeconds`. */
  | ({ type: 'dead-letter-failed'; error: unknown; delaySeconds: number } & DeadFacts)
  /** Without a destination it stays where it is, hidden. */
  | ({ type: 'dead-letter-parked'; why: string; destination?: string } & DeadFacts)
  /** Removed from the mailbox that the loop receives from, because they were older than its `retentionSeconds`. */
  | { type: 'messages-expired'; mailbox: string; count: number }
  /** `oldestAgeSeconds` is that of the oldest message, where the broker can tell. */
  | { type: 'depth'; mailbox: string; depth: number; oldestAgeSeconds?: number }
  /** It starts again after `restartMs`; without it, the group stops. */
  | { type: 'loop-crashed'; loop: string; error: unknown; restartMs?: number }
  | { type: 'loop-stalled'; loop: string; elapsedMs: number }
  | { type: 'error'; during: string; error: unknown }

/** Where a delivery failed. */
export type Stage = 'receive' | 'decode' | 'process' | 'reply'

export interface MessageFacts {
  mailbox: string
  messageId: string
  requestId?: string
  deliveries: number
}

export interface DeadFacts extends MessageFacts {
  /** Where the message was before it was dead-lettered. */
  sourceMailbox: string
  ageSeconds: number
}

export type Tell = (event: LoopEvent) => void

/** Who listens to a loop. */
export interface Listening {
  onEvent?: (event: LoopEvent) => unknown
  hub?: { emit(event: LoopEvent): void }
}

/** Tells whoever listens. A listener that throws or rejects is told about once as `error`, and never reaches the loop. */
export function teller({ onEvent, hub }: Listening): Tell {
  if (!onEvent && !hub) return () => {}
  const complain = (event: LoopEvent, error: unknown): void => {
    if (event.type !== 'error') tell({ type: 'error', during: `listener of ${event.type}`, error })
  }
  const tell = (event: LoopEvent): void => {
    try {
      const returned = onEvent?.(event)
      if (returned instanceof Promise) returned.catch((error: unknown) => complain(event, error))
    } catch (error) {
      complain(event, error)
    }
    hub?.emit(event)
  }
  return tell
}
