import type { Json } from '../letter/letter.ts'
import type { Timestamp } from '../letter/time.ts'
import type { DocumentRecord } from '../store.ts'

/** A worker that has not checked in for so long, and three sweeps on top, is taken for gone. */
export const silentMs = 60_000

/**
 * Who works on the store, by the records in which workers check in. Clocks of machines disagree, so no moment that another one
 * wrote is looked at: a worker lives as long as its record goes on changing, and how long that may take is measured by our own time.
 */
export class Roster {
  readonly #sweepMs: number
  /** When each record was first seen as it is now. */
  #seen = new Map<string, { mark: string; sinceMs: number }>()
  #lookedMs = -Infinity

  /** How often whoever looks does so. */
  constructor(sweepMs: number) {
    this.#sweepMs = sweepMs
  }

  /** What each living worker can run, and the names of those that are gone. `nowMs` is monotonic. */
  look(
    records: readonly DocumentRecord[],
    nowMs: number,
  ): { living: ReadonlySet<string>[]; gone: string[] } {
    // After a long gap nothing is known of the others: what kept us from looking may have kept them from checking in.
    if (nowMs - this.#lookedMs > this.#sweepMs + silentMs) this.#seen.clear()
    this.#lookedMs = nowMs
    const before = this.#seen
    this.#seen = new Map()
    const living: ReadonlySet<string>[] = []
    const gone: string[] = []
    for (const { id, version, updatedAt, value } of records) {
      const mark = `${version} ${updatedAt}`
      const known = before.get(id)
      const sinceMs = known?.mark === mark ? known.sinceMs : nowMs
      const { queues, sweepMs } = checkInOf(value)
      const patienceMs = silentMs + 3 * Math.max(this.#sweepMs, sweepMs)
      this.#seen.set(id, { mark, sinceMs })
      if (nowMs - sinceMs > patienceMs) gone.push(id)
      else living.push(new Set(queues))
    }
    return { living, gone }
  }
}

interface CheckIn {
  queues: string[]
  /** How often it checks in. An older version does not say. */
  sweepMs: number
  /** By the clock of the worker. */
  seenAt: Timestamp
}

/** What a worker said when it checked in. */
export function checkInOf(value: Json): CheckIn {
  const { queues, sweepMs, seenAt } = (value ?? {}) as { [Part in keyof CheckIn]?: Json }
  return {
    queues: Array.isArray(queues) ? queues.filter((queue) => typeof queue === 'string') : [],
    sweepMs: typeof sweepMs === 'number' ? sweepMs : 0,
    seenAt: typeof seenAt === 'string' ? seenAt : '',
  }
}
