import { hasCode, RedriveError } from '../errors.ts'
import type { StoreHealth } from '../store.ts'

/** The life of a store: not open yet, open, closed. Closing waits for what the store was asked before. */
export interface Lifetime {
  readonly state: 'new' | 'open' | 'closed'
  /**
   * Does what opening takes, by `prepare`. A store that is closed is not opened again. When `prepare` fails and the store was never
   * open, what it took is released, so that it keeps no process alive; it can be opened again.
   */
  open(prepare: () => Promise<unknown>): Promise<void>
  /** Refuses everything from now on, waits for what is under way, and then lets go. Once, however often it is called. */
  close(letGo: () => Promise<void>): Promise<void>
  /** Throws unless the store is open. */
  check(): void
  /** Does what an open store is asked for. */
  run<T>(work: () => T | Promise<T>): Promise<T>
  /** Has closing wait for this. */
  track<T>(work: Promise<T>): Promise<T>
  /** What is found while the store is open, and never a rejection. */
  health(look: () => Promise<StoreHealth>): Promise<StoreHealth>
}

/** What a driver does about an open that failed. */
export interface FailedOpen {
  /** Lets go of connections, threads and timers. The next open takes them again. */
  release?: () => Promise<void>
  /**
   * True for the cause of a STORE_UNAVAILABLE that stays until somebody corrects the URL, the rights or the server: a wrong
   * password, an unknown database. At open it is a wrong configuration; later, with letters on their way, an outage like any other.
   */
  isRefusal?: (cause: unknown) => boolean
}

export function lifetime(kind: string, failed: FailedOpen = {}): Lifetime {
  return new StoreLifetime(kind, failed)
}

class StoreLifetime implements Lifetime {
  readonly #kind: string
  readonly #failed: FailedOpen
  readonly #ongoing = new Set<Promise<unknown>>()
  #state: Lifetime['state'] = 'new'
  #closing: Promise<void> | undefined

  constructor(kind: string, failed: FailedOpen) {
    this.#kind = kind
    this.#failed = failed
  }

  get state(): Lifetime['state'] {
    return this.#state
  }

  async open(prepare: () => Promise<unknown>): Promise<void> {
    if (this.#state === 'closed') this.check()
    try {
      await this.track(prepare())
    } catch (error) {
      // While another open is under way, it uses the same connections.
      if (this.#state === 'new' && this.#ongoing.size === 0) await this.#release()
      throw this.#refusalOf(error)
    }
    if (this.#state === 'new') this.#state = 'open'
  }

  /** That what was taken cannot be let go in order must not hide why the store did not open. */
  async #release(): Promise<void> {
    const { release } = this.#failed
    if (release) await this.track(release()).catch(() => {})
  }

  #refusalOf(error: unknown): unknown {
    const { isRefusal } = this.#failed
    if (!hasCode(error, 'STORE_UNAVAILABLE') || !isRefusal?.(error.cause)) return error
    return new RedriveError('INVALID_CONFIG', error.message, { cause: error.cause })
  }

  close(letGo: () => Promise<void>): Promise<void> {
    this.#state = 'closed'
    return (this.#closing ??= this.#end(letGo))
  }

  async #end(letGo: () => Promise<void>): Promise<void> {
    while (this.#ongoing.size > 0) await Promise.allSettled(this.#ongoing)
    await letGo()
  }

  check(): void {
    if (this.#state === 'open') return
    const why = this.#state === 'new' ? 'not open yet: await open() first' : 'closed'
    throw new RedriveError('CLOSED', `the ${this.#kind} store is ${why}`)
  }

  async run<T>(work: () => T | Promise<T>): Promise<T> {
    this.check()
    return this.track((async () => work())())
  }

  async track<T>(work: Promise<T>): Promise<T> {
    this.#ongoing.add(work)
    try {
      return await work
    } finally {
      this.#ongoing.delete(work)
    }
  }

  async health(look: () => Promise<StoreHealth>): Promise<StoreHealth> {
    if (this.#state !== 'open')
      return unwell(`the store is ${this.#state === 'new' ? 'not open' : 'closed'}`)
    try {
      return await this.track(look())
    } catch (error) {
      return unwell(error instanceof Error ? error.message : String(error))
    }
  }
}

function unwell(problem: string): StoreHealth {
  return { ok: false, checks: {}, problems: [problem] }
}
