import { setTimeout } from 'node:timers/promises'
import { fixed, type DeadLetterQueue } from '../../src/index.ts'
import { median, quantile, result, type Bench, type Result } from '../harness.ts'
import { failures, operation } from '../sample.ts'
import { withoutFlowControl } from './drain.ts'

const monthMs = 30 * 86_400_000
const fillChunk = 10_000
const queues = 10
const priorities = ['critical', 'high', 'medium', 'low'] as const
const pageSize = 20
/** The order of many groups is used again for a second. */
const coldAfterMs = 1100

/** Pages of groups, sorted by count, with many letters in many groups. */
export async function groups(bench: Bench): Promise<Result[]> {
  const { kind, sizes } = bench
  await fillGroups(bench)
  const queue = await bench.open('groups', withoutFlowControl)
  const readPage = pageReader(queue)
  const coldMs: number[] = []
  for (let round = 0; round < sizes.rounds; round++) {
    await setTimeout(coldAfterMs)
    coldMs.push(await took(readPage))
  }
  for (let n = 0; n < sizes.lookups; n++) await readPage()
  const warmMs: number[] = []
  await bench.timed('groups', async () => {
    for (let n = 0; n < sizes.lookups; n++) warmMs.push(await took(readPage))
  })
  await queue.close()
  const what = `page of ${pageSize} of ${sizes.groups} groups`
  return [
    result(kind, `${what}, p50`, median(warmMs), 'ms'),
    result(kind, `${what}, p99`, quantile(warmMs, 0.99), 'ms', { atMost: 10 }),
    result(kind, `${what}, first after a second`, median(coldMs), 'ms'),
  ]
}

/** Stores letters that are due in a month, and what is known about their groups. */
export async function fillGroups(bench: Bench): Promise<void> {
  const { sizes } = bench
  const queue = await bench.open('groups', withoutFlowControl)
  const causes = failures(sizes.groups)
  const policy = fixed(monthMs)
  for (let start = 0; start < sizes.largeBacklog; start += fillChunk)
    await queue.enqueueAll(
      Array.from({ length: fillChunk }, (_, at) => {
        const n = start + at
        const cause = n % sizes.groups
        const round = Math.floor(n / sizes.groups)
        return {
          operation: operation(n, `queue-${cause % queues}`),
          error: causes[cause]!,
          context: { policy, priority: priorities[round % priorities.length]! },
        }
      }),
    )
  // Writes what is known about the groups.
  await queue.close()
  bench.log(`  ${sizes.largeBacklog} letters in ${sizes.groups} groups stored`)
}

/** Reads one page after the other, and starts again after the last one. */
function pageReader(queue: DeadLetterQueue): () => Promise<void> {
  let cursor: string | undefined
  return async () => {
    const page = await queue.groups({ limit: pageSize, ...(cursor ? { cursor } : {}) })
    if (page.items.length !== pageSize)
      throw new Error(`a page has ${page.items.length} groups instead of ${pageSize}`)
    cursor = page.cursor
  }
}

async function took(work: () => Promise<unknown>): Promise<number> {
  const startMs = performance.now()
  await work()
  return performance.now() - startMs
}
