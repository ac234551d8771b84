import type { MessagePort } from 'node:worker_threads'
import type { Trouble } from './trouble.ts'

/** What can be asked of a thread, and what it answers. */
export type VerbTable<V> = { [K in keyof V]: { ask: unknown; answer: unknown } }

/** One call: its number, what to do, with what, and the bytes that go with it. */
export type CallOf<V extends VerbTable<V>> = {
  [K in keyof V]: [number: number, verb: K, ask: V[K]['ask'], bytes?: Uint8Array]
}[keyof V]

/** What the caller says: which file, all calls that had gathered with the caller's time, close the file, end. */
export type Message =
  | { kind: 'file'; options: unknown }
  | { kind: 'batch'; nowMs: number; load: Load }
  | { kind: 'close' }
  | { kind: 'end' }

export type AnyCall = [number: number, verb: PropertyKey, ask: unknown, bytes?: Uint8Array]

/** What a batch carries. The bytes of all calls go in one piece: each piece takes as long to cross as some thousand bytes. */
export interface Load {
  calls: SentCall[]
  bytes: Uint8Array
}

/** A call on its way, with how many of the bytes are its own. */
export type SentCall = [number: number, verb: PropertyKey, ask: unknown, bytes?: number]

export type Answer = [number: number, value: unknown, trouble?: Trouble]

/** What the thread says. */
export interface Report {
  answers: Answer[]
  /** True: the batch is dealt with and the next may come, or the file is closed. What takes long answers later, on its own. */
  done: boolean
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
