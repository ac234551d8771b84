import type { MailboxHealth } from '../../mailbox.ts'
import type { CallOf, Report as AnyReport } from '../../backends/sqlite/protocol.ts'

/** A delivery, named by the message and how often it was delivered by then. */
export type Held = [mailbox: number, seq: number, deliveries: number]

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

/** What the handle that calls was opened with, and its number, under which removed messages are reported. 0 ms: nothing expires. */
export type Retention = [retentionMs: number, reporter: number]

export interface TakenMessages {
  found: Kept[]
  /** How long until time alone makes a hidden message visible. */
  nextMs?: number
}

/**
 * What can be asked of the thread, and what it answers. All but `open` ask by a list that begins with the number of the mailbox. Times are
 * in ms.
 */
export interface Verbs {
  /** Finds or makes a mailbox, and answers with its number. */
  open: { ask: string; answer: number }
  /** The bytes of the message go along. An expired message of the same id is replaced. */
  send: {
    ask: [mailbox: number, id: string, about: string, delayMs: number, retention: Retention]
    answer: null
  }
  /** One message for each slot at the most; a slot is how long its message is hidden. Expired messages are removed. */
  take: { ask: [mailbox: number, slots: number[], retention: Retention]; answer: TakenMessages }
  acknowledge: { ask: Held; answer: boolean }
  /** Unless it failed it was no delivery. At the tail it stands behind all that waits, and else where it was. */
  nack: { ask: [...Held, delayMs: number, failed: boolean, tail: boolean]; answer: boolean }
  extend: { ask: [...Held, ms: number]; answer: boolean }
  purge: { ask: [mailbox: number]; answer: number }
  count: { ask: [mailbox: number]; answer: number }
  browse: {
    ask: [mailbox: number, after: number, limit: number]
    answer: { found: Kept[]; more: boolean }
  }
  health: { ask: [mailbox: number]; answer: MailboxHealth }
}

export type Verb = keyof Verbs

export type Call = CallOf<Verbs>
export type CallFor<V extends Verb> = Extract<Call, [number, V, ...unknown[]]>

/** What became of a batch. All its writes are one transaction. */
export interface Report extends AnyReport {
  /** How many expired messages were removed, by reporter. */
  expired?: [reporter: number, count: number][]
}
