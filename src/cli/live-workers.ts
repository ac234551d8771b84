import { toTimestamp } from '../letter/time.ts'
import { parseHeartbeat, silentMs } from '../redelivery/worker-registry.ts'
import type { Store } from '../store.ts'
import type { Opened } from './open.ts'
import { escapeLine } from './print.ts'

export interface LiveWorker {
  name: string
  queues: string[]
}

/**
 * The live workers of this store and their queues. A worker without a heartbeat for three intervals
 * is gone.
 */
export async function listLiveWorkers(store: Store, nowMs: number): Promise<LiveWorker[]> {
  const records = await store.records.list('worker', { limit: 1000 })
  return records.flatMap(({ id, value }) => {
    const { queues, sweepMs, seenAt } = parseHeartbeat(value)
    const silentAt = toTimestamp(nowMs - Math.max(silentMs, 3 * sweepMs))
    return seenAt < silentAt ? [] : [{ name: id, queues }]
  })
}

/** A note if no worker runs for some of these queues: their letters do not run without a worker. */
export async function describeMissingWorkers(
  { store, clock }: Opened,
  queues: ReadonlySet<string>,
): Promise<string | undefined> {
  const workers = await listLiveWorkers(store, clock.now())
  const handled = new Set(workers.flatMap((worker) => worker.queues))
  const unhandled = [...queues].filter((queue) => !handled.has(queue))
  if (unhandled.length === 0) return undefined
  const names = `${unhandled.slice(0, 3).map(escapeLine).join(', ')}${unhandled.length > 3 ? ', …' : ''}`
  return `No worker for ${names} is running: the letters wait until one starts.`
}
