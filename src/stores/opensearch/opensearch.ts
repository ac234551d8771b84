import type { ClientOptions } from '@opensearch-project/opensearch'
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
import { addEach, addWithin, copied, together } from './add.ts'
import { addressOf, type Address } from '../../backends/opensearch/address.ts'
import { apply, renew } from './apply.ts'
import { claim } from './claim.ts'
import { lettersNow, oneAtATime, type Desk } from './desk.ts'
import { letterOf, summaryFields, summaryOf } from './document.ts'
import { find, tally } from './find.ts'
import { fullText } from './full-text.ts'
import { healthOf } from './health.ts'
import { keep, stored } from './keep.ts'
import { indexOf, openIndices, type IndexName } from './mapping.ts'
import { openSearchRecords, type RecordDocument } from './records.ts'
import { rewriteOld } from './migrate.ts'
import { remove } from './remove.ts'
import { Shelf, type Stamped } from './shelf.ts'
import { Totals } from './totals.ts'
import { isUnwelcome } from '../../backends/opensearch/errors.ts'
import { recover } from './waits.ts'
import { Wire } from '../../backends/opensearch/connection.ts'
import { watchers, type Watchers } from '../../backends/watchers.ts'

export { follow, type FollowedStore, type FollowOptions } from './follower.ts'
export { openSearchIndex, type SearchIndex, type SearchIndexOptions } from './search-index.ts'

export interface OpenSearchStoreOptions {
  /** `opensearch://user:password@host:9200/prefix`, or `opensearchs://` over TLS. */
  url: string
  /** What our indices are called: PREFIX-letters, PREFIX-records, PREFIX-books. `redrive`, unless the URL says otherwise. */
  prefix?: string
  /** Copies of every index. Unless said, one where there is a second node to hold it. */
  replicas?: number
  /**
   * An alias under which queries of your own find the letters. Default: `mahavishnu_dlq`, the index of the workflow design, so that its
   * queries work as they are. False: none.
   */
  alias?: string | false
  clock?: Clock
  /** What the client takes beyond that: certificates, another way to sign requests. */
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
  /** Full text over what is known of failures and, if allowed, over payloads that are JSON or text. Best first. */
  search(text: string, options?: SearchOptions): Promise<LetterSummary[]>
}

/** How often a claim also looks after what processes that died have left half done. */
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
  readonly #wire: Wire
  readonly #desk: Desk
  readonly #records: Shelf<RecordDocument>
  readonly #adds: Batcher<readonly DeadLetter[], AddResult[]>
  /** Claims of one process would only get in each other's way, and so would letters that share what room is left. */
  readonly #inClaimLine = oneAtATime()
  readonly #inRoomLine = oneAtATime()
  readonly #watchers: Watchers = watchers()
  readonly #life = new Lifetime('opensearch', {
    release: () => this.#wire.disconnect(),
    isRefusal: isUnwelcome,
  })
  #recoveredAt = -Infinity

  constructor(options: OpenSearchStoreOptions) {
    const { url, client, clock = systemClock } = options
    this.#address = addressOf(url, options)
    this.#wire = new Wire(this.#address, clock, client)
    const shelf = <T extends Stamped>(name: IndexName): Shelf<T> =>
      new Shelf<T>(this.#wire, this.#address.node, indexOf(this.#address.prefix, name), clock)
    this.#desk = {
      letters: shelf('letters'),
      keys: shelf('books'),
      lanes: shelf('books'),
      totals: new Totals(shelf('books'), clock),
      clock,
      wake: () => this.#watchers.tell(),
    }
    this.#records = shelf('records')
    this.#adds = new Batcher({ maxInFlight: 2, maxBatchCost: 500 }, async (asks) => {
      const outcomes = await addEach(this.#desk, asks.flat())
      return splitResults(outcomes, asks).map(
        (some) => some.find((one) => 'error' in one) ?? { value: together(some) },
      )
    })
    this.records = openSearchRecords(() => {
      this.#life.check()
      return { records: this.#records, clock }
    })
  }

  open(): Promise<void> {
    return this.#life.open(async () => {
      for (const { name, done } of await openIndices(this.#wire, this.#address)) {
        if (name === 'letters') await rewriteOld(this.#desk)
        await done()
      }
    })
  }

  close(): Promise<void> {
    const wasOpen = this.#life.state === 'open'
    this.#watchers.clear()
    return this.#life.close(async () => {
      // Tidying up may wait for the next one.
      if (wasOpen) await this.#desk.totals.end().catch(() => {})
      await this.#wire.close()
    })
  }

  async add(letters: readonly DeadLetter[], capacity?: Capacity): Promise<AddResult[]> {
    return this.#do((desk) => {
      if (letters.length === 0) return Promise.resolve([])
      const given = letters.map(copied)
      if (capacity) return this.#inRoomLine(() => addWithin(desk, given, capacity))
      return this.#adds.call(given, given.length)
    })
  }

  async get(ids: readonly string[]): Promise<DeadLetter[]> {
    return this.#do(async (desk) => {
      const found = await lettersNow(desk, ids)
      return ids.flatMap((id) => {
        const standing = found.get(id)
        return standing ? [letterOf(standing.kept)] : []
      })
    })
  }

  async original(id: string): Promise<Payload | undefined> {
    return this.#do(async (desk) => {
      const kept = (await lettersNow(desk, [id])).get(id)?.kept
      return kept?.original ?? kept?.letter.payload
    })
  }

  find(query: LetterQuery & { payload: true }): Promise<Page<DeadLetter>>
  find(query: LetterQuery): Promise<Page<LetterSummary>>
  async find(query: LetterQuery): Promise<Page<DeadLetter | LetterSummary>> {
    return this.#do(async (desk) => {
      const search = searchOf(query)
      return search.limit === 0 ? { items: [] } : find(desk, search)
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
    return this.#do(async (desk) => {
      checkTally(by, filter)
      return tally(desk, by, filter)
    })
  }

  async totals(): Promise<Total[]> {
    return this.#do(({ totals }) => totals.all())
  }

  async stored(ids: readonly string[]): Promise<StoredLetter[]> {
    return this.#do((desk) => stored(desk, ids))
  }

  async keep(letters: readonly StoredLetter[]): Promise<KeepResult[]> {
    return this.#do((desk) => keep(desk, structuredClone(letters)))
  }

  async keepTotals(totals: readonly Total[]): Promise<void> {
    return this.#do((desk) => desk.totals.set(totals))
  }

  async claim(request: ClaimRequest): Promise<Claim> {
    return this.#do((desk) => {
      checkLease(request.leaseMs)
      return this.#inClaimLine(async () => {
        await this.#recoverAtTimes(desk)
        return claim(desk, request)
      })
    })
  }

  async renew(leases: readonly LeaseRef[], leaseMs: number): Promise<boolean[]> {
    return this.#do(async (desk) => {
      checkLease(leaseMs)
      return renew(desk, leases, leaseMs)
    })
  }

  async apply(changes: readonly Change[]): Promise<ApplyResult[]> {
    return this.#do((desk) => apply(desk, structuredClone(changes)))
  }

  async remove(which: LetterFilter): Promise<number> {
    return this.#do(async (desk) => {
      checkRemoval(which)
      return remove(desk, which)
    })
  }

  watch(listener: () => void): () => void {
    return this.#watchers.add(listener)
  }

  health(): Promise<StoreHealth> {
    return this.#life.health(() => healthOf(this.#wire, this.#address))
  }

  /** A claim must not fail because tidying up did; it is tried again at the next time. */
  async #recoverAtTimes(desk: Desk): Promise<void> {
    if (desk.clock.mono() - this.#recoveredAt < recoverMs) return
    this.#recoveredAt = desk.clock.mono()
    await recover(desk).catch(() => {})
  }

  #do<R>(work: (desk: Desk) => Promise<R>): Promise<R> {
    return this.#life.run(() => work(this.#desk))
  }
}
