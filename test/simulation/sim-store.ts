import { RedriveError } from '../../src/errors.ts'
import type { DeadLetter, Json } from '../../src/letter/letter.ts'
import type { BulkMoves, Change } from '../../src/letter/moves.ts'
import { applyEach } from '../../src/stores/apply-each.ts'
import type { LetterFilter, LetterQuery } from '../../src/letter/query.ts'
import type {
  Capacity,
  ClaimRequest,
  LeaseRef,
  LetterVersion,
  Powers,
  Records,
  Store,
  StoredLetter,
  TallyKey,
  Total,
} from '../../src/store.ts'
import type { Dice } from './dice.ts'
import type { Oracle } from './oracle.ts'
import type { Setup } from './settings.ts'
import type { RunObserver } from './run-observer.ts'
import type { Owner, Scheduler } from './scheduler.ts'

/** The process that a store is used from. */
export interface Caller extends Owner {
  name: string
  /** Number of results in flight. */
  settling: number
  crash(why: string): void
}

interface SimStoreOptions {
  scheduler: Scheduler
  setup: Setup
  dice: Dice
  caller: Caller
  /** The one store that all processes share. */
  shared: Store
  oracle: Oracle
  runObserver: RunObserver
  /** Whether faults are enabled. */
  faulty: () => boolean
  /** Called right before the shared store, which may use the clock of the caller. */
  reach: () => void
}

type Fault = 'refused' | 'unknown' | 'slow' | 'hung' | 'crashBefore' | 'crashAfter'

/**
 * The store as one process sees it: over a network that delays, loses and reorders answers, and
 * that is silent after the process dies. Each call takes effect atomically, and the oracle checks
 * it.
 */
export class SimStore implements Store {
  readonly powers: Powers
  readonly #options: SimStoreOptions
  readonly #watchers = new Set<() => void>()
  #unwatch: (() => void) | undefined
  #closed = false

  constructor(options: SimStoreOptions) {
    this.#options = options
    this.powers = options.shared.powers
  }

  async open(): Promise<void> {}

  async close(): Promise<void> {
    this.#closed = true
    this.#unwatch?.()
  }

  add(letters: readonly DeadLetter[], capacity?: Capacity) {
    const { shared, oracle, caller } = this.#options
    oracle.additions.checkCaptured(letters)
    return this.#call('add', async () => {
      const results = await shared.add(letters, capacity)
      await oracle.additions.added(caller.name, letters, capacity, results)
      return results
    })
  }

  claim(request: ClaimRequest) {
    const { shared, oracle, runObserver, caller } = this.#options
    return this.#call(
      'claim',
      async () => {
        const claim = await shared.claim(request)
        await oracle.leases.claimed(caller.name, request, claim)
        return claim
      },
      (claim) => {
        oracle.leases.answered(caller.name, claim)
        runObserver.claimAnswered(caller.name, claim.letters)
      },
    )
  }

  renew(leases: readonly LeaseRef[], leaseMs: number) {
    const { shared, oracle, caller } = this.#options
    const refs = leases.map(({ id, epoch }) => ({ id, epoch }))
    return this.#call('renew', async () => {
      const kept = await shared.renew(refs, leaseMs)
      await oracle.leases.renewed(caller.name, refs, leaseMs, kept)
      return kept
    })
  }

  apply(changes: readonly Change[]) {
    const { shared, oracle, runObserver, caller } = this.#options
    const settles = changes.some(({ guard }) => 'epoch' in guard)
    runObserver.settling(caller.name, changes)
    if (settles) caller.settling++
    const answer = this.#call(
      'apply',
      async () => {
        const results = await shared.apply(changes)
        await oracle.changes.applied(caller.name, changes, results)
        return results
      },
      (results) => runObserver.answered(caller.name, changes, results),
    )
    return settles ? answer.finally(() => caller.settling--) : answer
  }

  applyAll(letters: readonly LetterVersion[], moves: BulkMoves) {
    return applyEach(this, letters, moves)
  }

  remove(which: LetterFilter) {
    const { shared, oracle, caller } = this.#options
    return this.#call('remove', async () => {
      const count = await shared.remove(which)
      await oracle.changes.removed(caller.name, which, count)
      return count
    })
  }

  get(ids: readonly string[]) {
    return this.#call('get', () => this.#options.shared.get(ids))
  }

  original(id: string) {
    return this.#call('original', () => this.#options.shared.original(id))
  }

  find(query: LetterQuery): never {
    return this.#call('find', () => this.#options.shared.find(query)) as never
  }

  tally(by: TallyKey, filter?: LetterFilter) {
    return this.#call('tally', () => this.#options.shared.tally(by, filter))
  }

  totals() {
    return this.#call('totals', () => this.#options.shared.totals())
  }

  stored(ids: readonly string[]) {
    return this.#call('stored', () => this.#options.shared.stored(ids))
  }

  keep(letters: readonly StoredLetter[]) {
    return this.#call('keep', () => this.#options.shared.keep(letters))
  }

  keepTotals(totals: readonly Total[]) {
    return this.#call('keepTotals', () => this.#options.shared.keepTotals(totals))
  }

  readonly records: Records = {
    get: (kind, id) => this.#call('records.get', () => this.#options.shared.records.get(kind, id)),
    put: (kind: string, id: string, value: Json, expectedVersion?: number) =>
      this.#call('records.put', () =>
        this.#options.shared.records.put(kind, id, value, expectedVersion),
      ),
    kinds: () => this.#call('records.kinds', () => this.#options.shared.records.kinds()),
    list: (kind, options) =>
      this.#call('records.list', () => this.#options.shared.records.list(kind, options)),
    remove: (kind, id) =>
      this.#call('records.remove', () => this.#options.shared.records.remove(kind, id)),
  }

  health() {
    return this.#options.shared.health()
  }

  /** Hints arrive late, twice or never. */
  watch(listener: () => void): () => void {
    const { scheduler, dice, caller, shared, setup } = this.#options
    this.#watchers.add(listener)
    this.#unwatch ??= shared.watch(() => {
      const times = setup.faulty ? dice.pick([0, 1, 1, 2]) : 1
      for (let n = 0; n < times; n++)
        scheduler.after(
          this.#drawLatency(),
          () => this.#watchers.forEach((notify) => notify()),
          caller,
        )
    })
    return () => void this.#watchers.delete(listener)
  }

  #drawLatency(): number {
    return this.#options.dice.next() * this.#options.setup.latencyMs
  }

  /** A call has three steps: request, effect and reply. Each can fail. */
  #call<T>(verb: string, effect: () => Promise<T>, answered?: (result: T) => void): Promise<T> {
    const { scheduler, oracle, caller, reach } = this.#options
    if (this.#closed) return Promise.reject(new RedriveError('CLOSED', 'the store is closed'))
    const fault = this.#drawFault(verb)
    return new Promise((resolve, reject) => {
      if (fault === 'crashBefore') {
        caller.crash(`before ${verb}`)
        if (this.#options.dice.chance(0.5)) return
      }
      const { requestMs, replyMs } = this.#drawLatencies(fault)
      const fail = (): void => {
        scheduler.log(`${caller.name} ${verb} is answered with an error (${fault})`)
        reject(new RedriveError('STORE_UNAVAILABLE', `the store did not answer (${fault} ${verb})`))
      }
      scheduler.after(requestMs, async () => {
        if (fault === 'refused') return void scheduler.after(replyMs, fail, caller)
        reach()
        const result = await effect()
        if (fault === 'unknown') {
          oracle.ledger.coverage.record(`applied-then-error on ${verb}`)
          return void scheduler.after(replyMs, fail, caller)
        }
        if (fault === 'crashAfter') return caller.crash(`after ${verb}`)
        const answer = (): void => {
          answered?.(result)
          resolve(result)
        }
        if (replyMs === 0 && caller.alive && caller.pausedUntilMs <= scheduler.nowMs) answer()
        else scheduler.after(replyMs, answer, caller)
      })
    })
  }

  #drawFault(verb: string): Fault | undefined {
    const { setup, dice, faulty } = this.#options
    if (!setup.faulty || !faulty() || (setup.onlyVerb !== undefined && setup.onlyVerb !== verb))
      return undefined
    let roll = dice.next()
    for (const [fault, rate] of Object.entries(setup.rates) as [Fault, number][]) {
      roll -= rate
      if (roll < 0) return fault
    }
    return undefined
  }

  #drawLatencies(fault: Fault | undefined): { requestMs: number; replyMs: number } {
    const { setup, dice } = this.#options
    const latencies = { requestMs: this.#drawLatency(), replyMs: this.#drawLatency() }
    if (fault !== 'slow' && fault !== 'hung') return latencies
    const extra = setup.leaseMs * (fault === 'slow' ? dice.next() : dice.between(1, 6))
    latencies[dice.pick(['requestMs', 'replyMs'] as const)] += extra
    return latencies
  }
}
