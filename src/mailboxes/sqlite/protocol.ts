import type { MailboxHealth } from '../../mailbox.ts'
import type { CallOf, Report as AnyReport } from '../../sqlite/protocol.ts'

/** A delivery, named by the message and how often it was delivered by then. */
export interface Receipt {
  seq: number
  deliveries: number
}

/**
 * A message as the thread gives it; a list, since lists cross threads fast. `about` has its content type, headers and where replies go,
 * as JSON. `released` are the deliveries that were given back untried.
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

export interface Taken {
  found: Kept[]
  /** How long until time alone makes a hidden message visible. */
  nextMs?: number
}

/** What can be asked of the thread, and what it answers. */
export interface Verbs {
  /** Finds or makes a mailbox, and answers with its number. */
  open: { ask: { name: string }; answer: number }
  send: {
    ask: {
      mailbox: number
      id: string
      about: string
      bytes: Uint8Array
      delayMs: number
      /** 0: for ever. */
      retentionMs: number
    }
    answer: null
  }
  /** One message for each slot at the most; a slot is how long its message is hidden, in ms. */
  take: { ask: { mailbox: number; slots: number[] }; answer: Taken }
  acknowledge: { ask: Receipt & { mailbox: number }; answer: boolean }
  nack: {
    /** Without `failed` it was no delivery. `tail`: behind all that waits. Otherwise it goes back to where it was. */
    ask: Receipt & { mailbox: number; delayMs: number; failed: boolean; tail: boolean }
    answer: boolean
  }
  extend: { ask: Receipt & { mailbox: number; ms: number }; answer: boolean }
  purge: { ask: { mailbox: number }; answer: number }
  count: { ask: { mailbox: number }; answer: number }
  browse: { ask: { mailbox: number; after: number; limit: number }; answer: Kept[] }
  health: { ask: { mailbox: number }; answer: MailboxHealth }
}

export type Verb = keyof Verbs

export type Call = CallOf<Verbs>

/** What became of a batch. All its writes are one transaction. */
export interface Report extends AnyReport {
  /** How many messages were removed because they were kept too long, by mailbox. */
  expired: [mailbox: number, count: number][]
}
