export interface GatherOptions {
  /** Batches that may be on their way at once. */
  maxBatches: number
  /** How much one batch carries at the most, in letters, changes or ids, so that no call waits for long. */
  maxWeight: number
  /** Whom the callers belong to, if one batch is to have no more than half of them where they are many. */
  crowd?: Crowd
}

/**
 * All who are out with gatherers that share it, by weight. Callers that always go together have nothing to do while the server works, and leave it nothing to
 * do while they hear its answers and ask anew; in two halves, each is busy while the other is.
 */
export interface Crowd {
  weight: number
}

/** A crowd is halved if a half has this weight. Of fewer, a request takes longer than what its callers do meanwhile. */
const leastHalf = 32

/** One call's answer, or what it fails with while the others go on. */
export type Outcome<R> = { value: R } | { error: unknown }

/** Calls that gather while a batch is on its way, and then go as the next one. */
export interface Gatherer<A, R> {
  call(ask: A, weight?: number): Promise<R>
  /** Resolves once nothing is on its way and nothing waits. */
  idle(): Promise<void>
}

interface Waiting<A, R> {
  ask: A
  weight: number
  resolve: (value: R) => void
  reject: (error: unknown) => void
}

/**
 * Natural batching: one call alone goes at once and costs one round trip and one commit; many at once share them. `send`
 * answers in the order asked; when it rejects, every call of the batch does.
 */
export function gatherer<A, R>(
  options: GatherOptions,
  send: (asks: A[]) => Promise<Outcome<R>[]>,
): Gatherer<A, R> {
  return new NaturalGatherer(options, send)
}

class NaturalGatherer<A, R> implements Gatherer<A, R> {
  readonly #options: GatherOptions
  readonly #send: (asks: A[]) => Promise<Outcome<R>[]>
  #queue: Waiting<A, R>[] = []
  #batches = 0
  #idle: (() => void)[] = []

  constructor(options: GatherOptions, send: (asks: A[]) => Promise<Outcome<R>[]>) {
    this.#options = options
    this.#send = send
  }

  call(ask: A, weight = 1): Promise<R> {
    return new Promise((resolve, reject) => {
      this.#queue.push({ ask, weight, resolve, reject })
      if (this.#options.crowd) this.#options.crowd.weight += weight
      // Callers of the same turn go together.
      if (this.#queue.length === 1) queueMicrotask(() => this.#go())
    })
  }

  idle(): Promise<void> {
    if (this.#batches === 0 && this.#queue.length === 0) return Promise.resolve()
    return new Promise((resolve) => this.#idle.push(resolve))
  }

  #go(): void {
    while (this.#queue.length > 0 && this.#batches < this.#options.maxBatches) {
      this.#batches += 1
      void this.#carry(this.#take())
    }
  }

  #take(): Waiting<A, R>[] {
    const { maxWeight, crowd } = this.#options
    const most = crowd ? Math.min(maxWeight, Math.max(leastHalf, crowd.weight / 2)) : maxWeight
    let weight = 0
    let count = 0
    while (count < this.#queue.length && weight < most) weight += this.#queue[count++]!.weight
    return this.#queue.splice(0, count)
  }

  async #carry(batch: Waiting<A, R>[]): Promise<void> {
    try {
      const outcomes = await this.#sent(batch)
      for (const [at, { resolve, reject }] of batch.entries()) {
        const outcome = outcomes[at]!
        if ('error' in outcome) reject(outcome.error)
        else resolve(outcome.value)
      }
    } catch (error) {
      for (const { reject } of batch) reject(error)
    }
    this.#batches -= 1
    this.#go()
    if (this.#batches > 0 || this.#queue.length > 0) return
    for (const resolve of this.#idle.splice(0)) resolve()
  }

  /** Whatever comes of it, its callers are out no more. */
  async #sent(batch: Waiting<A, R>[]): Promise<Outcome<R>[]> {
    const { crowd } = this.#options
    try {
      return await this.#send(batch.map(({ ask }) => ask))
    } finally {
      if (crowd) for (const { weight } of batch) crowd.weight -= weight
    }
  }
}

/** What came of all, back to the calls that asked for it. */
export function shareOut<R>(results: readonly R[], asks: readonly { length: number }[]): R[][] {
  let start = 0
  return asks.map(({ length }) => results.slice(start, (start += length)))
}
