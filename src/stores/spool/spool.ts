import { systemClock, type Clock } from '../../clock/clock.ts'
import { hasCode, RedriveError } from '../../errors.ts'
import type { DeadLetter } from '../../letter/letter.ts'
import type { AddResult, Capacity, SpoolStatus, Store, StoreHealth } from '../../store.ts'
import { passThrough } from '../pass-through.ts'
import type { Backlog, Emit } from './backlog.ts'
import { deliver } from './deliver.ts'
import { DiskBacklog } from './disk-backlog.ts'
import { rejectWhile } from './gate.ts'
import { addSpoolHealth } from './health.ts'
import { MemoryBacklog } from './memory-backlog.ts'

export interface SpoolOptions {
  /** Folder on a local disk. Default: letters wait in memory only. */
  path?: string
  /** Maximum size of the waiting letters. Default: 1 GiB. */
  maxBytes?: number
  /** Time limit for a call of the store before it counts as unavailable. Default: 5 s. */
  timeoutMs?: number
  /** Capacity that waiting letters are added with. */
  capacity?: Capacity | undefined
  clock?: Clock
  emit?: Emit
}

export interface SpooledStore extends Store {
  spool(): Promise<SpoolStatus>
}

/**
 * Puts a spool in front of a store. While the store is unavailable, new letters wait in the spool;
 * afterwards they are added to the store in their order. `open` resolves although the store is
 * unavailable, and the store is opened later; until then all calls except `add` reject with
 * STORE_UNAVAILABLE.
 */
export function addSpool(store: Store, options: SpoolOptions = {}): SpooledStore {
  const spool = new Spool(store, options)
  return passThrough(rejectWhile(store, spool.findProblem), {
    open: () => spool.open(),
    close: () => spool.close(),
    add: (letters: readonly DeadLetter[], capacity?: Capacity) => spool.add(letters, capacity),
    health: () => spool.health(),
    spool: () => spool.status(),
  })
}

/** A drain begins with one letter to test the store. Each following batch is twice as large. */
const maxBatch = 256

/** Pauses between two attempts to reach the store. */
const firstPauseMs = 500
const maxPauseMs = 30_000

class Spool {
  readonly #store: Store
  readonly #options: SpoolOptions
  readonly #clock: Clock
  readonly #emit: Emit
  readonly #backlog: Backlog
  readonly #adds = new Set<Promise<unknown>>()
  /** `away`: the spool is open, the store could not be opened yet. */
  #state: 'new' | 'away' | 'connected' = 'new'
  /** True after a call of the store failed or timed out, until one succeeds. */
  #isAway = false
  /** Last error of the store or the drain, for health. */
  #error: unknown
  /** Whether `spooling` was emitted since the spool was last empty. */
  #isReported = false
  #failures = 0
  #batch = 1
  #drained = 0
  /** Counts since the spool was last empty. */
  #run = { count: 0, duplicates: 0 }
  #draining: Promise<void> | undefined
  #stopTimer: (() => void) | undefined
  #opening: Promise<void> | undefined
  #connecting: Promise<void> | undefined
  #closing: Promise<void> | undefined
  /** `close` rejects it, so that it does not wait for a drain of a store that hangs. */
  #interrupt: PromiseWithResolvers<never> | undefined

  constructor(store: Store, options: SpoolOptions) {
    const { path, maxBytes = 2 ** 30, clock = systemClock, emit = () => {} } = options
    this.#store = store
    this.#options = options
    this.#clock = clock
    this.#emit = emit
    this.#backlog =
      path === undefined
        ? new MemoryBacklog(maxBytes, emit)
        : new DiskBacklog(path, maxBytes, clock, emit)
  }

  /** A store that rejects for another reason than STORE_UNAVAILABLE makes the open reject. */
  async open(): Promise<void> {
    if (this.#closing) throw closedError()
    const error: unknown = await this.#connect().then(
      () => undefined,
      (cause: unknown) => cause,
    )
    if (error !== undefined && !hasCode(error, 'STORE_UNAVAILABLE')) throw error
    // After a close nobody would release the files.
    if (this.#closing) throw closedError()
    this.#opening ??= this.#backlog.open()
    try {
      await this.#opening
    } catch (cause) {
      await this.#store.close()
      throw cause
    }
    if (error === undefined) return this.#drain()
    this.#isAway = true
    this.#error = error
    if (this.#state === 'new') this.#state = 'away'
    this.#emit({ type: 'error', during: 'opening the store', error })
    this.#defer()
  }

  /** Opens the store, without a time limit because it may migrate. Concurrent calls share it. */
  async #connect(): Promise<void> {
    this.#connecting ??= this.#store
      .open()
      .then(() => void (this.#state = 'connected'))
      .finally(() => (this.#connecting = undefined))
    await Promise.race([this.#connecting, this.#makeInterrupt().promise])
  }

  /** Why all calls except `add` are rejected; undefined when the store has been opened. */
  readonly findProblem = (): RedriveError | undefined => {
    if (this.#state !== 'away') return undefined
    if (this.#closing) return closedError()
    const message = `the store could not be opened yet, and is tried again: ${messageOf(this.#error)}`
    return new RedriveError('STORE_UNAVAILABLE', message, { cause: this.#error })
  }

  close(): Promise<void> {
    return (this.#closing ??= this.#end())
  }

  async #end(): Promise<void> {
    this.#stopTimer?.()
    this.#interrupt?.reject(closedError())
    await Promise.allSettled([this.#opening, this.#draining, ...this.#adds])
    await this.#backlog.close()
    await this.#store.close()
  }

  async add(letters: readonly DeadLetter[], capacity?: Capacity): Promise<AddResult[]> {
    if (this.#closing) throw closedError()
    const adding = this.#add(letters, capacity)
    this.#adds.add(adding)
    return adding.finally(() => this.#adds.delete(adding))
  }

  async #add(letters: readonly DeadLetter[], capacity?: Capacity): Promise<AddResult[]> {
    if (!this.#canGoAhead(letters)) return this.#append(letters)
    try {
      const results = await this.#limitTime(this.#store.add(letters, capacity))
      this.#isAway = false
      return results
    } catch (error) {
      if (!hasCode(error, 'STORE_UNAVAILABLE')) throw error
      this.#isAway = true
      this.#error = error
      return this.#append(letters)
    }
  }

  /**
   * Whether letters may go to the store directly. While letters wait, only letters without an order
   * may, and only after the store has accepted something: a long drain does not delay them.
   */
  #canGoAhead(letters: readonly DeadLetter[]): boolean {
    if (this.#state === 'away') return false
    return this.#backlog.empty || (!this.#isAway && !letters.some(hasOrder))
  }

  /** Waiting letters count as added. The store finds duplicates when it gets them. */
  async #append(letters: readonly DeadLetter[]): Promise<AddResult[]> {
    await this.#backlog.append(letters)
    if (!this.#isReported)
      this.#emit({ type: 'spooling', place: this.#backlog.place, error: this.#error })
    this.#isReported = true
    this.#defer()
    return letters.map(() => ({ kind: 'added' }))
  }

  #drain(): void {
    if (this.#closing) return
    this.#stopTimer?.()
    this.#stopTimer = undefined
    this.#draining ??= this.#drainAll()
      .catch((error: unknown) => this.#report(error, 'draining the spool'))
      .finally(() => {
        this.#draining = undefined
        if (!this.#backlog.empty || this.#state === 'away') this.#defer()
      })
  }

  /** Schedules a drain, unless one runs or is scheduled. The pause doubles with each failure. */
  #defer(): void {
    if (this.#closing || this.#draining || this.#stopTimer) return
    const pauseMs = Math.min(maxPauseMs, firstPauseMs * 2 ** this.#failures)
    this.#failures += 1
    this.#stopTimer = this.#clock.timer(pauseMs * (0.5 + this.#clock.random() / 2), () =>
      this.#drain(),
    )
  }

  /** Delivers letters until none waits or the store fails. */
  async #drainAll(): Promise<void> {
    if (this.#state === 'away')
      try {
        await this.#connect()
        this.#isAway = false
        this.#failures = 0
      } catch (error) {
        return this.#report(error, 'opening the store')
      }
    for (;;) {
      const entries = await this.#backlog.head(this.#batch)
      if (entries.length === 0 || this.#closing) break
      const { capacity } = this.#options
      const delivery = await deliver(this.#store, entries, capacity, (call) =>
        this.#limitTime(call, this.#makeInterrupt()),
      )
      const { settled, duplicates, refused } = delivery
      await this.#backlog.settle(entries.slice(0, settled), refused)
      this.#drained += settled - refused.length
      this.#run.count += settled - refused.length
      this.#run.duplicates += duplicates
      if ('error' in delivery) {
        this.#isAway = !hasCode(delivery.error, 'QUEUE_FULL')
        return this.#report(delivery.error, 'draining the spool')
      }
      this.#isAway = false
      this.#failures = 0
      this.#batch = Math.min(this.#batch * 2, maxBatch)
    }
    if (!this.#backlog.empty) return
    if (this.#run.count > 0) this.#emit({ type: 'drained', ...this.#run })
    this.#run = { count: 0, duplicates: 0 }
    this.#isReported = false
    this.#error = undefined
    this.#failures = 0
    this.#batch = 1
  }

  /** Emits an error once, unless it only says that the store is unavailable. */
  #report(error: unknown, during: string): void {
    if (this.#closing) return
    const isNew = messageOf(error) !== messageOf(this.#error)
    this.#batch = 1
    this.#error = error
    if (isNew && !hasCode(error, 'STORE_UNAVAILABLE')) this.#emit({ type: 'error', during, error })
  }

  #makeInterrupt(): PromiseWithResolvers<never> {
    this.#interrupt = Promise.withResolvers()
    if (this.#closing) this.#interrupt.reject(closedError())
    return this.#interrupt
  }

  /** A call that timed out may still succeed. The drain delivers the same letters again. */
  async #limitTime<T>(call: Promise<T>, timeout = Promise.withResolvers<never>()): Promise<T> {
    const { timeoutMs = 5000 } = this.#options
    const message = `the store did not answer within ${timeoutMs} ms`
    const cancel = this.#clock.timer(timeoutMs, () =>
      timeout.reject(new RedriveError('STORE_UNAVAILABLE', message)),
    )
    try {
      return await Promise.race([call, timeout.promise])
    } finally {
      cancel()
    }
  }

  async status(): Promise<SpoolStatus> {
    const { letters, bytes, oldestAt = null } = this.#backlog
    const drained = this.#drained
    return { letters, bytes, oldestAt, drained, ...(await this.#backlog.countSetAside()) }
  }

  async health(): Promise<StoreHealth> {
    const problem = this.findProblem()
    const inner = await this.#limitTime(
      problem ? Promise.reject(problem) : this.#store.health(),
    ).catch((error: unknown) => ({ ok: false, checks: {}, problems: [messageOf(error)] }))
    const { place } = this.#backlog
    const error = this.#state === 'away' ? '' : messageOf(this.#error)
    return addSpoolHealth(inner, await this.status(), place, error)
  }
}

/** Letters of a lane, with dependencies or with a dedupe key keep their order. */
function hasOrder({ lane, dependsOn, dedupeKey }: DeadLetter): boolean {
  return lane !== undefined || dependsOn !== undefined || dedupeKey !== undefined
}

function messageOf(error: unknown): string {
  if (error === undefined) return ''
  return error instanceof Error ? error.message : 'something that is not an Error was thrown'
}

function closedError(): RedriveError {
  return new RedriveError('CLOSED', 'the store is closed')
}
