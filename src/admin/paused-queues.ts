import { checkQueueName } from '../check/queue-name.ts'
import { checkBy, checkReason } from '../check/text.ts'
import type { Clock } from '../clock/clock.ts'
import type { PausedQueue } from '../letter/paused-queue.ts'
import { toTimestamp } from '../letter/time.ts'
import type { ObserverHub } from '../observer.ts'
import type { DocumentRecord, Store } from '../store.ts'

const kind = 'paused-queue'

export interface PausedQueuesOptions {
  store: Pick<Store, 'records'>
  clock: Clock
  hub: ObserverHub
  /** How long the names may be remembered before they are read again. */
  pollMs: number
  /** Called when this process has paused or resumed a queue. */
  onChange: () => void
}

/**
 * Pauses and resumes queues. A paused queue is a record, so that all workers of the store see it,
 * also those that start later. Letters are still captured.
 */
export class PausedQueues {
  readonly #options: PausedQueuesOptions
  #names: Promise<ReadonlySet<string>> | undefined
  #readMs = 0

  constructor(options: PausedQueuesOptions) {
    this.#options = options
  }

  /** Pauses a queue, known or not. A queue that is paused already gets the new reason. */
  async pause(queue: string, by: string, reason: string): Promise<PausedQueue> {
    checkQueueName(queue)
    const { store, clock, hub } = this.#options
    const pause = { by: checkBy(by), reason: checkReason(reason), at: toTimestamp(clock.now()) }
    await store.records.put(kind, queue, pause)
    this.#forget()
    hub.emit({ type: 'queue-paused', queue, ...pause })
    return { queue, ...pause }
  }

  /** False if the queue was not paused. */
  async resume(queue: string, by: string): Promise<boolean> {
    checkQueueName(queue)
    const actor = checkBy(by)
    const { store, hub } = this.#options
    if (!(await store.records.remove(kind, queue))) return false
    this.#forget()
    hub.emit({ type: 'queue-resumed', queue, by: actor })
    return true
  }

  /** All paused queues, by name. */
  async list(): Promise<PausedQueue[]> {
    return (await this.#options.store.records.list(kind)).map(toPausedQueue)
  }

  /** The names of the paused queues, as read from the store less than `pollMs` ago. */
  names(): Promise<ReadonlySet<string>> {
    const { clock, pollMs } = this.#options
    const nowMs = clock.mono()
    if (this.#names && nowMs - this.#readMs < pollMs) return this.#names
    const names = this.list().then((all) => new Set(all.map(({ queue }) => queue)))
    this.#names = names
    this.#readMs = nowMs
    names.catch(() => {
      if (this.#names === names) this.#names = undefined
    })
    return names
  }

  #forget(): void {
    this.#names = undefined
    this.#options.onChange()
  }
}

/** Missing or malformed parts become empty: the queue is paused nevertheless. */
function toPausedQueue({ id, value, updatedAt }: DocumentRecord): PausedQueue {
  const { by, reason, at } = Object(value) as Record<string, unknown>
  return {
    queue: id,
    by: typeof by === 'string' ? by : '',
    reason: typeof reason === 'string' ? reason : '',
    at: typeof at === 'string' ? at : updatedAt,
  }
}
