import { AsyncLocalStorage } from 'node:async_hooks'
import * as fc from 'fast-check'
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { readPolicies } from '../../../src/capture/executor/options.ts'
import { waitMs } from '../../../src/capture/executor/retry.ts'
import { systemClock } from '../../../src/clock/clock.ts'
import { toFailure } from '../../../src/letter/failure.ts'
import { toMs, toTimestamp } from '../../../src/letter/time.ts'
import { deferred } from '../../a-queue.ts'
import { anExecutor, errorOf, failing, http } from './an-executor.ts'

beforeEach(() => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'Date', 'performance'] })
})
afterEach(() => {
  // Whatever a call did, it leaves no timer behind.
  expect(vi.getTimerCount()).toBe(0)
  vi.useRealTimers()
})

/** The system clock with a fixed random number, which records the delays of its timers. */
function watchedClock(random: number): typeof systemClock & { waits: number[] } {
  const waits: number[] = []
  return {
    ...systemClock,
    random: () => random,
    timer: (ms, fire) => {
      waits.push(ms)
      return systemClock.timer(ms, fire)
    },
    waits,
  }
}

/** An operation that ends only when its signal aborts, or never. */
function hanging(options: { handlesAbort: boolean } = { handlesAbort: false }) {
  const signals: AbortSignal[] = []
  const operation = ({ signal }: { signal: AbortSignal }): Promise<never> => {
    signals.push(signal)
    return new Promise((_resolve, reject) => {
      const rejectWithAbort = (): void =>
        reject(new DOMException('This operation was aborted', 'AbortError'))
      if (options.handlesAbort) signal.addEventListener('abort', rejectWithAbort)
    })
  }
  return { operation, signals }
}

describe('delays between attempts', () => {
  it.each([
    ['llm', 0, [900, 1800]],
    ['llm', 0.5, [1000, 2000]],
    ['github', 0, [800, 1600, 3200, 6400]],
    ['github', 0.5, [1000, 2000, 4000, 8000]],
  ])('of policy %s with random value %d are %j', async (policy, random, waits) => {
    const clock = watchedClock(random)
    const { executor } = await anExecutor({}, { clock })
    const call = errorOf(
      executor.execute(policy, failing(...Array.from({ length: 9 }, () => http(503)))),
    )
    await vi.runAllTimersAsync()
    await call
    expect(clock.waits).toEqual(waits)
  })

  it('are within the jitter and at most the maximum', () => {
    const failure = toFailure(http(503), toTimestamp(0))
    fc.assert(
      fc.property(
        fc.record({
          initialDelayMs: fc.integer({ min: 0, max: 60_000 }),
          maxDelayMs: fc.integer({ min: 0, max: 60_000 }),
          multiplier: fc.double({ min: 1, max: 10, noNaN: true }),
          jitter: fc.double({ min: 0, max: 1, noNaN: true }),
        }),
        fc.integer({ min: 1, max: 100 }),
        fc.double({ min: 0, max: 1, maxExcluded: true, noNaN: true }),
        (given, attempt, random) => {
          const policy = readPolicies({ policies: { mine: given } }).get('mine')!
          const plain = Math.min(
            given.initialDelayMs === 0
              ? 0
              : given.initialDelayMs * given.multiplier ** (attempt - 1),
            given.maxDelayMs,
          )
          const wait = waitMs(policy, attempt, failure, () => random)!
          expect(wait).toBeLessThanOrEqual(given.maxDelayMs)
          expect(wait).toBeGreaterThanOrEqual(Math.floor(plain * (1 - given.jitter)))
          expect(wait).toBeLessThanOrEqual(Math.ceil(plain * (1 + given.jitter)))
        },
      ),
    )
  })

  it('are at least the Retry-After of the server', async () => {
    const clock = watchedClock(0.5)
    const { executor } = await anExecutor({}, { clock })
    const call = executor.execute(
      'llm',
      failing(
        http(429, { headers: new Headers({ 'retry-after': '7' }) }),
        new Error('wrapped', { cause: http(429, { retryAfterMs: 9000 }) }),
      ),
    )
    await vi.runAllTimersAsync()
    expect(await call).toBe('done')
    expect(clock.waits).toEqual([7000, 9000])
  })

  it('are left to the letter when the server requests more than the maximum', async () => {
    const { executor, letters } = await anExecutor()
    const operation = failing(http(429, { headers: { 'Retry-After': '300' } }))
    await errorOf(executor.execute('llm', operation, { operation: { payload: 1 } }))
    expect(operation.runs).toBe(1)
    const [letter] = await letters()
    expect(letter).toMatchObject({ state: 'pending', category: 'rate-limit' })
    expect(toMs(letter!.retryAt!) - toMs(letter!.deadLetteredAt)).toBe(300_000)
  })
})

describe('the timeout of a run', () => {
  it.each([true, false])(
    'rejects with a TimeoutError, aborts the signal (handled: %s), and retries',
    async (handlesAbort) => {
      const { executor, letters } = await anExecutor()
      const { operation, signals } = hanging({ handlesAbort })
      const call = errorOf(executor.execute('tool', operation, { operation: { payload: 1 } }))
      await vi.advanceTimersByTimeAsync(29_999)
      expect(signals.map(({ aborted }) => aborted)).toEqual([false])
      await vi.runAllTimersAsync()
      expect(await call).toMatchObject({
        name: 'TimeoutError',
        message: 'a run of tool did not end within 30000 ms (timeoutMs)',
      })
      expect(signals.map(({ aborted }) => aborted)).toEqual([true, true, true])
      expect(await letters()).toMatchObject([
        { category: 'timeout', attempts: 3, state: 'pending', failure: { name: 'TimeoutError' } },
      ])
    },
  )

  it('does not affect a run that ends in time', async () => {
    const { executor } = await anExecutor()
    const { promise, resolve } = deferred<string>()
    const call = executor.execute('tool', () => promise)
    await vi.advanceTimersByTimeAsync(29_000)
    resolve('just so')
    expect(await call).toBe('just so')
  })
})

describe('the overall timeout', () => {
  const policies = {
    mine: { overallTimeoutMs: 5000, timeoutMs: 60_000, jitter: 0, initialDelayMs: 2000 },
  }

  it('rejects during a run, with the previous failure as the cause', async () => {
    const { executor, letters } = await anExecutor(policies)
    const { operation, signals } = hanging()
    const first = http(503)
    const call = errorOf(
      executor.execute('mine', (run) => {
        if (run.attempt === 1) throw first
        return operation(run)
      }),
    )
    await vi.advanceTimersByTimeAsync(4900)
    expect(signals[0]?.aborted).toBe(false)
    await vi.runAllTimersAsync()
    const error = await call
    expect(error).toMatchObject({
      name: 'TimeoutError',
      message: 'a call of mine did not end within 5000 ms (overallTimeoutMs)',
    })
    expect((error as Error).cause).toBe(first)
    expect(signals.map(({ aborted }) => aborted)).toEqual([true])
    expect(await letters()).toMatchObject([{ category: 'timeout', attempts: 2 }])
  })

  it('rejects during a delay that never ends, and starts no further run', async () => {
    const cancelled: boolean[] = []
    const clock = { ...systemClock, timer: () => () => void cancelled.push(true) }
    const { executor } = await anExecutor(policies, { clock })
    const operation = failing(http(503), http(503))
    const call = errorOf(executor.execute('mine', operation))
    await vi.runAllTimersAsync()
    expect(await call).toMatchObject({ name: 'TimeoutError' })
    expect(operation.runs).toBe(1)
    expect(cancelled).toEqual([true])
  })

  it('rejects before a delay that would exceed it', async () => {
    const { executor, letters } = await anExecutor(policies)
    const errors = [http(503), http(503), http(503)]
    const operation = failing(...errors)
    const call = errorOf(executor.execute('mine', operation, { operation: { payload: 1 } }))
    await vi.runAllTimersAsync()
    // The first wait takes 2 s of 5, the second would take 4.
    expect(await call).toBe(errors[1])
    expect(operation.runs).toBe(2)
    expect(await letters()).toMatchObject([{ attempts: 2, category: 'dependency' }])
  })
})

describe('the signal of the caller', () => {
  it('rejects a run with its reason and stores no letter', async () => {
    const { executor, letters } = await anExecutor({ mine: { overallTimeoutMs: 90_000 } })
    for (const policy of ['llm', 'mine']) {
      const { operation, signals } = hanging()
      const controller = new AbortController()
      const reason = new Error('the user left')
      const call = errorOf(executor.execute(policy, operation, { signal: controller.signal }))
      await vi.advanceTimersByTimeAsync(10)
      controller.abort(reason)
      expect(await call).toBe(reason)
      expect(signals.map(({ aborted }) => aborted)).toEqual([true])
      expect(signals[0]!.reason).toBe(reason)
    }
    expect(await letters()).toEqual([])
  })

  it('ends a delay and starts no further run', async () => {
    const { executor, letters } = await anExecutor()
    const controller = new AbortController()
    const operation = failing(http(503), http(503))
    const call = errorOf(executor.execute('llm', operation, { signal: controller.signal }))
    await vi.advanceTimersByTimeAsync(100)
    controller.abort()
    expect(await call).toBe(controller.signal.reason)
    await vi.runAllTimersAsync()
    expect(operation.runs).toBe(1)
    expect(await letters()).toEqual([])
  })

  it('removes a call from the queue of a bulkhead without a run', async () => {
    const bulkhead = { concurrent: 1, queue: 1 }
    const { executor, letters } = await anExecutor({ narrow: { bulkhead } })
    const { promise, resolve } = deferred()
    const first = executor.execute('narrow', () => promise)
    const controller = new AbortController()
    const operation = failing()
    const call = errorOf(
      executor.execute('narrow', operation, {
        signal: controller.signal,
        operation: { payload: 1 },
      }),
    )
    await vi.advanceTimersByTimeAsync(10)
    controller.abort('the user left')
    const others = vi.advanceTimersByTimeAsync(10).then(() => 'still waits')
    expect(await Promise.race([call, others])).toBe('the user left')
    resolve()
    await first
    await executor.execute('narrow', failing())
    expect(operation.runs).toBe(0)
    expect(await letters()).toEqual([])
  })

  it('prevents every run when it is already aborted', async () => {
    const bulkhead = { concurrent: 1 }
    const { executor } = await anExecutor({ narrow: { bulkhead } })
    const operation = failing()
    for (const policy of ['llm', 'verification', 'narrow'])
      expect(
        await errorOf(executor.execute(policy, operation, { signal: AbortSignal.abort('no') })),
      ).toBe('no')
    expect(operation.runs).toBe(0)
  })

  it('does not call the fallback', async () => {
    const fallback = vi.fn<() => string>(() => 'instead')
    const { executor } = await anExecutor({ mine: { fallback } })
    const signal = AbortSignal.abort('no')
    expect(await errorOf(executor.execute('mine', failing(), { signal }))).toBe('no')
    expect(fallback).not.toHaveBeenCalled()
  })
})

describe('a bulkhead', () => {
  const policies = { narrow: { bulkhead: { concurrent: 1, queue: 1 }, breaker: false as const } }

  it('runs `concurrent` calls, queues `queue` calls, and stores letters for further calls', async () => {
    const { executor, letters } = await anExecutor(policies)
    const { promise, resolve } = deferred<string>()
    const first = executor.execute('narrow', () => promise)
    const second = failing()
    const waiting = executor.execute('narrow', second)
    const third = failing()
    const refused = await errorOf(executor.execute('narrow', third, { operation: { payload: 1 } }))
    expect(refused).toMatchObject({
      name: 'BulkheadFullError',
      message: 'narrow is busy: 1 calls run and 1 wait already (bulkhead), try again later',
    })
    expect(second.runs).toBe(0)
    resolve('first')
    expect(await Promise.all([first, waiting])).toEqual(['first', 'done'])
    expect(third.runs).toBe(0)
    expect(await letters()).toMatchObject([
      { queue: 'narrow', state: 'pending', category: 'transient', attempts: 0 },
    ])
  })

  it('runs a queued call in the async context of its caller', async () => {
    const { executor } = await anExecutor(policies)
    const context = new AsyncLocalStorage<string>()
    const { promise, resolve } = deferred()
    const seen: (string | undefined)[] = []
    const recordContext = async (): Promise<void> => {
      seen.push(context.getStore())
      await promise
    }
    const calls = ['first', 'second'].map((name) =>
      context.run(name, () => executor.execute('narrow', recordContext)),
    )
    resolve()
    await Promise.all(calls)
    expect(seen).toEqual(['first', 'second'])
  })
})
