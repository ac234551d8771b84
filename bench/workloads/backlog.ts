import { fixed, type DeadLetterQueue, type QueueOptions } from '../../src/index.ts'
import { median, quantile, result, type Bench, type Result } from '../harness.ts'
import { failure, operation } from '../sample.ts'
import { addDue, addFailing, drain, failAll, withoutFlowControl } from './drain.ts'
import { enqueueWith } from './enqueue.ts'

const monthMs = 30 * 86_400_000
const fillChunk = 10_000

/** Costs with a growing number of stored letters, and query times with many. */
export async function backlog(bench: Bench): Promise<Result[]> {
  const { sizes, kind } = bench
  const small = await openFilled(bench, 'small', sizes.smallBacklog)
  const large = await openFilled(bench, 'large', sizes.largeBacklog)
  const growths = {
    enqueue: [] as number[],
    'claim + resolve': [] as number[],
    'claim + fail': [] as number[],
  }
  for (let round = 0; round < sizes.rounds; round++) {
    const type = `fresh-${round}`
    const few = await measureCosts(bench, small, type)
    const many = await measureCosts(bench, large, type)
    growths.enqueue.push(many.enqueueMs / few.enqueueMs)
    growths['claim + resolve'].push(many.drainMs / few.drainMs)
    growths['claim + fail'].push(many.failMs / few.failMs)
  }
  const [foundFew, countedFew] = await measureQueries(bench, small)
  const [found, counted] = await measureQueries(bench, large)
  await small.close()
  await large.close()
  const between = `${formatCount(sizes.largeBacklog)} : ${formatCount(sizes.smallBacklog)} letters`
  const few = `at ${formatCount(sizes.smallBacklog)} letters, p99`
  const many = `at ${formatCount(sizes.largeBacklog)} letters, p99`
  // Queries to a server cross the network, so only the embedded store has a target.
  const atMost = (ms: number): Result['target'] => (kind === 'sqlite' ? { atMost: ms } : undefined)
  return [
    ...Object.entries(growths).map(([what, ratios]) =>
      result(kind, `${what}, cost at ${between}`, median(ratios), 'x', { atMost: 1.3 }),
    ),
    result(kind, `find a page ${few}`, foundFew, 'ms'),
    result(kind, `stats ${few}`, countedFew, 'ms'),
    result(kind, `find a page ${many}`, found, 'ms', atMost(5)),
    result(kind, `stats ${many}`, counted, 'ms', atMost(2)),
  ]
}

function formatCount(count: number): string {
  return count >= 1_000_000 ? `${count / 1_000_000}M` : `${count / 1000}k`
}

/** A queue with letters that are due in a month. */
export async function openFilled(
  bench: Bench,
  name: string,
  count: number,
  options: QueueOptions = {},
): Promise<DeadLetterQueue> {
  const queue = await bench.open(name, { ...withoutFlowControl, ...options })
  const context = { policy: fixed(monthMs) }
  for (let start = 0; start < count; start += fillChunk)
    await queue.enqueueAll(
      Array.from({ length: Math.min(fillChunk, count - start) }, (_, n) => ({
        operation: operation(start + n),
        error: failure(n),
        context,
      })),
    )
  bench.log(`  ${count} letters stored`)
  return queue
}

async function measureCosts(
  bench: Bench,
  queue: DeadLetterQueue,
  type: string,
): Promise<{ enqueueMs: number; drainMs: number; failMs: number }> {
  const { growth } = bench.sizes
  const enqueueMs = await bench.timed('enqueue c64', () =>
    enqueueWith(queue, 64, growth, 'charge-card'),
  )
  await addDue(queue, growth, type)
  const drainMs = await bench.timed('drain', () => drain(queue, growth, type))
  await addFailing(queue, growth, `${type}-again`)
  const failMs = await bench.timed('fail', () => failAll(queue, growth, `${type}-again`))
  return { enqueueMs, drainMs, failMs }
}

/** The 99th percentiles of a page by queue and state, with a cursor, and of the statistics. */
async function measureQueries(bench: Bench, queue: DeadLetterQueue): Promise<[number, number]> {
  const found: number[] = []
  const counted: number[] = []
  const took = async (work: () => Promise<unknown>): Promise<number> => {
    const startMs = performance.now()
    await work()
    return performance.now() - startMs
  }
  let cursor: string | undefined
  const find = async (): Promise<void> => {
    const page = await queue.find({
      queue: 'charge-card',
      state: 'pending',
      limit: 50,
      ...(cursor ? { cursor } : {}),
    })
    cursor = page.cursor
  }
  const query = async (): Promise<void> => {
    for (let n = 0; n < bench.sizes.lookups; n++) {
      found.push(await took(find))
      counted.push(await took(() => queue.stats()))
    }
  }
  // Warm-up: the code is compiled after about two thousand queries.
  for (let n = 0; n < 4; n++) await query()
  found.length = counted.length = 0
  await bench.timed('find and stats', query)
  bench.log(
    `  medians: find ${median(found).toFixed(2)} ms, stats ${median(counted).toFixed(2)} ms`,
  )
  return [quantile(found, 0.99), quantile(counted, 0.99)]
}
