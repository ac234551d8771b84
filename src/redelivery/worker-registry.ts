import type { Clock } from '../clock/clock.ts'
import type { Json } from '../letter/letter.ts'
import { toTimestamp, type Timestamp } from '../letter/time.ts'
import type { Store } from '../store.ts'

/** A worker without a heartbeat for this long, plus three of its intervals, counts as dead. */
export const silentMs = 60_000

/** The kind of the records of workers. */
export const workerKind = 'worker'
export const maxWorkers = 1000

export interface WorkerRegistryOptions {
  store: Store
  clock: Clock
  /** Name of this worker. */
  worker: string
  /** Interval of heartbeats. */
  sweepMs: number
  /** False: this process runs no letters, whatever handlers it has. Default: true. */
  redeliver?: boolean
  /** What this process reports about itself, besides its queues. */
  report?: () => object
}

/**
 * The live workers of a store and the queues that each can run. Every worker writes a record as its
 * heartbeat. Clocks of machines disagree, so timestamps of other workers are ignored: a worker is
 * alive as long as its record keeps changing, measured on the monotonic clock of this process.
 */
export class WorkerRegistry {
  readonly #options: WorkerRegistryOptions
  readonly #ownQueues = new Set<string>()
  /** Queues of each live worker, as of the last heartbeat. */
  #live: ReadonlySet<string>[] = []
  /** For each worker, when its record was first seen in its present version. */
  #seen = new Map<string, { version: string; sinceMs: number }>()
  #checkedMs = -Infinity

  constructor(options: WorkerRegistryOptions) {
    this.#options = options
  }

  /** Adds a queue that this process has a handler for. Other workers see it after a heartbeat. */
  addQueue(queue: string): void {
    this.#ownQueues.add(queue)
  }

  /** Queues that this process has a handler for. */
  get ownQueues(): string[] {
    return [...this.#ownQueues]
  }

  /** Queues that any live worker, this one included, has a handler for. */
  get handledQueues(): Set<string> {
    return new Set([...this.#ownQueues, ...this.#live.flatMap((queues) => [...queues])])
  }

  /** Number of live workers that run any of these queues. At least 1, which is this worker. */
  countWorkers(queues: readonly string[]): number {
    const workers = this.#live.filter((handled) => queues.some((queue) => handled.has(queue)))
    return Math.max(1, workers.length)
  }

  /** Reports that this worker is alive, reads who else is, and removes dead workers. */
  async heartbeat(): Promise<void> {
    const { store, clock, worker, sweepMs, redeliver = true, report } = this.#options
    const queues = redeliver ? this.ownQueues : []
    const heartbeat = { ...report?.(), queues, seenAt: toTimestamp(clock.now()), sweepMs }
    await store.records.put(workerKind, worker, { ...heartbeat })
    const records = await store.records.list(workerKind, { limit: maxWorkers })
    const nowMs = clock.mono()
    // Whatever kept this process from checking may have kept others from their heartbeats.
    if (nowMs - this.#checkedMs > sweepMs + silentMs) this.#seen.clear()
    this.#checkedMs = nowMs
    const before = this.#seen
    this.#seen = new Map()
    const live: ReadonlySet<string>[] = []
    const dead: string[] = []
    for (const { id, version: number, updatedAt, value } of records) {
      const version = `${number} ${updatedAt}`
      const known = before.get(id)
      const sinceMs = known?.version === version ? known.sinceMs : nowMs
      this.#seen.set(id, { version, sinceMs })
      const other = parseHeartbeat(value)
      if (nowMs - sinceMs > silentMs + 3 * Math.max(sweepMs, other.sweepMs)) dead.push(id)
      else live.push(new Set(other.queues))
    }
    for (const id of dead) await store.records.remove(workerKind, id)
    this.#live = live
  }

  /** Removes this worker. If the store is unreachable, others take the worker for dead later. */
  async leave(): Promise<void> {
    await this.#options.store.records.remove(workerKind, this.#options.worker).catch(() => false)
  }
}

interface Heartbeat {
  queues: string[]
  /** Interval of the worker's heartbeats. 0: an older version that did not write it. */
  sweepMs: number
  /** By the clock of the worker. */
  seenAt: Timestamp
}

/** Reads the record of a worker. Missing or malformed parts become empty. */
export function parseHeartbeat(value: Json): Heartbeat {
  const { queues, sweepMs, seenAt } = (value ?? {}) as { [Part in keyof Heartbeat]?: Json }
  return {
    queues: Array.isArray(queues) ? queues.filter((queue) => typeof queue === 'string') : [],
    sweepMs: typeof sweepMs === 'number' ? sweepMs : 0,
    seenAt: typeof seenAt === 'string' ? seenAt : '',
  }
}
