import { statSync } from 'node:fs'
import type { DeadLetterQueue } from '../../src/index.ts'
import { chunkLetters } from '../../src/bulk/records.ts'
import { systemClock } from '../../src/clock/clock.ts'
import { median, rate, result, type Bench, type Result } from '../harness.ts'
import { addItems, hasRawEngine, withRawEngine, type RawEngine } from '../yardsticks/raw-engine.ts'
import { openFilled } from './backlog.ts'

const dayMs = 86_400_000
const reason = 'the gateway is back'

/**
 * A bulk retry with a result for each letter: its plan, and its run until all letters are due,
 * compared with updates of as many rows without Redrive.
 */
export async function bulk(bench: Bench): Promise<Result[]> {
  const { sizes, kind } = bench
  const hasRaw = hasRawEngine(kind)
  const plans: number[] = []
  const retries: number[] = []
  const raws: number[] = []
  // The first round warms up.
  for (let round = 0; round <= sizes.rounds; round++) {
    if (round === 1) bench.forget()
    await bench.clear()
    const raw = hasRaw ? await withRawEngine(kind, bench.location, (e) => rawRate(e, bench)) : NaN
    const queue = await openFilled(bench, 'bulk', sizes.bulkAction, { redeliver: false })
    let id = ''
    const planMs = await bench.timed('bulk plan', async () => {
      id = await planAll(queue, sizes.bulkAction)
    })
    const tookMs = await bench.timed('bulk retry', () => retryAll(queue, id, sizes.bulkAction))
    await queue.close()
    const planned = rate(sizes.bulkAction, planMs)
    const retried = rate(sizes.bulkAction, tookMs)
    const compared = hasRaw ? `, raw update ${Math.round(raw)}/s` : ''
    bench.log(
      `  round ${round}: plan ${Math.round(planned)}/s, bulk retry ${Math.round(retried)}/s${compared}`,
    )
    if (round === 0) continue
    plans.push(planned)
    retries.push(retried)
    raws.push(raw)
  }
  const rawName = `raw update ${chunkLetters}`
  return [
    result(kind, 'bulk plan', median(plans), '/s'),
    result(kind, 'bulk retry', median(retries), '/s'),
    ...(hasRaw
      ? [
          result(kind, rawName, median(raws), '/s'),
          result(kind, `bulk retry / ${rawName}`, median(retries.map((x, n) => x / raws[n]!)), 'x'),
        ]
      : []),
    ...(kind === 'sqlite'
      ? [result(kind, 'size of a letter on disk', await measureSize(bench), 'B')]
      : []),
  ]
}

async function planAll(queue: DeadLetterQueue, count: number): Promise<string> {
  const { id } = await queue.plan('retry', { queue: 'charge-card' }, { reason, concurrency: count })
  return id
}

/** Runs an action until each letter is due and has its result. */
async function retryAll(queue: DeadLetterQueue, id: string, count: number): Promise<void> {
  const done = new Promise<void>((resolve) => {
    queue.on('bulk', ({ action }) => {
      if (action.id === id && action.progress.waiting === count) resolve()
    })
  })
  queue.start()
  await queue.run(id)
  await done
}

/** Rows per second, with as many rows in one write as a bulk action has letters. */
async function rawRate(engine: RawEngine, { sizes }: Bench): Promise<number> {
  await addItems(engine, sizes.bulkAction, chunkLetters)
  const dueMs = systemClock.now() + dayMs
  const startMs = performance.now()
  let left = sizes.bulkAction
  while (left > 0) left -= await engine.reschedule(chunkLetters, dueMs)
  return rate(sizes.bulkAction, performance.now() - startMs)
}

/** Bytes per letter of a SQLite file after it was closed. */
async function measureSize(bench: Bench): Promise<number> {
  const { location, sizes } = bench
  await bench.clear()
  const queue = await openFilled(bench, 'size', sizes.bulkAction)
  await queue.close()
  return statSync(location.url('size').replace(/^sqlite:/, '')).size / sizes.bulkAction
}
