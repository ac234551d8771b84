import type { DeadLetterQueue } from '../../src/index.ts'
import { rate, type Bench } from '../harness.ts'
import { failure, operation } from '../sample.ts'

/**
 * Runs `callers` concurrent callers, each with one call at a time, until all letters are stored.
 */
export async function enqueueWith(
  queue: DeadLetterQueue,
  callers: number,
  count: number,
  type?: string,
): Promise<void> {
  let next = 0
  const call = async (): Promise<void> => {
    while (next < count) {
      const n = next++
      await queue.enqueue(operation(n, type), failure(n))
    }
  }
  await Promise.all(Array.from({ length: callers }, call))
}

/** Letters per second on a new store, each call awaited by its caller. */
export async function enqueueRate(bench: Bench, callers: number, count: number): Promise<number> {
  const queue = await bench.open(`enqueue-${callers}`)
  await enqueueWith(queue, callers, bench.sizes.warmUp)
  const tookMs = await bench.timed(`enqueue c${callers}`, () => enqueueWith(queue, callers, count))
  await queue.close()
  return rate(count, tookMs)
}

/** Letters per second in one bulk call. */
export async function bulkRate(bench: Bench, count: number): Promise<number> {
  const queue = await bench.open('bulk')
  const failures = Array.from({ length: count }, (_, n) => ({
    operation: operation(n),
    error: failure(n),
  }))
  await queue.enqueueAll(failures.slice(0, 1000))
  const tookMs = await bench.countCpu('bulk', count, () =>
    bench.timed('bulk', () => queue.enqueueAll(failures)),
  )
  await queue.close()
  return rate(count, tookMs)
}
