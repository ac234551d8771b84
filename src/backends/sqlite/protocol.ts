import type { MessagePort } from 'node:worker_threads'
import type { Trouble } from './errors.ts'

/** What can be asked of a thread, and what it answers. */
export type VerbTable<V> = { [K in keyof V]: { ask: unknown; answer: unknown } }

/** One call: its number, what to do, with what, and the bytes that go with it. */
export type CallOf<V extends VerbTable<V>> = {
  [K in keyof V]: [number: number, verb: K, ask: V[K]['ask'], bytes?: Uint8Array]
}[keyof V]

/** What the caller says: which file, all calls that had gathered, close the file, end. */
export type Message =
  | { kind: 'file'; options: unknown }
  | Batch
  | { kind: 'close' }
  | { kind: 'end' }

export type AnyCall = [number: number, verb: PropertyKey, ask: unknown, bytes?: Uint8Array]

/**
 * Calls with the caller's time; a list, since lists cross threads fast. The bytes of all calls go in one piece: each piece takes as long to
 * cross as some thousand bytes.
 */
export type Batch = [nowMs: number, calls: SentCall[], bytes?: Uint8Array]

/** A call on its way, with how many of the bytes are its own. */
export type SentCall = [number: number, verb: PropertyKey, ask: unknown, bytes?: number]

/** What the thread says. What need not be said is left out, so that it crosses fast. */
export interface Report {
  /** The number of a call and its answer, then those of the next: one list crosses faster than many. */
  answers: unknown[]
  /** Calls that failed, by number. */
  troubles?: [number: number, trouble: Trouble][]
  /** It ends no batch: more follows, or it is the late answer to what takes long. Without it the next batch may come, or the file is closed. */
  aside?: true
  /** How long it took to commit, where something was written and flushed. */
  commitMs?: number
}

/** What the thread is started with. */
export interface ThreadData {
  /** Messages come by the first; reports go by all in turn. */
  ports: MessagePort[]
  /** Rung by the caller after each message; the thread sleeps on it. */
  bell: SharedArrayBuffer
}
