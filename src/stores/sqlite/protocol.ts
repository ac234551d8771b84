import type { KeptLetter, PackedLetter } from '../rows/form.ts'
import type { Change } from '../../letter/moves.ts'
import type { LetterFilter } from '../../letter/query.ts'
import type { Place, Search } from '../search.ts'
import type { CallOf, Report as AnyReport } from '../../backends/sqlite/protocol.ts'
import type {
  AddResult,
  ApplyResult,
  Capacity,
  ClaimRequest,
  KeepResult,
  LeaseRef,
  StoreHealth,
  TallyKey,
  Total,
} from '../../store.ts'

export type Stored<T> = { id: string; version: number; value: T; updatedAt: string }

/** A letter as `keep` takes it: in its captured form, and the bytes of the edit that replaced the payload. */
export type PackedStored = [captured: PackedLetter, edit: Uint8Array | null]

/** A letter as `stored` gives it: as it is, as it was captured if it was edited, and what it waits for. */
export type KeptStored = [kept: KeptLetter, captured: KeptLetter | null, waitsFor: string[]]

/** What can be asked of the thread, and what it answers. */
export interface Verbs {
  open: { ask: null; answer: null }
  add: { ask: { letters: PackedLetter[]; capacity?: Capacity }; answer: AddResult[] }
  keep: { ask: PackedStored[]; answer: KeepResult[] }
  keepTotals: { ask: readonly Total[]; answer: null }
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
  stored: { ask: readonly string[]; answer: KeptStored[] }
  find: { ask: Search; answer: { letters: KeptLetter[]; next?: Place } }
  tally: { ask: { by: TallyKey; filter: LetterFilter }; answer: [string, number][] }
  totals: { ask: null; answer: Total[] }
  record: { ask: { kind: string; id: string }; answer: Stored<string> | null }
  records: {
    ask: { kind: string; prefix: string; after: string | null; limit: number }
    answer: Stored<string>[]
  }
  kinds: { ask: null; answer: string[] }
  health: { ask: null; answer: StoreHealth }
}

export type Verb = keyof Verbs

export type Call = CallOf<Verbs>

/** What the thread says. */
export interface Report extends AnyReport {
  /** A letter may have become free to be claimed. */
  woke?: true
}
