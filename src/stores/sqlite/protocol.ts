import type { MessagePort } from 'node:worker_threads'
import type { HistoryEntry } from '../../letter/letter.ts'
import type { Change } from '../../letter/moves.ts'
import type { LetterFilter, Order } from '../../letter/query.ts'
import type {
  AddResult,
  ApplyResult,
  Capacity,
  ClaimRequest,
  LeaseRef,
  StoreHealth,
  TallyKey,
  Total,
} from '../../store.ts'
import type { ErrorCode } from '../../errors.ts'
import type { DatabaseOptions } from './database.ts'
import type { SqlValue } from './row.ts'

/** A letter on its way to the thread: the row, the body, and what few letters have. Lists, since lists clone fast. */
export type PackedLetter = [
  row: SqlValue[],
  queue: string,
  origin: string,
  originCrc: number,
  bytes: Uint8Array,
  bytesCrc: number,
  extras: PackedExtras | null,
]

export interface PackedExtras {
  dedupeKey?: string
  tags?: string[]
  dependsOn?: string[]
  /** Entries beyond the first, which is in the origin. */
  history?: HistoryEntry[]
}

/** A letter on its way back. What is null was not asked for, or could not be read: `trouble` says why. */
export type KeptLetter = [
  row: SqlValue[],
  queue: string,
  origin: string | null,
  originCrc: number,
  bytes: Uint8Array | null,
  bytesCrc: number,
  /** Entries beyond the first, as JSON. */
  history: string[],
  trouble: string | null,
]

/** A place in an order: what was given out last. */
export interface Place {
  key: string
  id: string
}

export interface Search {
  filter: LetterFilter
  order: Order
  limit: number
  after?: Place
  whole: boolean
}

export type Stored<T> = { id: string; version: number; value: T; updatedAt: string }

/** What can be asked of the thread, and what it answers. */
export interface Verbs {
  open: { ask: null; answer: null }
  add: { ask: { letters: PackedLetter[]; capacity?: Capacity }; answer: AddResult[] }
  claim: { ask: ClaimRequest; answer: { letters: KeptLetter[]; nextDueMs?: number } }
  renew: { ask: { leases: readonly LeaseRef[]; leaseMs: number }; answer: boolean[] }
  apply: { ask: readonly Change[]; answer: ApplyResult[] }
  remove: { ask: LetterFilter; answer: number }
  put: {
    ask: { kind: string; id: string; value: string; expected?: number }
    answer: 'written' | 'conflict'
  }
  drop: { ask: { kind: string; id: string }; answer: boolean }
  get: { ask: readonly string[]; answer: KeptLetter[] }
  original: { ask: string; answer: KeptLetter | null }
  find: { ask: Search; answer: { letters: KeptLetter[]; next?: Place } }
  tally: { ask: { by: TallyKey; filter: LetterFilter }; answer: [string, number][] }
  totals: { ask: null; answer: Total[] }
  record: { ask: { kind: string; id: string }; answer: Stored<string> | null }
  records: {
    ask: { kind: string; prefix: string; after: string | null; limit: number }
    answer: Stored<string>[]
  }
  health: { ask: null; answer: StoreHealth }
}

export type Verb = keyof Verbs

/** One call: its number, what to do, with what. */
export type Call = { [V in Verb]: [number: number, verb: V, ask: Verbs[V]['ask']] }[Verb]

/** What the caller says: which file, all calls that had gathered with the caller's time, close the file, end. */
export type Message =
  | { kind: 'file'; options: DatabaseOptions }
  | { kind: 'batch'; nowMs: number; calls: Call[] }
  | { kind: 'close' }
  | { kind: 'end' }

/** A failure as it crosses between threads. */
export interface Trouble {
  code: ErrorCode
  message: string
}

export type Answer = [number: number, value: unknown, trouble?: Trouble]

/** What the thread says. */
export interface Report {
  answers: Answer[]
  /** True: the batch is dealt with and the next may come, or the file is closed. Long searches answer later, on their own. */
  done: boolean
  /** True: a letter may have become free to be claimed. */
  woke: boolean
}

/** What the thread is started with. */
export interface ThreadData {
  /** Messages come by the first; reports go by all in turn. */
  ports: MessagePort[]
  /** Rung by the caller after each message; the thread sleeps on it. */
  bell: SharedArrayBuffer
}
