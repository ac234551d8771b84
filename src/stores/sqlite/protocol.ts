import type { LoadedLetter, PackedLetter } from '../rows/form.ts'
import type { Change } from '../../letter/moves.ts'
import type { LetterFilter } from '../../letter/query.ts'
import type { Place, Search } from '../search.ts'
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

/**
 * A letter as `keep` takes it: in its captured form, and the bytes of the edit that replaced the
 * payload.
 */
export type PackedStored = [captured: PackedLetter, edit: Uint8Array | null]

/**
 * A letter as `stored` gives it: as it is, as it was captured if it was edited, and what it waits
 * for.
 */
export type LoadedStored = [letter: LoadedLetter, captured: LoadedLetter | null, waitsFor: string[]]

/** The methods of the thread of a store. */
export interface Methods {
  open: { request: null; response: null }
  add: { request: { letters: PackedLetter[]; capacity?: Capacity }; response: AddResult[] }
  keep: { request: PackedStored[]; response: KeepResult[] }
  keepTotals: { request: readonly Total[]; response: null }
  claim: { request: ClaimRequest; response: { letters: LoadedLetter[]; nextDueMs?: number } }
  renew: { request: { leases: readonly LeaseRef[]; leaseMs: number }; response: boolean[] }
  apply: { request: readonly Change[]; response: ApplyResult[] }
  remove: { request: LetterFilter; response: number }
  put: {
    request: { kind: string; id: string; value: string; expected?: number }
    response: 'written' | 'conflict'
  }
  drop: { request: { kind: string; id: string }; response: boolean }
  get: { request: readonly string[]; response: LoadedLetter[] }
  original: { request: string; response: LoadedLetter | null }
  stored: { request: readonly string[]; response: LoadedStored[] }
  find: { request: Search; response: { letters: LoadedLetter[]; next?: Place } }
  tally: { request: { by: TallyKey; filter: LetterFilter }; response: [string, number][] }
  totals: { request: null; response: Total[] }
  record: { request: { kind: string; id: string }; response: Stored<string> | null }
  records: {
    request: { kind: string; prefix: string; after: string | null; limit: number }
    response: Stored<string>[]
  }
  kinds: { request: null; response: string[] }
  health: { request: null; response: StoreHealth }
}
