import { immediate, type DeadLetterQueue } from '../../src/index.ts'
import { rate, type Bench } from '../harness.ts'
import { failure, operation } from '../sample.ts'

/** Handlers that run at the same time. */
export const drainConcurrency = 64

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
  let resolved = 0
  await new Promise<void>((done) => {
    const stop = queue.on('resolved', () => {
      if (++resolved < count) return
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
