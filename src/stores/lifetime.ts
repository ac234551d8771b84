import { hasCode, RedriveError } from '../errors.ts'
import type { StoreHealth } from '../store.ts'

/** What a driver does when an open fails. */
export interface FailedOpen {
  /** Releases connections, threads and timers. The next open acquires them again. */
  release?: () => Promise<void>
  /**
   * True for a cause of STORE_UNAVAILABLE that lasts until somebody corrects the URL, the
   * permissions or the server, such as a wrong password. At open it is INVALID_CONFIG; later it is
   * an outage like any other.
   */
  isRefusal?: (cause: unknown) => boolean
}

/** The lifecycle of a store: new, open, closed. Closing waits for calls that were made before. */
export class Lifetime {
  readonly #kind: string
  readonly #failed: FailedOpen
  readonly #ongoing = new Set<Promise<unknown>>()
  #state: 'new' | 'open' | 'closed' = 'new'
  #closing: Promise<void> | undefined

  constructor(kind: string, failed: FailedOpen = {}) {
    this.#kind = kind
    this.#failed = failed
  }

  get state(): 'new' | 'open' | 'closed' {
    return this.#state
  }

  /**
   * Opens the store by `prepare`. A closed store cannot be opened again. If `prepare` fails and the
   * store was never open, its resources are released, and it can be opened again.
   */
  async open(prepare: () => Promise<unknown>): Promise<void> {
    if (this.#state === 'closed') this.check()
    try {
      await this.track(prepare())
    } catch (error) {
      // Another open in progress uses the same connections.
      if (this.#state === 'new' && this.#ongoing.size === 0) await this.#release()
      throw this.#refusalOf(error)
    }
    if (this.#state === 'new') this.#state = 'open'
  }

  /** An error while releasing must not hide why the store did not open. */
  async #release(): Promise<void> {
    const { release } = this.#failed
    if (release) await this.track(release()).catch(() => {})
  }

  #refusalOf(error: unknown): unknown {
    const { isRefusal } = this.#failed
    if (!hasCode(error, 'STORE_UNAVAILABLE') || !isRefusal?.(error.cause)) return error
    return new RedriveError('INVALID_CONFIG', error.message, { cause: error.cause })
  }

  /** Rejects new calls, waits for those in flight, then calls `release`. Safe twice. */
  close(release: () => Promise<void>): Promise<void> {
    this.#state = 'closed'
    return (this.#closing ??= this.#end(release))
  }

  async #end(release: () => Promise<void>): Promise<void> {
    while (this.#ongoing.size > 0) await Promise.allSettled(this.#ongoing)
    await release()
  }

  /** Throws unless the store is open. */
  check(): void {
    if (this.#state === 'open') return
    const why = this.#state === 'new' ? 'not open yet: await open() first' : 'closed'
    throw new RedriveError('CLOSED', `the ${this.#kind} store is ${why}`)
  }

  /** Runs a call of an open store. */
  async run<T>(work: () => T | Promise<T>): Promise<T> {
    this.check()
    return this.track((async () => work())())
  }

  /** Makes `close` wait for this promise. */
  async track<T>(work: Promise<T>): Promise<T> {
    this.#ongoing.add(work)
    try {
      return await work
    } finally {
      this.#ongoing.delete(work)
    }
  }

  /** The result of `check` while the store is open. Never rejects. */
  async health(check: () => Promise<StoreHealth>): Promise<StoreHealth> {
    if (this.#state !== 'open')
      return unhealthy(`the store is ${this.#state === 'new' ? 'not open' : 'closed'}`)
    try {
      return await this.track(check())
    } catch (error) {
      return unhealthy(error instanceof Error ? error.message : String(error))
    }
  }
}

function unhealthy(problem: string): StoreHealth {
  return { ok: false, checks: {}, problems: [problem] }
}
