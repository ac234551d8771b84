import type {
  CountedAction,
  DeadLetter,
  Json,
  LetterSummary,
  Payload,
  Priority,
} from './letter/letter.ts'
import type { Change } from './letter/moves.ts'
import type { LetterFilter, LetterQuery, Page } from './letter/query.ts'
import type { Timestamp } from './letter/time.ts'

/**
 * KEEP: what every store promises. A store keeps and fetches; it never judges. All verbs take batches, and one
 * is a batch of one. A promise that resolves means durable, for stores whose powers say so. A verb that cannot
 * be carried out rejects with a `RedriveError`, and then either nothing of it was written or repeating it is
 * harmless.
 */
export interface Store {
  readonly powers: Powers

  /**
   * Creates or migrates what is needed. Safe twice and from several processes at once. STORE_UNAVAILABLE: the store is away and may come
   * back by itself. Any other error must be corrected by a person. An open that fails keeps no connection, thread or timer, and may be repeated.
   */
  open(): Promise<void>
  /** Waits for what is in flight, then lets go. Safe twice. Every other verb rejects with `CLOSED` afterwards. */
  close(): Promise<void>

  /**
   * Keeps new letters, all or nothing per letter, and answers in the same order. A letter whose id is kept
   * already, or whose `dedupeKey` an open letter of the same queue holds, is a duplicate and is not kept; for
   * the latter the open letter's `occurrences` grows by one, and its failure becomes the newer one.
   */
  add(letters: readonly DeadLetter[], capacity?: Capacity): Promise<AddResult[]>

  /**
   * Adds within a transaction that the caller has begun on a client of the backend's own package: kept, and workers are woken, when
   * it commits. Stores without transactions of their callers do not have it.
   */
  within?(client: unknown): Pick<Store, 'add'>

  /** The letters that exist, whole, in the order asked. Ids that are not there are left out. */
  get(ids: readonly string[]): Promise<DeadLetter[]>
  /** The payload as it was captured, whatever edits came later. */
  original(id: string): Promise<Payload | undefined>

  /** A page of letters that match, by keyset: nothing is skipped or repeated while letters come and go. */
  find(query: LetterQuery & { payload: true }): Promise<Page<DeadLetter>>
  find(query: LetterQuery): Promise<Page<LetterSummary>>

  /** Letters that have all these words, best first. Stores without full text do not have it: see `powers.search`. */
  search?(text: string, options?: SearchOptions): Promise<LetterSummary[]>

  /**
   * Exact counts. Maintained, not scanned, as long as the filter uses only queue, state, category, priority and policy.
   * Counts by severity and source are never maintained: a store may read every letter that matches.
   */
  tally(by: TallyKey, filter?: LetterFilter): Promise<Map<string, number>>

  /**
   * What happened since the store was made, by action, queue and priority. Never reset. `countsOf` and `countsOfCapture` of
   * `letter/moves.ts` say what a change and a new letter count as.
   */
  totals(): Promise<Total[]>

  /** Letters with all that the store knows of them, as `keep` takes them, in the order asked. Ids that are not there are left out. */
  stored(ids: readonly string[]): Promise<StoredLetter[]>
  /**
   * Keeps letters exactly as they come from another store, each on its own, in the order given: no dedupeKey is
   * looked at, no capacity, and nothing is counted in the totals. A letter of the same id gives way if its version is
   * lower; otherwise it stays, and the answer is `conflict`.
   */
  keep(letters: readonly StoredLetter[]): Promise<KeepResult[]>
  /** Sets totals, each in place of the one of the same action, queue and priority; others stay. Harmless to repeat. */
  keepTotals(totals: readonly Total[]): Promise<void>

  /**
   * Leases letters that are due, or whose lease has lapsed, to one worker: at most `limit`, in the order of
   * `letter/order.ts`. In one step with the lease: state retrying, a new epoch, and the retry counted. A lane
   * (of one queue) has one letter in flight at a time, and otherwise its oldest active one goes first. A letter with
   * `dependsOn` can be claimed once all of them have been resolved.
   */
  claim(request: ClaimRequest): Promise<Claim>

  /** Moves the end of leases that still hold, and never brings it nearer. True where it did; false is a lost lease. */
  renew(leases: readonly LeaseRef[], leaseMs: number): Promise<boolean[]>

  /**
   * Writes changes whose guard holds, each on its own, in the order given. A guard by epoch holds while the
   * letter is leased under that epoch (to that worker, if it names one), even past its end as long as nobody took over.
   */
  apply(changes: readonly Change[]): Promise<ApplyResult[]>

  /**
   * Removes letters for ever; what is leased stays. Answers how many went. A filter without conditions, or with an unknown
   * key or value, rejects with INVALID_INPUT, as it does in `find` and `tally`.
   */
  remove(which: LetterFilter): Promise<number>

  readonly records: Records

  /** Calls the listener when letters may have become due. A hint: it may come late, twice or never. */
  watch(listener: () => void): () => void

  /** Compares letters with indexes and counts while the store is in use, and on request puts them right. Only where they can come apart. */
  fsck?(options?: { repair?: boolean }): Promise<DriftReport>

  /** What was checked at open and what is wrong now. Never rejects. */
  health(): Promise<StoreHealth>
}

export interface Powers {
  /** What the store is, for people: "sqlite", "memory". */
  kind: string
  /** Survives the death of the process. */
  durable: boolean
  /** Several processes may use it at once. */
  shared: boolean
  search: 'none' | 'substring' | 'full-text'
  /** Who wakes a watcher: nobody, this process, every process. */
  wakeups: 'none' | 'local' | 'all'
}

export interface SearchOptions {
  /** True: look into payloads too. Whoever passes this on decides who may know what is in them. */
  payload?: boolean
  /** Default: 50. At most 1,000. */
  limit?: number
  /** Only among these letters. */
  among?: LetterFilter
}

/** How many letters may be kept, archived ones aside. */
export interface Capacity {
  maxItems: number
  /** When full: refuse the new letter, or remove the longest resolved ones to make room. */
  overflow: 'reject' | 'evict-resolved'
}

export type AddResult =
  | { kind: 'added'; evicted?: number }
  | { kind: 'duplicate'; of: string; by: 'id' | 'dedupeKey'; occurrences: number }
  | { kind: 'full' }

/** A letter with what its store knows beyond it. */
export interface StoredLetter {
  letter: DeadLetter
  /** The payload as it was captured, once an edit has replaced it. Absent: the letter's own is the captured one. */
  original?: Payload
  /** Those of `dependsOn` that it still waits for, save those that the store that keeps it has as resolved. Absent: none. */
  waitsFor?: string[]
}

export type KeepResult = 'written' | 'conflict'

/** What letters can be counted by. `source` is the kind of the source. */
export const tallyKeys = [
  'state',
  'queue',
  'category',
  'priority',
  'policy',
  'group',
  'tag',
  'severity',
  'source',
] as const
export type TallyKey = (typeof tallyKeys)[number]

export interface Total {
  action: CountedAction
  queue: string
  priority: Priority
  /** How often it happened. */
  count: number
  /** Sum and maximum of the letters' retries when it happened. */
  retries: number
  maxRetries: number
  /** Sum of the letters' backoffMs when it happened. */
  backoffMs: number
}

export interface ClaimRequest {
  worker: string
  limit: number
  leaseMs: number
  /** Only these queues. */
  queues?: readonly string[]
  /** Not these. */
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
  /** Who holds it; checked when it is given. */
  worker?: string
}

export type ApplyResult = 'written' | 'conflict' | 'missing'

/** Small durable documents of other kinds, so that every store can run the whole product. */
export interface Records {
  get(kind: string, id: string): Promise<DocumentRecord | undefined>
  /** Writes if the record is at this version (0: does not exist yet); without one, writes in any case. */
  put(
    kind: string,
    id: string,
    value: Json,
    expectedVersion?: number,
  ): Promise<'written' | 'conflict'>
  /** By id, ascending, after the given one. `limit` is a whole number; without one, all of them. */
  list(
    kind: string,
    options?: { prefix?: string; after?: string; limit?: number },
  ): Promise<DocumentRecord[]>
  /** False when it was not there. */
  remove(kind: string, id: string): Promise<boolean>
  /** The kinds that have records, ascending. */
  kinds(): Promise<string[]>
}

export interface DocumentRecord {
  id: string
  version: number
  value: Json
  updatedAt: Timestamp
}

export interface StoreHealth {
  ok: boolean
  /** What was looked at, in words: "journal_mode" → "wal". */
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

/** How far letters, indexes and counts have come apart, by hand or by a fault of the server. */
export interface DriftReport {
  /** Letters that were looked at. */
  letters: number
  /** Rows that cannot be read. They are shown as corrupt, and never repaired: remove them, or put them back by hand. */
  unreadable: number
  /** Places in indexes where a letter is missing or stands wrong. */
  missing: number
  /** Entries of indexes, and belongings, without the letter that would account for them. */
  strays: number
  /** Counts that are wrong. Undefined: letters kept moving, so the counts could not be checked. */
  counts: number | undefined
  /** Some of them in words, for people. */
  examples: string[]
  /** Whether what was found has been put right, unreadable rows aside. */
  repaired: boolean
}
