import type {
  CountedAction,
  DeadLetter,
  Json,
  LetterSummary,
  Payload,
  Priority,
} from './letter/letter.ts'
import type { BulkMoves, Change } from './letter/moves.ts'
import type { LetterFilter, LetterQuery, Page } from './letter/query.ts'
import type { Timestamp } from './letter/time.ts'

/**
 * The store contract. A store reads and writes letters; it never decides. All methods take batches.
 * A promise that resolves means durable, for stores whose `powers` say so. A method that fails
 * rejects with a `RedriveError`; then either nothing was written, or repeating the call is
 * harmless.
 */
export interface Store {
  readonly powers: Powers

  /**
   * Creates or migrates the schema. May be called twice, and by several processes at once.
   * STORE_UNAVAILABLE: the store is unreachable and may recover by itself. A person must correct
   * any other error. A failed open leaves no connection, thread or timer, and may be repeated.
   */
  open(): Promise<void>
  /**
   * Waits for calls in flight, then closes. May be called twice. All other methods then reject with
   * `CLOSED`.
   */
  close(): Promise<void>

  /**
   * Stores new letters, atomically per letter, and returns results in the same order. A letter
   * whose id is already stored, or whose `dedupeKey` an open letter of the same queue has, is a
   * duplicate and is not stored. In the second case `occurrences` of the open letter grows by one,
   * and its failure becomes the newer one.
   */
  add(letters: readonly DeadLetter[], capacity?: Capacity): Promise<AddResult[]>

  /**
   * Adds letters in a transaction that the caller has begun on a client of the backend's package:
   * they are stored, and workers are woken, when it commits. Absent in stores that cannot join a
   * transaction.
   */
  within?(client: unknown): Pick<Store, 'add'>

  /** The letters with these ids, complete, in the given order. Unknown ids are left out. */
  get(ids: readonly string[]): Promise<DeadLetter[]>
  /** The payload as it was captured, before any edits. */
  original(id: string): Promise<Payload | undefined>

  /**
   * A page of matching letters, by keyset: concurrent writes cause no letter to be skipped or
   * repeated.
   */
  find(query: LetterQuery & { payload: true }): Promise<Page<DeadLetter>>
  find(query: LetterQuery): Promise<Page<LetterSummary>>

  /**
   * Letters that contain all these words, best match first. Absent in stores without full text: see
   * `powers.search`.
   */
  search?(text: string, options?: SearchOptions): Promise<LetterSummary[]>

  /**
   * Exact counts. Maintained, not scanned, as long as the filter uses only queue, state, category,
   * priority and policy, or also group unless the count is by tag. Counts by severity and source
   * are never maintained: a store may read every letter that matches.
   */
  tally(by: TallyKey, filter?: LetterFilter): Promise<Map<string, number>>

  /**
   * Counts of all actions since the store was created, by action, queue and priority. Never reset.
   * `countsOf` and `countsOfCapture` of `letter/counts.ts` define how a change and a new letter are
   * counted.
   */
  totals(): Promise<Total[]>

  /**
   * Letters with all data that the store has about them, for `keep`, in the given order. Unknown
   * ids are left out.
   */
  stored(ids: readonly string[]): Promise<StoredLetter[]>
  /**
   * Stores letters exactly as they come from another store, each atomically, in the given order. It
   * checks no dedupeKey and no capacity, and counts nothing in the totals. A letter with the same
   * id is replaced if its version is lower and `replaces`, if given, is that version; otherwise it
   * stays, and the result is `conflict`. With `replaces`, a missing letter is a `conflict` too.
   */
  keep(letters: readonly KeptLetter[]): Promise<KeepResult[]>
  /**
   * Replaces the totals of the given actions, queues and priorities; others stay. Harmless to
   * repeat.
   */
  keepTotals(totals: readonly Total[]): Promise<void>

  /**
   * Leases letters that are due, or whose lease has expired, to one worker: at most `limit`, in the
   * order of `letter/order.ts`. The lease, the state retrying, a new epoch and the counted retry
   * are one atomic write. A lane (of one queue) has one letter in flight at a time, its oldest
   * active one. A letter with `dependsOn` can be claimed once all letters that it depends on are
   * resolved.
   */
  claim(request: ClaimRequest): Promise<Claim>

  /**
   * Extends leases that are still held; never shortens one. True if extended; false if the lease is
   * lost.
   */
  renew(leases: readonly LeaseRef[], leaseMs: number): Promise<boolean[]>

  /**
   * Writes changes whose guard holds, each atomically, in the given order. A guard by epoch holds
   * while the letter is leased under that epoch (to that worker, if given), even after the lease
   * expired, until another worker claims it.
   */
  apply(changes: readonly Change[]): Promise<ApplyResult[]>

  /**
   * Makes the same move on many letters, each atomically, as `apply` does with a guard by version.
   * Returns results in the same order. `conflict`: the letter has another version, is leased, or
   * its state has no move. `missing`: no such letter. Of several entries of one letter only the
   * first counts: the others are conflicts, whatever their version.
   */
  applyAll(letters: readonly LetterVersion[], moves: BulkMoves): Promise<ApplyResult[]>

  /**
   * Removes letters permanently, except leased ones. Returns the number of removed letters. A
   * filter without conditions, or with an unknown key or value, rejects with INVALID_INPUT.
   */
  remove(which: LetterFilter): Promise<number>

  readonly records: Records

  /**
   * Calls the listener when letters may have become due. A hint: it may come late, twice or never.
   */
  watch(listener: () => void): () => void

  /**
   * Compares letters with indexes and counts while the store is in use, and repairs them on
   * request. Absent where they cannot diverge.
   */
  fsck?(options?: { repair?: boolean }): Promise<DriftReport>

  /** Results of the checks at open, and current problems. Never rejects. */
  health(): Promise<StoreHealth>
}

export interface Powers {
  /** Kind of store: "sqlite", "memory". */
  kind: string
  /** Letters survive the end of the process. */
  durable: boolean
  /** Several processes may use the store at once. */
  shared: boolean
  search: 'none' | 'substring' | 'full-text'
  /** Whose writes wake a watcher: none, this process, all processes. */
  wakeups: 'none' | 'local' | 'all'
}

export interface SearchOptions {
  /** True: search payloads as well. The caller decides who may see their contents. */
  payload?: boolean
  /** Default: 50. At most 1,000. */
  limit?: number
  /** Only among these letters. */
  among?: LetterFilter
}

/** Maximum number of stored letters, excluding archived ones. */
export interface Capacity {
  maxItems: number
  /** When full: reject the new letter, or remove the letters that were resolved first. */
  overflow: 'reject' | 'evict-resolved'
}

export type AddResult =
  | { kind: 'added'; evicted?: number }
  | { kind: 'duplicate'; of: string; by: 'id' | 'dedupeKey'; occurrences: number }
  | { kind: 'full' }

/** A letter with further data that its store has about it. */
export interface StoredLetter {
  letter: DeadLetter
  /**
   * The payload as it was captured, after an edit has replaced it. Absent: the payload was not
   * edited.
   */
  original?: Payload
  /** The ids of `dependsOn` that are not resolved yet. Absent: none. */
  waitsFor?: string[]
}

/** A letter for `keep`. */
export interface KeptLetter extends StoredLetter {
  /** The version that the stored letter must have, else `conflict`. Default: any, or no letter. */
  replaces?: number
}

export type KeepResult = 'written' | 'conflict'

/**
 * What letters can be counted by. `source` is the kind of the source. `groupState` is the state, a
 * space, and the fingerprint.
 */
export const tallyKeys = [
  'state',
  'queue',
  'category',
  'priority',
  'policy',
  'group',
  'groupState',
  'tag',
  'severity',
  'source',
] as const
export type TallyKey = (typeof tallyKeys)[number]

export interface Total {
  action: CountedAction
  queue: string
  priority: Priority
  /** Number of occurrences. */
  count: number
  /** Sum and maximum of the letters' retries at that time. */
  retries: number
  maxRetries: number
  /** Sum of the letters' backoffMs at that time. */
  backoffMs: number
}

export interface ClaimRequest {
  worker: string
  limit: number
  leaseMs: number
  /** Only these queues. */
  queues?: readonly string[]
  /** Not these queues. */
  except?: readonly string[]
}

export interface Claim {
  letters: DeadLetter[]
  /** When the next letter of these queues becomes due, if fewer than `limit` were. */
  nextDueAt?: Timestamp
}

export interface LeaseRef {
  id: string
  epoch: number
  /** The worker that holds the lease; checked if given. */
  worker?: string
}

export type ApplyResult = 'written' | 'conflict' | 'missing'

/** A letter as someone has read it. */
export interface LetterVersion {
  id: string
  version: number
}

/** Small durable documents for other features, so that every store supports all of them. */
export interface Records {
  get(kind: string, id: string): Promise<DocumentRecord | undefined>
  /**
   * Writes if the record has this version (0: does not exist yet). Without a version, always
   * writes.
   */
  put(
    kind: string,
    id: string,
    value: Json,
    expectedVersion?: number,
  ): Promise<'written' | 'conflict'>
  /** Records by id, ascending. Default: all. */
  list(kind: string, query?: RecordQuery): Promise<DocumentRecord[]>
  /** False if the record did not exist. */
  remove(kind: string, id: string): Promise<boolean>
  /** The kinds that have records, ascending. */
  kinds(): Promise<string[]>
}

export interface RecordQuery {
  prefix?: string
  /** Only records after this id. */
  after?: string
  /** An integer. */
  limit?: number
  /**
   * Only records with these ids; ids without a record are left out. Together with another key it
   * rejects with INVALID_INPUT.
   */
  ids?: readonly string[]
}

export interface DocumentRecord {
  id: string
  version: number
  value: Json
  updatedAt: Timestamp
}

/** A call of a store that has ended. */
export interface StoreCall {
  /** `claim`, or `records.put` for a method of the records. */
  method: string
  durationMs: number
  /** The number of letters, changes or ids of the call, if it is about some. */
  items?: number
  /** The code of its error. `UNEXPECTED`: the error has none. Absent: the call succeeded. */
  code?: string
}

export interface StoreHealth {
  ok: boolean
  /** Checked settings and their values: "journal_mode" → "wal". */
  checks: Record<string, string>
  problems: string[]
}

/** Status of the spool: the letters that wait because the store is unavailable. */
export interface SpoolStatus {
  /** Letters that wait. */
  letters: number
  /** Size of these letters. */
  bytes: number
  /** When the oldest of these letters was captured. */
  oldestAt: Timestamp | null
  /** Letters that were moved to the store since this process opened the spool. */
  drained: number
  /** Files set aside: a damaged file of letters, or a damaged letter. */
  damaged: number
  /** Files set aside: a letter that the store will never accept. */
  refused: number
  /** Files that could not be opened, or that a newer version wrote. They stay where they are. */
  unreadable: number
}

/** Differences between letters, indexes and counts, caused by manual changes or server faults. */
export interface DriftReport {
  /** Letters that were checked. */
  letters: number
  /**
   * Rows that cannot be read. They are reported as corrupt and never repaired: remove or restore
   * them manually.
   */
  unreadable: number
  /** Index entries that are missing or wrong. */
  missing: number
  /** Index entries and other rows without a letter. */
  strays: number
  /**
   * Wrong counts. Undefined: letters changed during the check, so the counts could not be compared.
   */
  counts: number | undefined
  /** Descriptions of some of the differences. */
  examples: string[]
  /** Whether the differences were repaired, excluding unreadable rows. */
  repaired: boolean
}

/** The number of letters and of saved records that use each key. A letter may use several keys. */
export interface KeyUse {
  /** Id of the key that new letters are encrypted with. */
  current: string
  /** `(none)`: not encrypted. */
  letters: Record<string, number>
  records: Record<string, number>
}

/** Result of a rotation, in letters and saved records. */
export interface KeyRotation {
  current: string
  checked: number
  /** Encrypted with the current key now. */
  rotated: number
  /** In use by a worker, or changed meanwhile: the next rotation finds them. */
  skipped: number
  /** Cannot be decrypted. They are unchanged. */
  failed: number
  /** The signal ended the rotation before it was complete. */
  stopped?: true
}

export interface RotateOptions {
  onProgress?: (progress: KeyRotation) => void
  /** Ends the rotation early. Another rotation continues it. */
  signal?: AbortSignal
}
