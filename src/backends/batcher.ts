export interface BatcherOptions {
  /** Maximum number of batches in flight. */
  maxInFlight: number
  /**
   * Upper bound for the total cost of one batch (letters, changes or ids), so that a large batch
   * does not delay its callers.
   */
  maxBatchCost: number
}

/** The result of one call, or the error of that call while the other calls of its batch succeed. */
export type Outcome<R> = { value: R } | { error: unknown }

interface PendingCall<A, R> {
  request: A
  cost: number
  resolve: (value: R) => void
  reject: (error: unknown) => void
}

/**
 * Groups concurrent calls: while a batch is in flight, new calls queue up and are sent together as
 * the next batch. A single call is sent immediately (one round trip, one commit); concurrent calls
 * share both. `send` returns the outcomes in the order of the requests; when it rejects, every call
 * of the batch rejects.
 */
export class Batcher<A, R> {
  readonly #options: BatcherOptions
  readonly #send: (requests: A[]) => Promise<Outcome<R>[]>
  #pending: PendingCall<A, R>[] = []
  #inFlight = 0
  #idle: (() => void)[] = []

  constructor(options: BatcherOptions, send: (requests: A[]) => Promise<Outcome<R>[]>) {
    this.#options = options
    this.#send = send
  }

  call(request: A, cost = 1): Promise<R> {
    return new Promise((resolve, reject) => {
      this.#pending.push({ request, cost, resolve, reject })
      // Wait one microtask so that calls made in the same tick share a batch.
      if (this.#pending.length === 1) queueMicrotask(() => this.#sendPending())
    })
  }

  /** Resolves once no call is pending or in flight. */
  idle(): Promise<void> {
    if (this.#inFlight === 0 && this.#pending.length === 0) return Promise.resolve()
    return new Promise((resolve) => this.#idle.push(resolve))
  }

  #sendPending(): void {
    while (this.#pending.length > 0 && this.#inFlight < this.#options.maxInFlight) {
      this.#inFlight += 1
      void this.#sendBatch(this.#takeBatch())
    }
  }

  #takeBatch(): PendingCall<A, R>[] {
    let cost = 0
    let count = 0
    while (count < this.#pending.length && cost < this.#options.maxBatchCost)
      cost += this.#pending[count++]!.cost
    return this.#pending.splice(0, count)
  }

  async #sendBatch(batch: PendingCall<A, R>[]): Promise<void> {
    try {
      const outcomes = await this.#send(batch.map(({ request }) => request))
      for (const [at, { resolve, reject }] of batch.entries()) {
        const outcome = outcomes[at]!
        if ('error' in outcome) reject(outcome.error)
        else resolve(outcome.value)
      }
    } catch (error) {
      for (const { reject } of batch) reject(error)
    }
    this.#inFlight -= 1
    this.#sendPending()
    if (this.#inFlight > 0 || this.#pending.length > 0) return
    for (const resolve of this.#idle.splice(0)) resolve()
  }
}

/** Splits the combined results back into one list per call. */
export function splitResults<R>(
  results: readonly R[],
  requests: readonly { length: number }[],
): R[][] {
  let start = 0
  return requests.map(({ length }) => results.slice(start, (start += length)))
}
