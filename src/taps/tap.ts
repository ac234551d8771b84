import type { Timestamp } from '../letter/time.ts'

/** A dead letter of another system: the message, and why the system gave up on it. */
export interface ForeignLetter {
  /** Where the message died: a queue, or a stream and its consumer. */
  source: string
  /** Why the broker gave up on the message, in the words of the broker. */
  reason: string
  /** The error of the consumer, if somebody recorded it. */
  error?: { name: string; message: string; stack?: string }
  /** The number of deliveries that the broker counted. */
  deliveries: number
  /**
   * When the message was first sent, and when the broker gave up on it. Both are the same each time
   * the letter is read, and absent if the broker does not report them.
   */
  enqueuedAt?: Timestamp
  failedAt?: Timestamp
  body: Uint8Array
  contentType: string
  headers: Record<string, string>
  /** The same each time the same dead letter is read, so that duplicates are detected. */
  messageId: string
  /**
   * Identifies this death among several of the same message, if a message can die again without
   * being sent again.
   */
  death?: string
  /** What is needed to return the message to its source. */
  origin: Record<string, string>
}

/**
 * Resolves once the letter is stored durably. Only then is the message acknowledged to the broker;
 * after a rejection it is read again.
 */
export type Keep = (foreign: ForeignLetter) => Promise<void>

/**
 * Reads dead letters of another system. At least once: a stored letter may be read again after a
 * crash.
 */
export interface Tap {
  /**
   * Connects, and reads until it is stopped. Rejects if the source does not exist. May be called
   * twice.
   */
  start(): Promise<void>
  /** Waits until the letters that are being stored are stored. May be called twice. */
  stop(): Promise<void>
  /**
   * Sends the letter to its source. Where the broker detects duplicates, the same generation of the
   * same letter is one message, unless the letter was edited in between.
   */
  returnToSource(letter: ReturnedLetter, generation: number): Promise<void>
}

/** The part of a foreign letter that returns to its source. */
export type ReturnedLetter = Pick<
  ForeignLetter,
  'body' | 'contentType' | 'headers' | 'messageId' | 'origin'
>
