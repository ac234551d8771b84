import type { MailboxHealth } from '../../mailbox.ts'

/** A delivery: the message, and its number of deliveries at that time. */
export type Held = [mailbox: number, seq: number, deliveries: number]

/**
 * A message as the thread returns it. `about` is JSON: content type, headers and reply address.
 * `released` counts deliveries that were returned without an attempt.
 */
export type StoredMessage = [
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
 * The retention of the calling handle, and the number under which its removals are reported. 0 ms:
 * nothing expires.
 */
export type Retention = [retentionMs: number, reporter: number]

export interface TakenMessages {
  found: StoredMessage[]
  /** Time until the next hidden message becomes visible. */
  nextMs?: number
}

/**
 * The methods of the thread of a mail file. All requests but that of `open` begin with the number
 * of the mailbox. Times are in ms.
 */
export interface Methods {
  /** Finds or creates a mailbox. Returns its number. */
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
   * At most one message per slot. A slot is the visibility time of its message. Removes expired
   * messages.
   */
  take: {
    request: [mailbox: number, slots: number[], retention: Retention]
    response: TakenMessages
  }
  acknowledge: { request: Held; response: boolean }
  /**
   * Without `failed`, the delivery is not counted. With `tail`, the message moves behind all
   * visible ones.
   */
  nack: { request: [...Held, delayMs: number, failed: boolean, tail: boolean]; response: boolean }
  extend: { request: [...Held, ms: number]; response: boolean }
  purge: { request: [mailbox: number]; response: number }
  count: { request: [mailbox: number]; response: number }
  browse: {
    request: [mailbox: number, after: number, limit: number]
    response: { found: StoredMessage[]; more: boolean }
  }
  health: { request: [mailbox: number]; response: MailboxHealth }
}

/** How many expired messages a transaction removed, by reporter. */
export type ExpiredEvent = [reporter: number, count: number][]
