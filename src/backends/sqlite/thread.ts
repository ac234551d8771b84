import { RedriveError } from '../../errors.ts'
import { Channel, type Program } from './channel.ts'
import { explainStartFailure } from './errors.ts'
import type { AnyCall, MethodTable, Report } from './protocol.ts'

/**
 * Maximum number of batches in flight. The second one is ready when the thread is done with the
 * first.
 */
const maxInFlight = 2

/**
 * Upper bound for the total cost of one batch, so that a large batch does not delay its callers.
 */
const maxBatchCost = 512

/** Calls that cost no more than this are sent together, so that they share one commit. */
const minSplitCost = 32

export interface ThreadOptions {
  program: Program
  /** Sent to the thread when it opens the file. */
  file: unknown
  now: () => number
  onEvent: (event: unknown) => void
  /** The error of calls that were in flight when the thread died. */
  toLossError: (cause: unknown) => RedriveError
}

interface PendingCall {
  cost: number
  resolve: (value: never) => void
  reject: (error: RedriveError) => void
}

/**
 * The caller's side of the thread that has a file open. While a batch is in flight, new calls queue
 * up and are sent together as the next batch: a single call costs one commit, concurrent calls
 * share one.
 */
export class SqliteThread<M extends MethodTable<M>> {
  readonly #options: ThreadOptions
  #channel: Channel | undefined
  #queue: AnyCall[] = []
  readonly #pending = new Map<number, PendingCall>()
  #lastId = 0
  #inFlight = 0
  #onIdle: (() => void)[] = []

  constructor(options: ThreadOptions) {
    this.#options = options
  }

  /** `cost`: number of letters, messages or ids. 0 for counts. Default: 1. */
  call<K extends keyof M & string>(
    method: K,
    request: M[K]['request'],
    cost = 1,
  ): Promise<M[K]['response']> {
    return new Promise((resolve, reject) => {
      const id = ++this.#lastId
      this.#pending.set(id, { cost, resolve, reject })
      // Wait one microtask so that calls made in the same tick share a batch.
      if (this.#queue.length === 0) queueMicrotask(() => this.#sendQueued())
      this.#queue.push([id, method, request])
    })
  }

  /** Waits for every call, then closes the file. */
  async close(): Promise<void> {
    if (this.#isBusy()) await new Promise<void>((resolve) => this.#onIdle.push(resolve))
    const channel = this.#channel
    if (!channel) return
    this.#channel = undefined
    channel.hold(true)
    await new Promise<void>((resolve) => {
      channel.listen({ receive: () => resolve(channel.release()), lose: () => resolve() })
      channel.send({ kind: 'close' })
    })
  }

  #sendQueued(): void {
    while (this.#queue.length > 0 && this.#inFlight < maxInFlight) {
      const channel = (this.#channel ??= this.#start())
      // The process must not end while calls are in flight.
      if (this.#inFlight === 0) channel.hold(true)
      this.#post(channel, this.#takeBatch())
    }
  }

  /**
   * An idle thread gets half of the calls: while it works on the other half, the callers of the
   * first continue.
   */
  #takeBatch(): AnyCall[] {
    const costs = this.#queue.map(([id]) => this.#pending.get(id)!.cost)
    const half = costs.reduce((sum, cost) => sum + cost, 0) / 2
    const limit = this.#inFlight === 0 ? Math.max(half, minSplitCost) : maxBatchCost
    let cost = 0
    let count = 0
    while (count < costs.length && cost < Math.min(limit, maxBatchCost)) cost += costs[count++]!
    return this.#queue.splice(0, count)
  }

  /** A request that cannot be cloned, such as one with a function, fails alone. */
  #post(channel: Channel, calls: AnyCall[]): void {
    try {
      channel.send({ kind: 'batch', nowMs: this.#options.now(), calls })
      this.#inFlight += 1
    } catch (cause) {
      if (calls.length > 1) for (const call of calls) this.#post(channel, [call])
      else this.#rejectUncloneable(calls[0]!, cause)
    }
  }

  #rejectUncloneable([id, method]: AnyCall, cause: unknown): void {
    const why = cause instanceof Error ? cause.message : String(cause)
    const message = `sqlite: the argument of ${method} cannot be stored: ${why}`
    this.#settle(id)?.reject(new RedriveError('INVALID_INPUT', message, { cause }))
    this.#restIfIdle()
  }

  #settle(id: number): PendingCall | undefined {
    const call = this.#pending.get(id)
    this.#pending.delete(id)
    return call
  }

  #start(): Channel {
    const { program, file } = this.#options
    const channel = Channel.take(program)
    channel.listen({
      receive: (report) => this.#receive(report),
      lose: (cause) => this.#lose(cause),
    })
    channel.send({ kind: 'open', options: file })
    return channel
  }

  #receive({ results, errors, events, isDone }: Report): void {
    if (isDone) this.#inFlight -= 1
    for (const event of events) this.#options.onEvent(event)
    for (const [id, value] of results) this.#settle(id)?.resolve(value as never)
    for (const [id, { code, message }] of errors)
      this.#settle(id)?.reject(new RedriveError(code, message))
    this.#sendQueued()
    this.#restIfIdle()
  }

  /** Calls in flight are rejected: they may or may not be done. Queued calls go to a new thread. */
  #lose(cause: unknown): void {
    this.#channel = undefined
    this.#inFlight = 0
    const queued = new Set(this.#queue.map(([id]) => id))
    const why = explainStartFailure(cause)
    const error =
      why === undefined
        ? this.#options.toLossError(cause)
        : new RedriveError('INVALID_CONFIG', why, { cause })
    for (const id of this.#pending.keys()) if (!queued.has(id)) this.#settle(id)?.reject(error)
    this.#sendQueued()
    this.#restIfIdle()
  }

  #isBusy(): boolean {
    return this.#pending.size > 0 || this.#inFlight > 0
  }

  #restIfIdle(): void {
    if (this.#isBusy()) return
    this.#channel?.hold(false)
    for (const resolve of this.#onIdle.splice(0)) resolve()
  }
}
