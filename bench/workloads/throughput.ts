import type { StoreKind } from '../location.ts'
import { median, result, type Bench, type Result } from '../harness.ts'
import { threadYardstickOf, yardstickOf } from '../yardsticks/yardstick.ts'
import { drainRate, failRate } from './drain.ts'
import { bulkRate, enqueueRate } from './enqueue.ts'

const measures = [
  'R1',
  'R1 by a thread',
  'enqueue c1',
  'R64',
  'enqueue c64',
  'bulk',
  'drain',
  'fail',
] as const
type Measure = (typeof measures)[number]

/** Without `atLeast`, the value is reported for comparison only. */
type Target = [measure: Measure, yardstick: 'R1' | 'R1 by a thread' | 'R64', atLeast?: number]

const serverTargets: Target[] = [
  ['enqueue c64', 'R64', 0.4],
  ['drain', 'R64', 0.25],
]

/** Targets as a share of the yardstick of the same round. */
const targets: Record<StoreKind, Target[]> = {
  memory: [],
  sqlite: [
    ['enqueue c1', 'R1', 0.7],
    ['R1 by a thread', 'R1'],
    ['enqueue c1', 'R1 by a thread'],
    ['enqueue c64', 'R1', 2.5],
    ['enqueue c64', 'R64', 0.4],
    ['bulk', 'R64', 0.5],
    ['drain', 'R64', 0.25],
  ],
  postgres: serverTargets,
  redis: serverTargets,
}

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

/** Throughput of captures and drains. */
export async function throughput(bench: Bench): Promise<Result[]> {
  const { sizes, kind } = bench
  const raw = yardstickOf(kind)
  const byThread = threadYardstickOf(kind)
  const run: Record<Measure, () => Promise<number> | number> = {
    R1: () => raw!(bench.location, sizes.single, 1),
    'R1 by a thread': () => byThread!(bench.location, sizes.single, 1),
    R64: () => raw!(bench.location, sizes.concurrent, 64),
    'enqueue c1': () => enqueueRate(bench, 1, sizes.single),
    'enqueue c64': () => enqueueRate(bench, 64, sizes.concurrent),
    bulk: () => bulkRate(bench, sizes.bulk),
    drain: () => drainRate(bench, sizes.drain),
    fail: () => failRate(bench, sizes.concurrent),
  }
  const wanted = measures.filter((measure) =>
    measure === 'R1 by a thread' ? byThread : raw || !measure.startsWith('R'),
  )
  const rounds: Partial<Record<Measure, number>>[] = []
  await warmUp(bench)
  for (let round = 0; round < sizes.rounds; round++) {
    const rates: Partial<Record<Measure, number>> = {}
    for (const measure of wanted) {
      await bench.clear()
      rates[measure] = await run[measure]()
    }
    rounds.push(rates)
    const parts = wanted.map((measure) => `${measure} ${Math.round(rates[measure]!)}/s`)
    bench.log(`  round ${round + 1}: ${parts.join(', ')}`)
  }
  const absolute = wanted.map((measure) =>
    result(kind, measure, median(rounds.map((rates) => rates[measure]!)), '/s'),
  )
  return [
    ...absolute,
    ...targets[kind].map(([measure, yardstick, atLeast]) => {
      const ratios = rounds.map((rates) => rates[measure]! / rates[yardstick]!)
      const target = atLeast === undefined ? undefined : { atLeast }
      return result(kind, `${measure} / ${yardstick}`, median(ratios), 'x', target)
    }),
  ]
}
