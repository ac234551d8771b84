import type { ClientOptions } from '@opensearch-project/opensearch'
import { applyEach } from '../apply-each.ts'
import { systemClock, type Clock } from '../../clock/clock.ts'
import { Batcher, splitResults } from '../../backends/batcher.ts'
import { checkLease } from '../lease.ts'
import { checkKeys, keysOf } from '../../check/keys.ts'
import { Lifetime } from '../lifetime.ts'
import { checkRemoval, checkTally } from '../../check/filter.ts'
import { searchOf } from '../search.ts'
import type { DeadLetter, LetterSummary, Payload } from '../../letter/letter.ts'
import type { BulkMoves, Change } from '../../letter/moves.ts'
import type { LetterFilter, LetterQuery, Page } from '../../letter/query.ts'
import type {
  AddResult,
  ApplyResult,
  Capacity,
  Claim,
  ClaimRequest,
  KeepResult,
  LeaseRef,
  LetterVersion,
  Powers,
  Records,
  Store,
  KeptLetter,
  StoredLetter,
  StoreHealth,
  TallyKey,
  Total,
  SearchOptions,
} from '../../store.ts'
import { addEach, addWithin, copyLetter, unwrapOutcomes } from './add.ts'
import { addressOf, type Address } from '../../backends/opensearch/address.ts'
import { apply, renew } from './apply.ts'
import { claim } from './claim.ts'
import { readLetters, createSerializer, type StoreContext } from './context.ts'
import { letterOf, summaryFields, summaryOf } from './document.ts'
import { find, tally } from './find.ts'
import { buildTextQuery } from './full-text.ts'
import { readHealth } from './health.ts'
import { keep, readStored } from './keep.ts'
import { indexOf, openIndices, type IndexName } from './mapping.ts'
import { openSearchRecords, type RecordDocument } from './records.ts'
import { rewriteOldDocuments } from './migrate.ts'
import { remove } from './remove.ts'
import { DocumentIndex, type Stamped } from './document-index.ts'
import { Totals } from './totals.ts'
import { isRefusal } from '../../backends/opensearch/errors.ts'
import { recoverUnfinished } from './waits.ts'
import { OpensearchConnection } from '../../backends/opensearch/connection.ts'
import { Watchers } from '../../backends/watchers.ts'

export { follow, type FollowedStore, type FollowOptions } from './follower.ts'
export { openSearchIndex, type SearchIndex, type SearchIndexOptions } from './search-index.ts'

export interface OpenSearchStoreOptions {
  /** `opensearch://user:password@host:9200/prefix`, or `opensearchs://` over TLS. */
  url: string
  /**
   * Prefix of the indices: PREFIX-letters, PREFIX-records, PREFIX-books. Default: the path of the
   * URL, or `redrive`.
   */
  prefix?: string
  /** Copies of every index. Default: one if there is a second node to hold it. */
  replicas?: number
  /**
   * An alias for your own queries on letters. False: none. Default: `mahavishnu_dlq`, the index of
   * the workflow design, so that its queries work unchanged.
   */
  alias?: string | false
  clock?: Clock
  /** Further options of the client: certificates, another way to sign requests. */
  client?: ClientOptions
}

const knownOptions = keysOf<OpenSearchStoreOptions>({
  url: true,
  prefix: true,
  replicas: true,
  alias: true,
  clock: true,
  client: true,
})

export interface OpenSearchStore extends Store {
  /**
   * Full-text search over failures and, if allowed, over payloads that are JSON or text. Best
   * first.
   */
  search(text: string, options?: SearchOptions): Promise<LetterSummary[]>
}

/** The interval at which a claim also completes the unfinished work of dead processes. */
const recoverMs = 30_000

/** A store of letters in an OpenSearch cluster, for any number of processes. */
export function openSearchStore(options: OpenSearchStoreOptions): OpenSearchStore {
  checkKeys('options of openSearchStore', options, knownOptions, { code: 'INVALID_CONFIG' })
  return new DocumentStore(options)
}

class DocumentStore implements OpenSearchStore {
  readonly powers: Powers = {
    kind: 'opensearch',
    durable: true,
    shared: true,
    search: 'full-text',
    wakeups: 'local',
  }
  readonly records: Records
  readonly #address: Address
  readonly #connection: OpensearchConnection
  readonly #context: StoreContext
  readonly #records: DocumentIndex<RecordDocument>
  readonly #adds: Batcher<readonly DeadLetter[], AddResult[]>
  /** Claims run one at a time, since concurrent claims of one process would only conflict. */
  readonly #serializeClaim = createSerializer()
  /** Adds within a capacity run one at a time, since concurrent ones could exceed the capacity. */
  readonly #serializeAddWithin = createSerializer()
  readonly #watchers = new Watchers()
  readonly #life = new Lifetime('opensearch', {
    release: () => this.#connection.disconnect(),
    isRefusal,
  })
  #recoveredAt = -Infinity

  constructor(options: OpenSearchStoreOptions) {
    const { url, client, clock = systemClock } = options
    this.#address = addressOf(url, options)
    this.#connection = new OpensearchConnection(this.#address, clock, client)
    const createIndex = <T extends Stamped>(name: IndexName): DocumentIndex<T> =>
      new DocumentIndex<T>(
        this.#connection,
        this.#address.node,
        indexOf(this.#address.prefix, name),
        clock,
      )
    this.#context = {
      letters: createIndex('letters'),
      keys: createIndex('books'),
      lanes: createIndex('books'),
      totals: new Totals(createIndex('books'), clock),
      clock,
      wake: () => this.#watchers.notify(),
    }
    this.#records = createIndex('records')
    this.#adds = new Batcher({ maxInFlight: 2, maxBatchCost: 500 }, async (calls) => {
      const outcomes = await addEach(this.#context, calls.flat())
      return splitResults(outcomes, calls).map(
        (call) => call.find((outcome) => 'error' in outcome) ?? { value: unwrapOutcomes(call) },
      )
    })
    this.records = openSearchRecords(() => {
      this.#life.check()
      return { records: this.#records, clock }
    })
  }

  open(): Promise<void> {
    return this.#life.open(async () => {
      for (const { name, markMigrated } of await openIndices(this.#connection, this.#address)) {
        if (name === 'letters') await rewriteOldDocuments(this.#context)
        await markMigrated()
      }
    })
  }

  close(): Promise<void> {
    const wasOpen = this.#life.state === 'open'
    this.#watchers.clear()
    return this.#life.close(async () => {
      // A failure does no harm: another process can fold the documents later.
      if (wasOpen) await this.#context.totals.foldDocuments().catch(() => {})
      await this.#connection.close()
    })
  }

  async add(letters: readonly DeadLetter[], capacity?: Capacity): Promise<AddResult[]> {
    return this.#run((context) => {
      if (letters.length === 0) return Promise.resolve([])
      const copies = letters.map(copyLetter)
      if (capacity) return this.#serializeAddWithin(() => addWithin(context, copies, capacity))
      return this.#adds.call(copies, copies.length)
    })
  }

  async get(ids: readonly string[]): Promise<DeadLetter[]> {
    return this.#run(async (context) => {
      const letters = await readLetters(context, ids)
      return ids.flatMap((id) => {
        const letter = letters.get(id)
        return letter ? [letterOf(letter.record)] : []
      })
    })
  }

  async original(id: string): Promise<Payload | undefined> {
    return this.#run(async (context) => {
      const record = (await readLetters(context, [id])).get(id)?.record
      return record?.original ?? record?.letter.payload
    })
  }

  find(query: LetterQuery & { payload: true }): Promise<Page<DeadLetter>>
  find(query: LetterQuery): Promise<Page<LetterSummary>>
  async find(query: LetterQuery): Promise<Page<DeadLetter | LetterSummary>> {
    return this.#run(async (context) => {
      const search = searchOf(query)
      return search.limit === 0 ? { items: [] } : find(context, search)
    })
  }

  async search(text: string, options: SearchOptions = {}): Promise<LetterSummary[]> {
    return this.#run(async ({ letters }) => {
      const query = buildTextQuery(text, options)
      await letters.refresh()
      const hits = await letters.search({ ...query, _source: summaryFields })
      return hits.map(({ id, source }) => summaryOf(id, source))
    })
  }

  async tally(by: TallyKey, filter: LetterFilter = {}): Promise<Map<string, number>> {
    return this.#run(async (context) => {
      checkTally(by, filter)
      return tally(context, by, filter)
    })
  }

  async totals(): Promise<Total[]> {
    return this.#run(({ totals }) => totals.readAll())
  }

  async stored(ids: readonly string[]): Promise<StoredLetter[]> {
    return this.#run((context) => readStored(context, ids))
  }

  async keep(letters: readonly KeptLetter[]): Promise<KeepResult[]> {
    return this.#run((context) => keep(context, structuredClone(letters)))
  }

  async keepTotals(totals: readonly Total[]): Promise<void> {
    return this.#run((context) => context.totals.replace(totals))
  }

  async claim(request: ClaimRequest): Promise<Claim> {
    return this.#run((context) => {
      checkLease(request.leaseMs)
      return this.#serializeClaim(async () => {
        await this.#recoverPeriodically(context)
        return claim(context, request)
      })
    })
  }

  async renew(leases: readonly LeaseRef[], leaseMs: number): Promise<boolean[]> {
    return this.#run(async (context) => {
      checkLease(leaseMs)
      return renew(context, leases, leaseMs)
    })
  }

  async apply(changes: readonly Change[]): Promise<ApplyResult[]> {
    return this.#run((context) => apply(context, structuredClone(changes)))
  }

  applyAll(letters: readonly LetterVersion[], moves: BulkMoves): Promise<ApplyResult[]> {
    return applyEach(this, letters, moves)
  }

  async remove(filter: LetterFilter): Promise<number> {
    return this.#run(async (context) => {
      checkRemoval(filter)
      return remove(context, filter)
    })
  }

  watch(listener: () => void): () => void {
    return this.#watchers.add(listener)
  }

  health(): Promise<StoreHealth> {
    return this.#life.health(() => readHealth(this.#connection, this.#address))
  }

  /** A failed recovery must not fail the claim. It is repeated after the next interval. */
  async #recoverPeriodically(context: StoreContext): Promise<void> {
    if (context.clock.mono() - this.#recoveredAt < recoverMs) return
    this.#recoveredAt = context.clock.mono()
    await recoverUnfinished(context).catch(() => {})
  }

  #run<R>(work: (context: StoreContext) => Promise<R>): Promise<R> {
    return this.#life.run(() => work(this.#context))
  }
}
