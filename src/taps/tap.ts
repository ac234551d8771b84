import type { Timestamp } from '../letter/time.ts'

/** A dead letter of another system: what it gave up on, and why. */
export interface ForeignLetter {
  /** Where it lay dead: a queue, or a stream and its consumer. */
  source: string
  /** Why it was given up, in the words of its broker. */
  reason: string
  /** What its consumer died of, where somebody wrote that down. */
  error?: { name: string; message: string; stack?: string }
  /** As far as the broker knows. */
  deliveries: number
  /** When it was sent first, and when it was given up. The same each time it is read, and absent where the broker does not tell. */
  enqueuedAt?: Timestamp
  failedAt?: Timestamp
  body: Uint8Array
  contentType: string
  headers: Record<string, string>
  /** The same each time the same dead letter is read, so that keeping it twice can be noticed. */
  messageId: string
  /** Tells this death from others of the same message, where one can die again without having been sent anew. */
  death?: string
  /** What is needed to send it back to where it was before it died. */
  origin: Record<string, string>
}

/** Resolves once the letter is kept for good. Only then does the broker hear that it may forget it; a rejection brings it again. */
export type Keep = (foreign: ForeignLetter) => Promise<void>

/** Reads dead letters of another system, one by one. At least once: what was kept may come again after a crash. */
export interface Tap {
  /** Connects, and reads until it is stopped. Rejects when the source is not there. Safe twice. */
  start(): Promise<void>
  /** Waits for what is being kept. Safe twice. */
  stop(): Promise<void>
  /** Sends it back to where it came from. The same generation of the same letter, unless it was edited, is one message, where the broker can tell. */
  sendBack(letter: SentBack, generation: number): Promise<void>
}

/** The part of a foreign letter that travels home. */
export type SentBack = Pick<
  ForeignLetter,
  'body' | 'contentType' | 'headers' | 'messageId' | 'origin'
>
