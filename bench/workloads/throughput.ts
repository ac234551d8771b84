import { median, rate, result, type Bench, type Result } from '../harness.ts'
import { addItems, hasRawEngine, withRawEngine, type RawEngine } from '../yardsticks/raw-engine.ts'
import { drainRate, failRate } from './drain.ts'
import { bulkRate, enqueueRate } from './enqueue.ts'

/** Items in one write of the raw engine that a bulk call and a drain are compared with. */
const rawBatch = 500

const rawMeasures = ['raw add 1', 'raw add 64', 'raw add 500', 'raw drain 500'] as const
const ownMeasures = ['enqueue c1', 'enqueue c64', 'bulk', 'drain', 'fail'] as const

type RawMeasure = (typeof rawMeasures)[number]
type Measure = RawMeasure | (typeof ownMeasures)[number]

/** What each measure is compared with, in the same round. */
const comparisons: [measure: Measure, raw: RawMeasure][] = [
  ['enqueue c1', 'raw add 1'],
  ['enqueue c64', 'raw add 64'],
  ['bulk', 'raw add 500'],
  ['drain', 'raw drain 500'],
  ['fail', 'raw drain 500'],
]

/** About ten thousand calls until all hot code is compiled. */
async function warmUp(bench: Bench): Promise<void> {
  for (let n = 0; n < 3; n++) {
    await bench.clear()
    await enqueueRate(bench, 1, bench.sizes.warmUp)
    await enqueueRate(bench, 64, bench.sizes.warmUp)
    await drainRate(bench, bench.sizes.warmUp)
  }
  bench.forget()
}

/** Throughput of captures and drains, as a share of what the engine does without Redrive. */
export async function throughput(bench: Bench): Promise<Result[]> {
  const { sizes, kind } = bench
  const hasRaw = hasRawEngine(kind)
  const raw = (measureRaw: (engine: RawEngine) => Promise<number>) => () =>
    withRawEngine(kind, bench.location, measureRaw)
  const run: Record<Measure, () => Promise<number>> = {
    'raw add 1': raw((engine) => addRate(engine, sizes.single, 1)),
    'raw add 64': raw((engine) => addRate(engine, sizes.concurrent, 64)),
    'raw add 500': raw((engine) => addRate(engine, sizes.bulk, rawBatch)),
    'raw drain 500': raw((engine) => rawDrainRate(engine, sizes.drain)),
    'enqueue c1': () => enqueueRate(bench, 1, sizes.single),
    'enqueue c64': () => enqueueRate(bench, 64, sizes.concurrent),
    bulk: () => bulkRate(bench, sizes.bulk),
    drain: () => drainRate(bench, sizes.drain),
    fail: () => failRate(bench, sizes.concurrent),
  }
  const wanted: Measure[] = [...(hasRaw ? rawMeasures : []), ...ownMeasures]
  const rounds: Partial<Record<Measure, number>>[] = []
  await warmUp(bench)
  for (let round = 0; round < sizes.rounds; round++) {
    const rates: Partial<Record<Measure, number>> = {}
    for (const measure of wanted) {
      await bench.clear()
      rates[measure] = await run[measure]()
    }
    rounds.push(rates)
    const figures = wanted.map((measure) => `${measure} ${Math.round(rates[measure]!)}/s`)
    bench.log(`  round ${round + 1}: ${figures.join(', ')}`)
  }
  return [
    ...wanted.map((measure) =>
      result(kind, measure, median(rounds.map((rates) => rates[measure]!)), '/s'),
    ),
    ...(hasRaw ? comparisons : []).map(([measure, yardstick]) => {
      const ratios = rounds.map((rates) => rates[measure]! / rates[yardstick]!)
      return result(kind, `${measure} / ${yardstick}`, median(ratios), 'x')
    }),
    ...bench
      .cpuPerLetter()
      .map(([what, us]) => result(kind, `client CPU per letter, ${what}`, us, 'µs')),
  ]
}

async function addRate(engine: RawEngine, count: number, perWrite: number): Promise<number> {
  await addItems(engine, Math.min(count, 10 * perWrite), perWrite)
  const startMs = performance.now()
  await addItems(engine, count, perWrite)
  return rate(count, performance.now() - startMs)
}

async function rawDrainRate(engine: RawEngine, count: number): Promise<number> {
  await addItems(engine, count, rawBatch)
  const startMs = performance.now()
  let left = count
  while (left > 0) left -= await engine.drain(Math.min(rawBatch, left))
  return rate(count, performance.now() - startMs)
}
