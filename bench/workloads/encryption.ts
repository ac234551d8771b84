import { median, rate, result, type Bench, type Result } from '../harness.ts'
import { enqueueWith } from './enqueue.ts'

const callers = 64
const encryption = {
  keys: { bench: Buffer.alloc(32, 7).toString('base64') },
  current: 'bench',
}

/** Throughput of captures through the library with encryption, as a share of that without. */
export async function encrypted(bench: Bench): Promise<Result[]> {
  const { kind, sizes } = bench
  const ratios: number[] = []
  for (let round = 0; round < sizes.rounds; round++) {
    await bench.clear()
    const plain = await captureRate(bench, 'plain', {})
    const withKeys = await captureRate(bench, 'encrypted', { encryption })
    ratios.push(withKeys / plain)
    bench.log(
      `  round ${round + 1}: plain ${Math.round(plain)}/s, encrypted ${Math.round(withKeys)}/s`,
    )
  }
  return [result(kind, 'enqueue c64, encrypted / plain', median(ratios), 'x', { atLeast: 0.7 })]
}

async function captureRate(
  bench: Bench,
  name: string,
  options: Parameters<Bench['open']>[1],
): Promise<number> {
  const { warmUp, concurrent } = bench.sizes
  const queue = await bench.open(name, options)
  await enqueueWith(queue, callers, warmUp)
  const startMs = performance.now()
  await enqueueWith(queue, callers, concurrent)
  const tookMs = performance.now() - startMs
  await queue.close()
  return rate(concurrent, tookMs)
}
