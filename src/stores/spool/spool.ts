import { systemClock, type Clock } from '../../clock/clock.ts'
import { hasCode, RedriveError } from '../../errors.ts'
import type { DeadLetter } from '../../letter/letter.ts'
import type { AddResult, Capacity, SpoolStatus, Store, StoreHealth } from '../../store.ts'
import type { Backlog, Tell } from './backlog.ts'
import { deliver } from './deliver.ts'
import { gated } from './gate.ts'
import { inMemory } from './in-memory.ts'
import { journal } from './journal.ts'
import { healthWith } from './health.ts'
import { passThrough } from '../pass-through.ts'

export interface SpoolOptions {
  /** The folder of the journal, on a local disk. Without one, letters wait in memory only. */
  path?: string
  /** How much may wait. A GiB unless said. */
  maxBytes?: number
  /** How long the store may take to keep letters before it counts as away. 5 s unless said. */
  timeoutMs?: number
  /** What the letters that waited are added with. */
  capacity?: Capacity | undefined
  clock?: Clock
  tell?: Tell
}

export interface SpooledStore extends Store {
  spool(): Promise<SpoolStatus>
}

/**
 * A store that keeps new letters in a spool while the store behind it is away, and gives them to it afterwards, in
 * their order. It opens also while the store is away, and opens the store when it is back; until then all verbs but `add`
 * reject with STORE_UNAVAILABLE. Afterwards they go straight through. It stands before a store rather than in `capture`, so
 * that every door has it, and none knows of it.
 */
export function spooled(store: Store, options: SpoolOptions = {}): SpooledStore {
  const spool = new Spool(store, options)
  return passThrough(gated(store, spool.notConnected), {
    open: () => spool.open(),
    close: () => spool.close(),
    add: (letters: readonly DeadLetter[], capacity?: Capacity) => spool.add(letters, capacity),
    health: () => spool.health(),
    spool: () => spool.status(),
  })
}

/** The first of a drain is one letter, to see whether the store is there; then each batch is twice the last. */
const maxBatch = 256

/** Between two looks at a store that is away. */
const firstWaitMs = 500
const maxWaitMs = 30_000

class Spool {
  readonly #store: Store
  readonly #options: SpoolOptions
  readonly #clock: Clock
  readonly #tell: Tell
  readonly #backlog: Backlog
  readonly #adding = new Set<Promise<unknown>>()
  /** What the drain waits for, unless the store answers before. */
  #patience: PromiseWithResolvers<never> | undefined
  /** Whether the store did not answer, or not as it should, the last time it was asked to keep letters. */
  #away = false
  /** What the drain last met, for health. */
  #trouble: unknown
  /** Whether observers know that letters wait. */
  #told = false
  #failures = 0
  #batch = 1
  #drained = 0
  /** Of what is being drained since the spool was last empty. */
  #run = { count: 0, duplicates: 0 }
  #draining: Promise<void> | undefined
  #stopTimer: (() => void) | undefined
  #opening: Promise<void> | undefined
  #closing: Promise<void> | undefined
  /** The open of the store that is under way. */
  #connecting: Promise<void> | undefined
  /** `away`: the spool is open, and the store could not be opened yet. */
  #state: 'new' | 'away' | 'connected' = 'new'

  constructor(store: Store, options: SpoolOptions) {
    const { path, maxBytes = 2 ** 30, clock = systemClock, tell = () => {} } = options
    this.#store = store
    this.#options = options
    this.#clock = clock
    this.#tell = tell
    this.#backlog =
      path === undefined ? inMemory(maxBytes, tell) : journal({ path, maxBytes, clock, tell })
  }

  /** A store that is away is opened later. One that refuses, because of its settings or ours, fails the open. */
  async open(): Promise<void> {
    if (this.#closing) throw closed()
    const away = await this.#connect().then(
      () => undefined,
      (error: unknown) => {
        if (!hasCode(error, 'STORE_UNAVAILABLE')) throw error
        return error
      },
    )
    // Whoever closed it meanwhile would not come back to let go of the journals.
    if (this.#closing) throw closed()
    this.#opening ??= this.#backlog.open()
    try {
      await this.#opening
    } catch (error) {
      await this.#store.close()
      throw error
    }
    if (!away) return this.#drain()
    this.#away = true
    this.#trouble = away
    if (this.#state === 'new') this.#state = 'away'
    this.#tell({ type: 'error', during: 'opening the store', error: away })
    if (!this.#draining && !this.#stopTimer) this.#defer()
  }

  /** Opens the store. It has as long as it takes, since it may have to migrate; drivers themselves give up on a server that is silent. */
  async #connect(): Promise<void> {
    const connecting = (this.#connecting ??= this.#store
      .open()
      .then(() => void (this.#state = 'connected'))
      .finally(() => (this.#connecting = undefined)))
    await Promise.race([connecting, this.#orClosed().promise])
  }

  /** Why all verbs but `add` are refused; undefined once the store was opened, and before the spool is. */
  readonly notConnected = (): RedriveError | undefined => {
    if (this.#state !== 'away') return undefined
    if (this.#closing) return closed()
    return new RedriveError(
      'STORE_UNAVAILABLE',
      `the store could not be opened yet, and is tried again: ${textOf(this.#trouble)}`,
      { cause: this.#trouble },
    )
  }

  /** What waits stays where it is, for the next one to open it. */
  close(): Promise<void> {
    return (this.#closing ??= this.#end())
  }

  async #end(): Promise<void> {
    this.#stopTimer?.()
    this.#patience?.reject(closed())
    await Promise.allSettled([this.#opening, this.#draining, ...this.#adding])
    await this.#backlog.close()
    await this.#store.close()
  }

  async add(letters: readonly DeadLetter[], capacity?: Capacity): Promise<AddResult[]> {
    if (this.#closing) throw closed()
    const adding = this.#add(letters, capacity)
    this.#adding.add(adding)
    return adding.finally(() => this.#adding.delete(adding))
  }

  async #add(letters: readonly DeadLetter[], capacity?: Capacity): Promise<AddResult[]> {
    if (!this.#mayGoAhead(letters)) return this.#keep(letters)
    try {
      const results = await this.#within(this.#store.add(letters, capacity))
      this.#away = false
      return results
    } catch (error) {
      if (!(error instanceof RedriveError) || error.code !== 'STORE_UNAVAILABLE') throw error
      this.#away = true
      this.#trouble = error
      return this.#keep(letters)
    }
  }

  /**
   * While letters wait, those that have an order to keep go behind them; the others go to the store as soon as it
   * has taken something again. So a long drain holds up nobody who does not need it.
   */
  #mayGoAhead(letters: readonly DeadLetter[]): boolean {
    if (this.#state === 'away') return false
    return this.#backlog.empty || (!this.#away && !letters.some(hasOrder))
  }

  /** Whether a letter is a duplicate shows only when it comes to the store. */
  async #keep(letters: readonly DeadLetter[]): Promise<AddResult[]> {
    await this.#backlog.append(letters)
    if (!this.#told) {
      this.#told = true
      this.#tell({ type: 'spooling', place: this.#backlog.place, error: this.#trouble })
    }
    if (!this.#draining && !this.#stopTimer) this.#defer()
    return letters.map(() => ({ kind: 'added' }))
  }

  #drain(): void {
    if (this.#closing) return
    // Opened once more, it does not wait any longer.
    this.#stopTimer?.()
    this.#stopTimer = undefined
    this.#draining ??= this.#drainAll()
      .catch((error: unknown) => this.#report(error))
      .finally(() => {
        this.#draining = undefined
        if (!this.#backlog.empty || this.#state === 'away') this.#defer()
      })
  }

  /** Later, and later each time it fails. */
  #defer(): void {
    if (this.#closing) return
    const most = Math.min(maxWaitMs, firstWaitMs * 2 ** this.#failures)
    this.#failures += 1
    this.#stopTimer = this.#clock.timer(most * (0.5 + this.#clock.random() / 2), () => {
      this.#stopTimer = undefined
      this.#drain()
    })
  }

  /** Until nothing waits, or the store will not have it. */
  async #drainAll(): Promise<void> {
    if (this.#state === 'away')
      try {
        await this.#connect()
        this.#away = false
        this.#failures = 0
      } catch (error) {
        return this.#report(error, 'opening the store')
      }
    for (;;) {
      const entries = await this.#backlog.head()
      if (!entries || this.#closing) break
      const batch = entries.slice(0, this.#batch)
      const { capacity } = this.#options
      const delivery = await deliver(this.#store, batch, capacity, (call) =>
        this.#within(call, this.#orClosed()),
      )
      for (const { entry, why } of delivery.refused) await this.#backlog.refuse(entry, why)
      await this.#backlog.settle(delivery.settled)
      const count = delivery.settled - delivery.refused.length
      this.#drained += count
      this.#run.count += count
      this.#run.duplicates += delivery.duplicates
      if ('trouble' in delivery) {
        this.#away = !hasCode(delivery.trouble, 'QUEUE_FULL')
        return this.#report(delivery.trouble)
      }
      this.#away = false
      this.#failures = 0
      this.#batch = Math.min(this.#batch * 2, maxBatch)
    }
    if (this.#backlog.empty) this.#rest()
  }

  #rest(): void {
    if (this.#run.count > 0) this.#tell({ type: 'drained', ...this.#run })
    this.#run = { count: 0, duplicates: 0 }
    this.#told = false
    this.#trouble = undefined
    this.#failures = 0
    this.#batch = 1
  }

  /** That the store is away is known; anything else is told, once. */
  #report(error: unknown, during = 'draining the spool'): void {
    if (this.#closing) return
    const isNew = textOf(error) !== textOf(this.#trouble)
    this.#batch = 1
    this.#trouble = error
    if (isNew && !hasCode(error, 'STORE_UNAVAILABLE')) this.#tell({ type: 'error', during, error })
  }

  /** What closing rejects, so that it does not wait for a store that does not answer. */
  #orClosed(): PromiseWithResolvers<never> {
    this.#patience = Promise.withResolvers()
    if (this.#closing) this.#patience.reject(closed())
    return this.#patience
  }

  /** A call that is too late may still have been carried out. The spool gives it the same letters again. */
  async #within<T>(call: Promise<T>, late = Promise.withResolvers<never>()): Promise<T> {
    const { timeoutMs = 5000 } = this.#options
    call.catch(() => {})
    const cancel = this.#clock.timer(timeoutMs, () =>
      late.reject(
        new RedriveError('STORE_UNAVAILABLE', `the store did not answer within ${timeoutMs} ms`),
      ),
    )
    try {
      return await Promise.race([call, late.promise])
    } finally {
      cancel()
    }
  }

  async status(): Promise<SpoolStatus> {
    const { letters, bytes, oldestAt = null } = this.#backlog
    return { letters, bytes, oldestAt, drained: this.#drained, ...(await this.#backlog.aside()) }
  }

  async #healthOfStore(): Promise<StoreHealth> {
    try {
      const problem = this.notConnected()
      if (problem) throw problem
      return await this.#within(this.#store.health())
    } catch (error) {
      return { ok: false, checks: {}, problems: [textOf(error)] }
    }
  }

  async health(): Promise<StoreHealth> {
    const inner = await this.#healthOfStore()
    const { place } = this.#backlog
    const durable = this.#options.path !== undefined
    return healthWith(inner, await this.status(), {
      place,
      durable,
      trouble: this.#state === 'away' ? '' : textOf(this.#trouble),
    })
  }
}

/** Letters of a lane, letters that wait for others, and letters that may be one with others. */
function hasOrder({ lane, dependsOn, dedupeKey }: DeadLetter): boolean {
  return lane !== undefined || dependsOn !== undefined || dedupeKey !== undefined
}

function textOf(error: unknown): string {
  if (error === undefined) return ''
  return error instanceof Error ? error.message : 'it failed with what is no error'
}

function closed(): RedriveError {
  return new RedriveError('CLOSED', 'the store is closed')
}
