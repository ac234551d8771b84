import type { MailboxHealth } from '../../mailbox.ts'
import type { Trouble } from '../../sqlite/trouble.ts'

/** A delivery, named by the message and how often it was delivered by then. */
export interface Receipt {
  seq: number
  deliveries: number
}

/** A message as the thread gives it. `about` has its content type, headers and where replies go, as JSON. */
export interface Kept extends Receipt {
  id: string
  about: string
  bytes: Uint8Array
  /** Deliveries that were given back untried. */
  released: number
  failures: number
  enqueuedMs: number
  firstMs: number | null
}

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

export type Call = { [V in Verb]: { verb: V; ask: Verbs[V]['ask'] } }[Verb]

/** All calls that had gathered, with the caller's time. */
export interface Batch {
  nowMs: number
  calls: Call[]
}

/** What became of a batch. All its writes are one transaction. */
export interface Report {
  /** One for each call, or what all of them failed with. */
  answers: unknown[] | Trouble
  /** How many messages were removed because they were kept too long, by mailbox. */
  expired: [mailbox: number, count: number][]
}
