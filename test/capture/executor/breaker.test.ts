import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { resiliencePolicies } from '../../../src/capture/executor/resilience.ts'
import { toMs } from '../../../src/letter/time.ts'
import { deferred } from '../../a-queue.ts'
import { anExecutor, errorOf, failing, http, type ExecutorBench } from './an-executor.ts'

beforeEach(() => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'Date', 'performance'] })
})
afterEach(() => {
  expect(vi.getTimerCount()).toBe(0)
  vi.useRealTimers()
})

const once = { attempts: 1 }

async function failTimes(
  { executor }: ExecutorBench,
  policy: string,
  times: number,
): Promise<void> {
  for (let n = 0; n < times; n++) await errorOf(executor.execute(policy, failing(http(503))))
}

describe.each(['llm', 'github', 'tool'] as const)('the breaker of %s', (name) => {
  const { failures, successes, openMs } = resiliencePolicies[name].breaker

  it('opens after its limit of consecutive failures, rejects calls, admits probes, and closes', async () => {
    const bench = await anExecutor({ [name]: once })
    const { executor, eventsOf } = bench
    await failTimes(bench, name, failures - 1)
    expect(executor.state(name)).toBe('closed')
    await failTimes(bench, name, 1)
    expect(executor.state(name)).toBe('open')

    vi.setSystemTime(Date.now() + openMs - 1)
    const refused = failing()
    expect(await errorOf(executor.execute(name, refused))).toMatchObject({
      name: 'CircuitBreakerOpenError',
    })
    expect(refused.runs).toBe(0)

    vi.setSystemTime(Date.now() + 1)
    for (let n = 1; n <= successes; n++) {
      expect(await executor.execute(name, failing())).toBe('done')
      expect(executor.state(name)).toBe(n < successes ? 'half-open' : 'closed')
    }
    expect(eventsOf('breaker')).toMatchObject([
      { kind: 'policy', name, state: 'open', until: expect.any(String) },
      { kind: 'policy', name, state: 'half-open' },
      { kind: 'policy', name, state: 'closed' },
    ])
  })

  it('opens again when a probe fails, and resets the count of successful probes', async () => {
    const bench = await anExecutor({ [name]: once })
    const { executor } = bench
    await failTimes(bench, name, failures)
    vi.setSystemTime(Date.now() + openMs)
    await executor.execute(name, failing())
    await failTimes(bench, name, 1)
    expect(executor.state(name)).toBe('open')
    vi.setSystemTime(Date.now() + openMs)
    await executor.execute(name, failing())
    expect(executor.state(name)).toBe('half-open')
  })

  it('stays closed when a success interrupts the failures', async () => {
    const bench = await anExecutor({ [name]: once })
    for (let n = 0; n < 3; n++) {
      await failTimes(bench, name, failures - 1)
      await bench.executor.execute(name, failing())
    }
    expect(bench.executor.state(name)).toBe('closed')
  })
})

describe('a breaker', () => {
  const small = (limits: object) => ({ mine: { ...once, breaker: { failures: 2, ...limits } } })

  it('is shared by all calls of one policy of one executor only', async () => {
    const bench = await anExecutor({ ...small({}), other: { ...once, breaker: { failures: 2 } } })
    const second = await anExecutor(small({}))
    await failTimes(bench, 'mine', 2)
    expect(bench.executor.state('mine')).toBe('open')
    expect(bench.executor.state('other')).toBe('closed')
    expect(second.executor.state('mine')).toBe('closed')
    expect(bench.executor.state('verification')).toBe('closed')
  })

  it('that is open rejects with the last failure as the cause, and delays the letter until it closes', async () => {
    const bench = await anExecutor(small({ openMs: 600_000 }))
    const last = new Error('no answer', { cause: http(429) })
    const { executor, letters } = bench
    await failTimes(bench, 'mine', 1)
    await errorOf(executor.execute('mine', failing(last)))
    const refused = (await errorOf(
      executor.execute('mine', failing(), { operation: { payload: 1 } }),
    )) as Error
    expect(refused).toMatchObject({
      message: 'the circuit breaker of mine is open, the call was not made',
      retryAfterMs: 600_000,
    })
    expect(refused.cause).toBe(last)
    const letter = (await letters()).at(-1)!
    expect(letter).toMatchObject({ category: 'dependency', state: 'pending', attempts: 0 })
    expect(toMs(letter.retryAt!) - toMs(letter.deadLetteredAt)).toBe(600_000)
  })

  it('that opens during a call ends its retries immediately, with the error of the operation', async () => {
    const { executor, letters } = await anExecutor({
      mine: { attempts: 5, breaker: { failures: 2 } },
    })
    const errors = Array.from({ length: 5 }, () => http(503))
    const operation = failing(...errors)
    const call = errorOf(executor.execute('mine', operation))
    await vi.advanceTimersByTimeAsync(1200)
    expect(await call).toBe(errors[1])
    expect(operation.runs).toBe(2)
    expect(await letters()).toMatchObject([{ attempts: 2 }])
  })

  it('that other calls opened during a backoff rejects the waiting call with its own error', async () => {
    const bench = await anExecutor({
      mine: { attempts: 2, jitter: 0, retryOn: { statuses: [503] }, breaker: { failures: 3 } },
    })
    const { executor } = bench
    const mine = http(503)
    const operation = failing(mine)
    const call = errorOf(executor.execute('mine', operation))
    await vi.advanceTimersByTimeAsync(500)
    for (let n = 0; n < 2; n++) await errorOf(executor.execute('mine', failing(http(500))))
    expect(executor.state('mine')).toBe('open')
    await vi.advanceTimersByTimeAsync(600)
    expect(await call).toBe(mine)
    expect(operation.runs).toBe(1)
  })

  it('does not count failures that the call itself causes', async () => {
    const { executor } = await anExecutor(small({}))
    for (const status of [400, 401, 403, 404, 422])
      await errorOf(executor.execute('mine', failing(http(status))))
    expect(executor.state('mine')).toBe('closed')
  })

  it('does not count cancelled calls', async () => {
    const bench = await anExecutor(small({ openMs: 1000, successes: 1 }))
    const { executor, eventsOf } = bench
    const cancelled = async (): Promise<void> => {
      const controller = new AbortController()
      const call = executor.execute('mine', () => new Promise(() => {}), {
        signal: controller.signal,
      })
      controller.abort('no')
      expect(await errorOf(call)).toBe('no')
    }
    for (let n = 0; n < 3; n++) await cancelled()
    expect(executor.state('mine')).toBe('closed')

    // A cancelled probe does not close it.
    await failTimes(bench, 'mine', 2)
    vi.setSystemTime(Date.now() + 1000)
    await cancelled()
    expect(executor.state('mine')).toBe('open')

    // A call that was cancelled before is not a probe.
    vi.setSystemTime(Date.now() + 1000)
    const signal = AbortSignal.abort('no')
    expect(await errorOf(executor.execute('mine', failing(), { signal }))).toBe('no')
    expect(eventsOf('breaker').map(({ state }) => state)).toEqual(['open', 'half-open', 'open'])
  })

  it('runs at most halfOpenCalls while half-open; other calls wait for their result', async () => {
    const bench = await anExecutor(small({ openMs: 1000, successes: 2, halfOpenCalls: 2 }))
    const { executor } = bench
    await failTimes(bench, 'mine', 2)
    vi.setSystemTime(Date.now() + 1000)
    const { promise, resolve } = deferred()
    let running = 0
    const calls = Array.from({ length: 5 }, () =>
      executor.execute('mine', async () => {
        running++
        await promise
      }),
    )
    await vi.advanceTimersByTimeAsync(1)
    expect(running).toBe(2)
    resolve()
    await Promise.all(calls)
    expect(running).toBe(5)
    expect(executor.state('mine')).toBe('closed')
  })

  it('releases a cancelled call that waits for a probe', async () => {
    const bench = await anExecutor(small({ openMs: 1000, successes: 1 }))
    const { executor, letters } = bench
    await failTimes(bench, 'mine', 2)
    const before = await letters()
    vi.setSystemTime(Date.now() + 1000)
    const { promise, resolve } = deferred()
    const tried = executor.execute('mine', () => promise)
    const controller = new AbortController()
    const operation = failing()
    const call = errorOf(executor.execute('mine', operation, { signal: controller.signal }))
    await vi.advanceTimersByTimeAsync(1)
    controller.abort('the user left')
    const others = vi.advanceTimersByTimeAsync(1).then(() => 'still waits')
    expect(await Promise.race([call, others])).toBe('the user left')
    resolve()
    await tried
    expect(executor.state('mine')).toBe('closed')
    expect(operation.runs).toBe(0)
    expect(await letters()).toEqual(before)
  })

  it('closes when enough probes succeed', async () => {
    const limits = { openMs: 1000, successes: 2, halfOpenCalls: 3 }
    const bench = await anExecutor(small(limits))
    const { executor } = bench
    await failTimes(bench, 'mine', 2)

    vi.setSystemTime(Date.now() + 1000)
    await failTimes(bench, 'mine', 1)
    expect(executor.state('mine')).toBe('half-open')
    await failTimes(bench, 'mine', 1)
    expect(executor.state('mine')).toBe('open')

    vi.setSystemTime(Date.now() + 1000)
    await failTimes(bench, 'mine', 1)
    await executor.execute('mine', failing())
    await executor.execute('mine', failing())
    expect(executor.state('mine')).toBe('closed')
  })
})
