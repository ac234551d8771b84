import { connect } from '../../connect/store.ts'
import { DeadLetterQueue } from '../../queue/queue.ts'
import { Series } from '../../server/series.ts'
import { fakeClock } from '../../testing/fake-clock.ts'
import { demoOptions } from './demo.ts'
import { pastFailures, type PastFailure } from './services.ts'

const minuteMs = 60_000
const slotMs = 15 * minuteMs
const dayMs = 24 * 60 * minuteMs
/** The payment service was down for a while, some hours ago. */
const outage = { fromMs: 5 * 60 * minuteMs, untilMs: 4 * 60 * minuteMs }

/**
 * Writes what the demo would have stored in the last 24 hours, so that charts and groups have a
 * past. Does nothing if the store has letters or samples.
 */
export async function writeHistory(url: string, nowMs: number): Promise<void> {
  const clock = fakeClock(nowMs - dayMs, nowMs)
  const store = await connect(url, clock)
  const dlq = await DeadLetterQueue.open(store, { ...demoOptions(clock), redeliver: false })
  try {
    const [sample] = await store.records.list('sample', { limit: 1 })
    const { items } = await dlq.find({ limit: 1 })
    if (sample || items.length > 0) return
    const series = new Series({ store, clock, onError: () => {} })
    for (let atMs = nowMs - dayMs; atMs < nowMs; atMs += slotMs) {
      clock.set(atMs)
      await series.sample()
      const isDown = nowMs - atMs <= outage.fromMs && nowMs - atMs > outage.untilMs
      const failures = pastFailures(clock, isDown)
      await Promise.all(failures.map((failure) => writeLetter(dlq, failure)))
    }
  } finally {
    await dlq.close()
  }
}

/** Captures a failure, and reports the runs that followed. */
async function writeLetter(dlq: DeadLetterQueue, past: PastFailure): Promise<void> {
  const { queue, order, error, failedRuns, resolves } = past
  const { tenant } = order
  const { id } = await dlq.enqueue({ type: queue, payload: order }, error, { tenant })
  for (let run = 0; run < failedRuns; run++) await dlq.fail(id, error)
  if (resolves) await dlq.resolve(id)
}
