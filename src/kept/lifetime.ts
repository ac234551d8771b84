import { RedriveError } from '../errors.ts'
import type { StoreHealth } from '../store.ts'

/** The life of a store: not open yet, open, closed. Closing waits for what the store was asked before. */
export interface Lifetime {
  readonly state: 'new' | 'open' | 'closed'
  /** Refuses to open again what is closed; what opening takes is done by `prepare`. */
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

export function lifetime(kind: string): Lifetime {
  return new StoreLifetime(kind)
}

class StoreLifetime implements Lifetime {
  readonly #kind: string
  readonly #ongoing = new Set<Promise<unknown>>()
  #state: Lifetime['state'] = 'new'
  #closing: Promise<void> | undefined

  constructor(kind: string) {
    this.#kind = kind
  }

  get state(): Lifetime['state'] {
    return this.#state
  }

  async open(prepare: () => Promise<unknown>): Promise<void> {
    if (this.#state === 'closed') this.check()
    await this.track(prepare())
    if (this.#state === 'new') this.#state = 'open'
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
