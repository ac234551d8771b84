import type { LetterFilter } from '../../letter/query.ts'
import type {
  AddResult,
  Capacity,
  ClaimRequest,
  KeepResult,
  LeaseRef,
  StoreHealth,
  TallyKey,
  Total,
} from '../../store.ts'
import type { Place, Search } from '../search.ts'
import type { LoadedStored, SentGroup, SentLetter, SentStored } from './transfer.ts'

/** The value is JSON. */
export type SentRecord = [id: string, version: number, value: string, updatedAt: string]

/** The results of `apply` as numbers. */
export const applyResults = ['written', 'conflict', 'missing'] as const
export const applyCode = { written: 0, conflict: 1, missing: 2 } as const

/** The methods of the thread of a store. */
export interface Methods {
  open: { request: null; response: null }
  /** The results other than a plain `added`, with their positions. */
  add: {
    request: { letters: SentLetter[]; capacity?: Capacity }
    response: [position: number, result: AddResult][]
  }
  keep: { request: SentStored[]; response: KeepResult[] }
  keepTotals: { request: readonly Total[]; response: null }
  claim: { request: ClaimRequest; response: { letters: SentLetter[]; nextDueMs?: number } }
  renew: { request: { leases: readonly LeaseRef[]; leaseMs: number }; response: boolean[] }
  apply: { request: SentGroup[]; response: number[] }
  /** The ids are distinct. Each group has one change. */
  applyAll: {
    request: { ids: string[]; versions: number[]; moves: [state: number, group: SentGroup][] }
    response: number[]
  }
  remove: { request: LetterFilter; response: number }
  put: {
    request: { kind: string; id: string; value: string; expected?: number }
    response: 'written' | 'conflict'
  }
  drop: { request: { kind: string; id: string }; response: boolean }
  get: { request: readonly string[]; response: SentLetter[] }
  original: { request: string; response: SentLetter | null }
  stored: { request: readonly string[]; response: LoadedStored[] }
  find: { request: Search; response: { letters: SentLetter[]; next?: Place } }
  tally: { request: { by: TallyKey; filter: LetterFilter }; response: [string, number][] }
  totals: { request: null; response: Total[] }
  record: { request: { kind: string; id: string }; response: SentRecord | null }
  records: {
    request: { kind: string; prefix: string; after: string | null; limit: number }
    response: SentRecord[]
  }
  recordsOf: { request: { kind: string; ids: readonly string[] }; response: SentRecord[] }
  kinds: { request: null; response: string[] }
  health: { request: null; response: StoreHealth }
}
