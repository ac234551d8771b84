import type { OpenedQueue } from './open.ts'
import { escapeLine } from './print.ts'

/** A note if no worker runs for some of these queues: their letters do not run without a worker. */
export async function describeMissingWorkers(
  { dlq }: OpenedQueue,
  queues: ReadonlySet<string>,
): Promise<string | undefined> {
  const workers = await dlq.workers()
  const handled = new Set(workers.flatMap((worker) => worker.queues))
  const unhandled = [...queues].filter((queue) => !handled.has(queue))
  if (unhandled.length === 0) return undefined
  const names = `${unhandled.slice(0, 3).map(escapeLine).join(', ')}${unhandled.length > 3 ? ', …' : ''}`
  return `No worker for ${names} is running: the letters wait until one starts.`
}
