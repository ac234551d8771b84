import { toTimestamp } from '../letter/time.ts'
import type { Store } from '../store.ts'

export interface LiveWorker {
  name: string
  queues: string[]
}

/** Workers check in every few seconds; one that was silent for so long is taken for gone. */
const silentMs = 60_000

/** Who works on this store now, and on which queues. */
export async function liveWorkers(store: Store, nowMs: number): Promise<LiveWorker[]> {
  const records = await store.records.list('worker', { limit: 1000 })
  const silentAt = toTimestamp(nowMs - silentMs)
  return records.flatMap(({ id, value }) => {
    const { queues, seenAt } = value as { queues?: unknown; seenAt?: unknown }
    if (typeof seenAt !== 'string' || seenAt < silentAt || !Array.isArray(queues)) return []
    return [{ name: id, queues: queues.map(String) }]
  })
}
