import { fixed, immediate, type DeadLetterQueue } from '../../src/index.ts'
import { rate, type Bench } from '../harness.ts'
import { failure, operation } from '../sample.ts'

/** Number of concurrent handlers. */
export const drainConcurrency = 64

/**
 * No adaptive limit, also when all runs fail: the benchmark measures the work, not the flow
 * control.
 */
export const withoutFlowControl = {
  maxConcurrent: drainConcurrency,
  breaker: false,
  concurrency: false,
} as const

/** Adds letters that are due immediately. */
export async function addDue(queue: DeadLetterQueue, count: number, type: string): Promise<void> {
  const failures = Array.from({ length: count }, (_, n) => ({
    operation: operation(n, type),
    error: failure(n),
    context: { policy: immediate() },
  }))
  await queue.enqueueAll(failures)
}

/** Claims, runs and resolves until `count` letters are resolved. The handler does nothing. */
export async function drain(queue: DeadLetterQueue, count: number, type: string): Promise<void> {
  queue.handle(type, async () => {})
  await workUntil(queue, 'resolved', count)
}

/** Runs until `count` events of this type happened. */
async function workUntil(
  queue: DeadLetterQueue,
  event: 'resolved' | 'rescheduled',
  count: number,
): Promise<void> {
  let seen = 0
  await new Promise<void>((done) => {
    const stop = queue.on(event, () => {
      if (++seen < count) return
      stop()
      done()
    })
    queue.start()
  })
  await queue.stop()
}

/** Letters per second from due to resolved, including the claim. */
export async function drainRate(bench: Bench, count: number): Promise<number> {
  const queue = await bench.open('drain', { maxConcurrent: drainConcurrency })
  const tookMs = await bench.countCpu('enqueue and drain', count, async () => {
    await addDue(queue, count, 'charge-card')
    return bench.timed('drain', () => drain(queue, count, 'charge-card'))
  })
  await queue.close()
  return rate(count, tookMs)
}

/** Adds letters that are due, and are rescheduled by a day when they fail. */
export async function addFailing(
  queue: DeadLetterQueue,
  count: number,
  type: string,
): Promise<void> {
  const failures = Array.from({ length: count }, (_, n) => ({
    operation: operation(n, type),
    error: failure(n),
    context: { policy: fixed(86_400_000) },
  }))
  const ids = await queue.enqueueAll(failures)
  for (let start = 0; start < ids.length; start += drainConcurrency)
    await Promise.all(ids.slice(start, start + drainConcurrency).map((id) => queue.retry(id)))
}

/** Claims, fails and reschedules until `count` letters are rescheduled. */
export async function failAll(queue: DeadLetterQueue, count: number, type: string): Promise<void> {
  let n = 0
  queue.handle(type, () => Promise.reject(failure(n++)))
  await workUntil(queue, 'rescheduled', count)
}

/** Failing runs per second. The backoff is so short that the same letters run again. */
export async function failRate(bench: Bench, count: number): Promise<number> {
  const queue = await bench.open('fail', { ...withoutFlowControl, maxRetries: 1000 })
  const failures = Array.from({ length: Math.ceil(count / 4) }, (_, n) => ({
    operation: operation(n),
    error: failure(n),
    context: { policy: fixed(1) },
  }))
  await queue.enqueueAll(failures)
  let n = 0
  queue.handle('charge-card', () => Promise.reject(failure(n++)))
  const tookMs = await bench.timed('fail', () => workUntil(queue, 'rescheduled', count))
  await queue.close()
  return rate(count, tookMs)
}
