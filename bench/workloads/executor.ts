import {
  circuitBreaker,
  ConsecutiveBreaker,
  handleAll,
  retry,
  timeout,
  TimeoutStrategy,
} from 'cockatiel'
import { resiliencePolicies } from '../../src/capture/executor/resilience.ts'
import { DeadLetterQueue } from '../../src/index.ts'
import { median, result, type Result, type Sizes } from '../harness.ts'

const noop = async (): Promise<number> => 1

/** The policies of the executor, nested by hand, which is faster than `wrap` of cockatiel. */
function composePolicies(): (operation: () => Promise<number>) => Promise<number> {
  const { attempts, timeoutMs, breaker: limits } = resiliencePolicies.llm
  const retries = retry(handleAll, { maxAttempts: attempts - 1 })
  const breaker = circuitBreaker(handleAll, {
    breaker: new ConsecutiveBreaker(limits.failures),
    halfOpenAfter: limits.openMs,
    halfOpenSampling: { calls: limits.halfOpenCalls, threshold: 0 },
  })
  const time = timeout(timeoutMs, { strategy: TimeoutStrategy.Aggressive, abortOnReturn: false })
  return (operation) =>
    retries.execute(({ signal }) =>
      breaker.execute(({ signal }) => time.execute(operation, signal), signal),
    )
}

async function microseconds(calls: number, call: () => Promise<unknown>): Promise<number> {
  const startMs = performance.now()
  for (let n = 0; n < calls; n++) await call()
  return ((performance.now() - startMs) / calls) * 1000
}

/** Overhead of the executor over its policies, for a successful call. */
export async function executor({ rounds, concurrent, warmUp }: Sizes): Promise<Result[]> {
  await using dlq = await DeadLetterQueue.open('memory:')
  const ours = dlq.executor()
  const policiesOnly = composePolicies()
  const context = { operation: { payload: { prompt: 'hi' } }, tags: ['bench'] }
  const variants: (() => Promise<unknown>)[] = [
    () => policiesOnly(noop),
    () => ours.execute('llm', noop),
    () => ours.execute('llm', noop, context),
  ]
  for (const variant of variants) await microseconds(warmUp, variant)
  const took: number[][] = []
  for (let round = 0; round < rounds * roundsFactor; round++) {
    const row: number[] = []
    for (const variant of variants) row.push(await microseconds(concurrent, variant))
    took.push(row)
  }
  const column = (at: number): number => median(took.map((row) => row[at]!))
  const over = (at: number): number => median(took.map((row) => row[at]! - row[0]!))
  return [
    result('none', 'cockatiel alone, one call', column(0), 'µs'),
    result('none', 'executor, one call', column(1), 'µs'),
    result('none', 'executor over cockatiel alone', over(1), 'µs', { atMost: 5 }),
    result('none', 'executor with a context over cockatiel alone', over(2), 'µs', { atMost: 5 }),
  ]
}

/** Rounds are short, so there are more of them than in the store workloads. */
const roundsFactor = 3
