import type { ClientOptions } from '@opensearch-project/opensearch'
import { applyByPage } from '../apply-all.ts'
import { systemClock, type Clock } from '../../clock/clock.ts'
import { Batcher, splitResults } from '../../backends/batcher.ts'
import { checkLease } from '../lease.ts'
import { checkKeys, keysOf } from '../../check/keys.ts'
import { Lifetime } from '../lifetime.ts'
import { checkRemoval, checkTally } from '../../check/filter.ts'
import { searchOf } from '../search.ts'
import type { DeadLetter, LetterSummary, Payload } from '../../letter/letter.ts'
import type { Change } from '../../letter/moves.ts'
import type { LetterFilter, LetterQuery, Page } from '../../letter/query.ts'
import type {
  AddResult,
  ApplyResult,
  BulkRequest,
  BulkResult,
  Capacity,
  Claim,
  ClaimRequest,
  KeepResult,
  LeaseRef,
  Powers,
  Records,
  Store,
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
import { readLetters, oneAtATime, type StoreContext } from './context.ts'
import { letterOf, summaryFields, summaryOf } from './document.ts'
import { find, tally } from './find.ts'
import { fullText } from './full-text.ts'
import { healthOf } from './health.ts'
import { keep, stored } from './keep.ts'
import { indexOf, openIndices, type IndexName } from './mapping.ts'
import { openSearchRecords, type RecordDocument } from './records.ts'
import { rewriteOldDocuments } from './migrate.ts'
import { remove } from './remove.ts'
import { DocumentIndex, type Stamped } from './document-index.ts'
import { Totals } from './totals.ts'
import { isUnwelcome } from '../../backends/opensearch/errors.ts'
import { recover } from './waits.ts'
import { OpensearchConnection } from '../../backends/opensearch/connection.ts'
import { Watchers } from '../../backends/watchers.ts'

export { follow, type FollowedStore, type FollowOptions } from './follower.ts'
export { openSearchIndex, type SearchIndex, type SearchIndexOptions } from './search-index.ts'

export interface OpenSearchStoreOptions {
  /** `opensearch://user:password@host:9200/prefix`, or `opensearchs://` over TLS. */
  url: string
  /**
   * Prefix of our indices: PREFIX-letters, PREFIX-records, PREFIX-books. Default: the path of the
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

/** The interval at which a claim also repairs what dead processes left unfinished. */
const recoverMs = 30_000

/** Letters as documents of an OpenSearch cluster, for any number of processes. */
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
  /**
   * Concurrent claims of one process would only conflict, and so would letters that share the
   * remaining capacity.
   */
  readonly #inClaimLine = oneAtATime()
  readonly #inRoomLine = oneAtATime()
  readonly #watchers = new Watchers()
  readonly #life = new Lifetime('opensearch', {
    release: () => this.#connection.disconnect(),
    isRefusal: isUnwelcome,
  })
  #recoveredAt = -Infinity

  constructor(options: OpenSearchStoreOptions) {
    const { url, client, clock = systemClock } = options
    this.#address = addressOf(url, options)
    this.#connection = new OpensearchConnection(this.#address, clock, client)
    const shelf = <T extends Stamped>(name: IndexName): DocumentIndex<T> =>
      new DocumentIndex<T>(
        this.#connection,
        this.#address.node,
        indexOf(this.#address.prefix, name),
        clock,
      )
    this.#context = {
      letters: shelf('letters'),
      keys: shelf('books'),
      lanes: shelf('books'),
      totals: new Totals(shelf('books'), clock),
      clock,
      wake: () => this.#watchers.notify(),
    }
    this.#records = shelf('records')
    this.#adds = new Batcher({ maxInFlight: 2, maxBatchCost: 500 }, async (asks) => {
      const outcomes = await addEach(this.#context, asks.flat())
      return splitResults(outcomes, asks).map(
        (some) => some.find((one) => 'error' in one) ?? { value: unwrapOutcomes(some) },
      )
    })
    this.records = openSearchRecords(() => {
      this.#life.check()
      return { records: this.#records, clock }
    })
  }

  open(): Promise<void> {
    return this.#life.open(async () => {
      for (const { name, done } of await openIndices(this.#connection, this.#address)) {
        if (name === 'letters') await rewriteOldDocuments(this.#context)
        await done()
      }
    })
  }

  close(): Promise<void> {
    const wasOpen = this.#life.state === 'open'
    this.#watchers.clear()
    return this.#life.close(async () => {
      // Cleanup may wait for the next claim.
      if (wasOpen) await this.#context.totals.end().catch(() => {})
      await this.#connection.close()
    })
  }

  async add(letters: readonly DeadLetter[], capacity?: Capacity): Promise<AddResult[]> {
    return this.#do((context) => {
      if (letters.length === 0) return Promise.resolve([])
      const given = letters.map(copyLetter)
      if (capacity) return this.#inRoomLine(() => addWithin(context, given, capacity))
      return this.#adds.call(given, given.length)
    })
  }

  async get(ids: readonly string[]): Promise<DeadLetter[]> {
    return this.#do(async (context) => {
      const found = await readLetters(context, ids)
      return ids.flatMap((id) => {
        const standing = found.get(id)
        return standing ? [letterOf(standing.record)] : []
      })
    })
  }

  async original(id: string): Promise<Payload | undefined> {
    return this.#do(async (context) => {
      const record = (await readLetters(context, [id])).get(id)?.record
      return record?.original ?? record?.letter.payload
    })
  }

  find(query: LetterQuery & { payload: true }): Promise<Page<DeadLetter>>
  find(query: LetterQuery): Promise<Page<LetterSummary>>
  async find(query: LetterQuery): Promise<Page<DeadLetter | LetterSummary>> {
    return this.#do(async (context) => {
      const search = searchOf(query)
      return search.limit === 0 ? { items: [] } : find(context, search)
    })
  }

  async search(text: string, options: SearchOptions = {}): Promise<LetterSummary[]> {
    return this.#do(async ({ letters }) => {
      const asked = fullText(text, options)
      await letters.refresh()
      const { hits } = await letters.search({ ...asked, _source: summaryFields })
      return hits.map(({ id, source }) => summaryOf(id, source))
    })
  }

  async tally(by: TallyKey, filter: LetterFilter = {}): Promise<Map<string, number>> {
    return this.#do(async (context) => {
      checkTally(by, filter)
      return tally(context, by, filter)
    })
  }

  async totals(): Promise<Total[]> {
    return this.#do(({ totals }) => totals.all())
  }

  async stored(ids: readonly string[]): Promise<StoredLetter[]> {
    return this.#do((context) => stored(context, ids))
  }

  async keep(letters: readonly StoredLetter[]): Promise<KeepResult[]> {
    return this.#do((context) => keep(context, structuredClone(letters)))
  }

  async keepTotals(totals: readonly Total[]): Promise<void> {
    return this.#do((context) => context.totals.set(totals))
  }

  async claim(request: ClaimRequest): Promise<Claim> {
    return this.#do((context) => {
      checkLease(request.leaseMs)
      return this.#inClaimLine(async () => {
        await this.#recoverAtTimes(context)
        return claim(context, request)
      })
    })
  }

  async renew(leases: readonly LeaseRef[], leaseMs: number): Promise<boolean[]> {
    return this.#do(async (context) => {
      checkLease(leaseMs)
      return renew(context, leases, leaseMs)
    })
  }

  async apply(changes: readonly Change[]): Promise<ApplyResult[]> {
    return this.#do((context) => apply(context, structuredClone(changes)))
  }

  applyAll(request: BulkRequest): Promise<BulkResult> {
    return applyByPage(this, request)
  }

  async remove(which: LetterFilter): Promise<number> {
    return this.#do(async (context) => {
      checkRemoval(which)
      return remove(context, which)
    })
  }

  watch(listener: () => void): () => void {
    return this.#watchers.add(listener)
  }

  health(): Promise<StoreHealth> {
    return this.#life.health(() => healthOf(this.#connection, this.#address))
  }

  /** A claim must not fail because cleanup did; it is repeated at the next interval. */
  async #recoverAtTimes(context: StoreContext): Promise<void> {
    if (context.clock.mono() - this.#recoveredAt < recoverMs) return
    this.#recoveredAt = context.clock.mono()
    await recover(context).catch(() => {})
  }

  #do<R>(work: (context: StoreContext) => Promise<R>): Promise<R> {
    return this.#life.run(() => work(this.#context))
  }
}
