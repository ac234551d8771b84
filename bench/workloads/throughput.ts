import { median, result, type Bench, type Result } from '../harness.ts'
import { rawRate, sampleRows } from '../yardstick.ts'
import { drainRate } from './drain.ts'
import { bulkRate, enqueueRate } from './enqueue.ts'

const measures = ['R1', 'enqueue c1', 'R64', 'enqueue c64', 'bulk', 'drain'] as const
type Measure = (typeof measures)[number]

/** What each is to be, as a share of what SQLite alone gives in the same round. */
const targets: [measure: Measure, yardstick: 'R1' | 'R64', atLeast: number][] = [
  ['enqueue c1', 'R1', 0.7],
  ['enqueue c64', 'R1', 2.5],
  ['enqueue c64', 'R64', 0.4],
  ['bulk', 'R64', 0.5],
  ['drain', 'R64', 0.25],
]

/** The machine needs some ten thousand calls until all that runs often is compiled. */
async function warmUp(bench: Bench): Promise<void> {
  for (let n = 0; n < 3; n++) {
    await bench.clear()
    await enqueueRate(bench, 1, bench.sizes.warmUp)
    await enqueueRate(bench, 64, bench.sizes.warmUp)
    await drainRate(bench, bench.sizes.warmUp)
  }
  bench.forget()
}

/** How fast letters go in and out. */
export async function throughput(bench: Bench): Promise<Result[]> {
  const { sizes, kind } = bench
  const rows = kind === 'sqlite' ? await sampleRows(1000) : []
  const run: Record<Measure, () => Promise<number> | number> = {
    R1: () => rawRate(bench.directory, rows, sizes.single, 1),
    R64: () => rawRate(bench.directory, rows, sizes.concurrent, 64),
    'enqueue c1': () => enqueueRate(bench, 1, sizes.single),
    'enqueue c64': () => enqueueRate(bench, 64, sizes.concurrent),
    bulk: () => bulkRate(bench, sizes.bulk),
    drain: () => drainRate(bench, sizes.drain),
  }
  const wanted = measures.filter((measure) => rows.length > 0 || !measure.startsWith('R'))
  const rounds: Partial<Record<Measure, number>>[] = []
  await warmUp(bench)
  for (let round = 0; round < sizes.rounds; round++) {
    const rates: Partial<Record<Measure, number>> = {}
    for (const measure of wanted) {
      await bench.clear()
      rates[measure] = await run[measure]()
    }
    rounds.push(rates)
    const told = wanted.map((measure) => `${measure} ${Math.round(rates[measure]!)}/s`)
    bench.say(`  round ${round + 1}: ${told.join(', ')}`)
  }
  const absolute = wanted.map((measure) =>
    result(kind, measure, median(rounds.map((rates) => rates[measure]!)), '/s'),
  )
  if (rows.length === 0) return absolute
  return [
    ...absolute,
    ...targets.map(([measure, yardstick, atLeast]) => {
      const ratios = rounds.map((rates) => rates[measure]! / rates[yardstick]!)
      return result(kind, `${measure} / ${yardstick}`, median(ratios), 'x', { atLeast })
    }),
  ]
}
