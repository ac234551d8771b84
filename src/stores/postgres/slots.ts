import type { Clock } from '../../clock/clock.ts'
import type { PostgresConnection } from '../../backends/postgres/connection.ts'
import { drawSlot, tidyCounters } from './counters.ts'

/** The number of transactions after which some counters are tidied. */
const tidyEvery = 200

/**
 * The counter slots of one store: one per concurrent transaction, so that none waits for another.
 */
export class CounterSlots {
  readonly #connection: PostgresConnection
  readonly #clock: Clock
  readonly #free: number[] = []
  #uses = 0
  /** Where the next tidying continues. */
  #tidyAfter: Awaited<ReturnType<typeof tidyCounters>>
  #tidying: Promise<unknown> | undefined

  constructor(connection: PostgresConnection, clock: Clock) {
    this.#connection = connection
    this.#clock = clock
  }

  /** Lends a slot that no other transaction of this store is using. */
  async use<T>(work: (slot: number) => Promise<T>): Promise<T> {
    const slot = this.#take()
    try {
      return await work(slot)
    } finally {
      this.#free.push(slot)
      if (++this.#uses % tidyEvery === 0) this.#tidying ??= this.#tidy(this.#take())
    }
  }

  /** Resolves when no tidying is in progress. */
  async idle(): Promise<void> {
    await this.#tidying
  }

  #take(): number {
    return this.#free.pop() ?? drawSlot(this.#clock)
  }

  async #tidy(slot: number): Promise<void> {
    try {
      this.#tidyAfter = await tidyCounters(this.#connection, slot, this.#tidyAfter)
    } catch {
      // The counts are correct without it; the next run tries again.
    } finally {
      this.#free.push(slot)
      this.#tidying = undefined
    }
  }
}
