import { fixed, immediate, type DeadLetterQueue } from '../../src/index.ts'
import { rate, type Bench } from '../harness.ts'
import { failure, operation } from '../sample.ts'

/** Handlers that run at the same time. */
export const drainConcurrency = 64

/** As many as there may be, also when all of them fail: it is the work that is measured, not how far it is slowed down. */
export const unbraked = {
  maxConcurrent: drainConcurrency,
  breaker: false,
  concurrency: false,
} as const

/** Puts letters there that are due at once. */
export async function addDue(queue: DeadLetterQueue, count: number, type: string): Promise<void> {
  const failures = Array.from({ length: count }, (_, n) => ({
    operation: operation(n, type),
    error: failure(n),
    context: { policy: immediate() },
  }))
  await queue.enqueueAll(failures)
}

/** Claims, runs and resolves until so many are resolved. The handler has nothing to do. */
export async function drain(queue: DeadLetterQueue, count: number, type: string): Promise<void> {
  queue.handle(type, async () => {})
  await workUntil(queue, 'resolved', count)
}

/** Runs until so many letters have come to this. */
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

/** Letters a second from due to resolved, claim included. */
export async function drainRate(bench: Bench, count: number): Promise<number> {
  const queue = await bench.open('drain', { maxConcurrent: drainConcurrency })
  await addDue(queue, count, 'charge-card')
  const tookMs = await bench.timed('drain', () => drain(queue, count, 'charge-card'))
  await queue.close()
  return rate(count, tookMs)
}

/** Puts letters there that are due, and will be put off for a day when they fail. */
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

/** Claims, fails and puts off until so many are put off. */
export async function failAll(queue: DeadLetterQueue, count: number, type: string): Promise<void> {
  let n = 0
  queue.handle(type, () => Promise.reject(failure(n++)))
  await workUntil(queue, 'rescheduled', count)
}

/** Runs a second that fail and are put off by a backoff, which is so short that the same letters come again. */
export async function failRate(bench: Bench, count: number): Promise<number> {
  const queue = await bench.open('fail', { ...unbraked, maxRetries: 1000 })
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
