import type { MailboxHealth } from '../../mailbox.ts'

/** A delivery, named by the message and how often it was delivered by then. */
export type Held = [mailbox: number, seq: number, deliveries: number]

/**
 * A message as the thread gives it; a list, since lists cross threads fast. `about` has its content
 * type, headers and where replies go, as JSON. `released` are the deliveries that were given back
 * untried.
 */
export type Kept = [
  seq: number,
  deliveries: number,
  id: string,
  about: string,
  bytes: Uint8Array,
  released: number,
  failures: number,
  enqueuedMs: number,
  firstMs: number | null,
]

/**
 * What the handle that calls was opened with, and its number, under which removed messages are
 * reported. 0 ms: nothing expires.
 */
export type Retention = [retentionMs: number, reporter: number]

export interface Taken {
  found: Kept[]
  /** How long until time alone makes a hidden message visible. */
  nextMs?: number
}

/**
 * The methods of the thread of a mail file. All requests but that of `open` begin with the number
 * of the mailbox. Times are in ms.
 */
export interface Methods {
  /** Finds or makes a mailbox, and answers with its number. */
  open: { request: string; response: number }
  /** An expired message of the same id is replaced. */
  send: {
    request: [
      mailbox: number,
      id: string,
      about: string,
      bytes: Uint8Array,
      delayMs: number,
      retention: Retention,
    ]
    response: null
  }
  /**
   * One message for each slot at the most; a slot is how long its message is hidden. Expired
   * messages are removed.
   */
  take: { request: [mailbox: number, slots: number[], retention: Retention]; response: Taken }
  acknowledge: { request: Held; response: boolean }
  /**
   * Unless it failed it was no delivery. At the tail it stands behind all that waits, and else
   * where it was.
   */
  nack: { request: [...Held, delayMs: number, failed: boolean, tail: boolean]; response: boolean }
  extend: { request: [...Held, ms: number]; response: boolean }
  purge: { request: [mailbox: number]; response: number }
  count: { request: [mailbox: number]; response: number }
  browse: {
    request: [mailbox: number, after: number, limit: number]
    response: { found: Kept[]; more: boolean }
  }
  health: { request: [mailbox: number]; response: MailboxHealth }
}

/** How many expired messages a transaction removed, by reporter. */
export type ExpiredEvent = [reporter: number, count: number][]
