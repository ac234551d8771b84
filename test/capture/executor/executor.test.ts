import { describe, expect, it } from 'vitest'
import { resiliencePolicies } from '../../../src/capture/executor/resilience.ts'
import { exponential } from '../../../src/policy/backoff.ts'
import { decodePayload, encodePayload } from '../../../src/letter/payload.ts'
import { insideRedelivery } from '../../../src/run-context.ts'
import { DeadLetterQueue } from '../../../src/queue/queue.ts'
import { aLetter } from '../../../src/testing/a-letter.ts'
import { anExecutor, errorOf, failing, http, noDelay } from './an-executor.ts'

class RateLimitError extends Error {}
class TimeoutError extends Error {}
class SlowModelError extends TimeoutError {}

describe('a call that succeeds', () => {
  it('returns the result of the operation and stores nothing', async () => {
    const { executor, letters, eventsOf } = await anExecutor()
    const seen: { attempt: number; aborted: boolean }[] = []
    const result = await executor.execute('llm', ({ attempt, signal }) => {
      seen.push({ attempt, aborted: signal.aborted })
      return 42
    })
    expect(result).toBe(42)
    expect(seen).toEqual([{ attempt: 1, aborted: false }])
    expect(await letters()).toEqual([])
    expect(eventsOf('captured')).toEqual([])
  })

  it('does not abort the signal of a finished run, so that its result can still be read', async () => {
    const { executor } = await anExecutor()
    const signal = await executor.execute('llm', ({ signal }) => signal)
    expect(signal.aborted).toBe(false)
  })

  it('numbers its runs from 1', async () => {
    const { executor, letters } = await anExecutor({ llm: noDelay })
    const seen: number[] = []
    await executor.execute('llm', async ({ attempt }) => {
      seen.push(attempt)
      if (attempt < 3) throw http(503)
    })
    expect(seen).toEqual([1, 2, 3])
    expect(await letters()).toEqual([])
  })
})

describe('retryOn', () => {
  const named = { errors: ['RateLimitError', 'TimeoutError'], statuses: [429, 503] }

  it.each<[string, unknown]>([
    ['an error with a listed status, of any class', http(503)],
    ['an error with a listed name, without a status', new RateLimitError('slow down')],
    ['a subclass of a listed class', new SlowModelError('no answer')],
    ['an error whose name property is listed', new DOMException('late', 'TimeoutError')],
    [
      'an error whose cause has a listed name',
      new Error('call failed', { cause: new RateLimitError('no') }),
    ],
    [
      'an error whose cause is of a subclass',
      new Error('call failed', { cause: new SlowModelError('no') }),
    ],
    ['an error whose cause has a listed status', new Error('call failed', { cause: http(429) })],
    [
      'an error with the status in its response',
      Object.assign(new Error('bad'), { response: { status: 503 } }),
    ],
    ['an error with a listed statusCode', Object.assign(new Error('bad'), { statusCode: 429 })],
  ])('retries %s', async (_what, error) => {
    const { executor } = await anExecutor({ mine: { ...noDelay, retryOn: named } })
    const operation = failing(error)
    expect(await executor.execute('mine', operation)).toBe('done')
    expect(operation.runs).toBe(2)
  })

  it.each<[string, unknown]>([
    ['an error with another status', http(404)],
    ['an error with another name', new TypeError('x is not a function')],
    ['a thrown string', 'RateLimitError'],
    ['a thrown undefined', undefined],
  ])('does not retry %s', async (_what, error) => {
    const { executor } = await anExecutor({ mine: { ...noDelay, retryOn: named } })
    const operation = failing(error)
    expect(await errorOf(executor.execute('mine', operation))).toBe(error)
    expect(operation.runs).toBe(1)
  })

  it('matches categories that user rules assign', async () => {
    const rules = [{ name: 'odd', when: { code: 'E_ODD' }, category: 'transient' as const }]
    const odd = Object.assign(new Error('odd'), { code: 'E_ODD' })
    const retryOn = { categories: ['transient' as const] }
    const { executor } = await anExecutor({ mine: { ...noDelay, retryOn } }, { rules })
    expect(await executor.execute('mine', failing(odd))).toBe('done')
  })

  it('retries only the failures that a retryOn function accepts', async () => {
    const seen: unknown[] = []
    const { executor } = await anExecutor({
      mine: {
        ...noDelay,
        retryOn: (error, failure) => {
          seen.push([error, failure.status])
          return failure.status === 418
        },
      },
    })
    const [teapot, down] = [http(418), http(503)]
    expect(await errorOf(executor.execute('mine', failing(teapot, down)))).toBe(down)
    expect(seen).toEqual([
      [teapot, 418],
      [down, 503],
    ])
  })

  it('retries nothing when the retryOn function throws, and emits the error', async () => {
    const mistake = new Error('mistake')
    const { executor, eventsOf } = await anExecutor({
      mine: {
        ...noDelay,
        retryOn: () => {
          throw mistake
        },
      },
    })
    const operation = failing(http(503))
    await errorOf(executor.execute('mine', operation))
    expect(operation.runs).toBe(1)
    expect(eventsOf('error')).toEqual([
      { type: 'error', during: 'retryOn of mine', error: mistake },
    ])
  })

  it('does not treat the promise of an async retryOn function as true', async () => {
    const retryOn = (async () => true) as unknown as () => boolean
    const { executor } = await anExecutor({ mine: { ...noDelay, retryOn } })
    const operation = failing(http(503))
    await errorOf(executor.execute('mine', operation))
    expect(operation.runs).toBe(1)
  })

  it('retries temporary failures by default', async () => {
    const { executor } = await anExecutor({ mine: { ...noDelay, attempts: 4 } })
    const reset = Object.assign(new Error('read ECONNRESET'), { code: 'ECONNRESET' })
    expect(await executor.execute('mine', failing(reset, http(429), http(500)))).toBe('done')
    const operation = failing(http(422))
    await errorOf(executor.execute('mine', operation))
    expect(operation.runs).toBe(1)
  })
})

describe('a call whose last attempt fails', () => {
  it.each([
    ['llm', http(503), 3, 'llm_call', 'dependency'],
    ['github', http(502), 5, 'github_api', 'dependency'],
    ['tool', new TimeoutError('slow'), 3, 'tool_execution', 'timeout'],
    [
      'verification',
      Object.assign(new Error('tsc'), { name: 'BuildError' }),
      3,
      'verification',
      'unknown',
    ],
  ])(
    'of policy %s is stored in the queue of the policy, with the number of its attempts',
    async (...row) => {
      const [policy, error, attempts, queue, category] = row
      const { executor, letters } = await anExecutor({ [policy]: noDelay })
      const operation = failing(...Array.from({ length: 9 }, () => error))
      const payload = { prompt: 'hi' }
      expect(await errorOf(executor.execute(policy, operation, { operation: { payload } }))).toBe(
        error,
      )
      expect(operation.runs).toBe(attempts)
      const [letter, ...others] = await letters()
      expect(others).toEqual([])
      expect(letter).toMatchObject({ queue, category, attempts, retries: 0, state: 'pending' })
      expect(letter!.source).toEqual({ kind: 'operation', type: queue })
      expect(decodePayload(letter!.payload)).toEqual(payload)
    },
  )

  it('rethrows the same object that the operation threw last', async () => {
    const { executor } = await anExecutor({ llm: { ...noDelay, breaker: false } })
    const errors = [http(503), http(503), Object.freeze(http(503))]
    expect(await errorOf(executor.execute('llm', failing(...errors)))).toBe(errors[2])
    for (const thrown of [undefined, null, 'text', 7, { status: 404 }])
      expect(await errorOf(executor.execute('llm', failing(thrown)))).toBe(thrown)
  })

  it('rethrows the error of a synchronous operation', async () => {
    const { executor, letters } = await anExecutor()
    const error = new Error('at once')
    const operation = (): never => {
      throw error
    }
    expect(await errorOf(executor.execute('tool', operation))).toBe(error)
    expect(await letters()).toHaveLength(1)
  })

  it('is stored as a parked letter when the failure is permanent', async () => {
    const { executor, letters } = await anExecutor()
    const operation = failing(http(404))
    await errorOf(executor.execute('github', operation, { operation: { payload: 1 } }))
    expect(operation.runs).toBe(1)
    expect(await letters()).toMatchObject([
      { state: 'parked', reason: 'permanent', attempts: 1, failure: { status: 404 } },
    ])
  })

  it('is stored with every field of the context', async () => {
    const { executor, letters } = await anExecutor()
    const context = {
      operation: {
        type: 'summaries',
        method: 'POST',
        endpoint: '/v1/messages',
        payload: { prompt: 'hi' },
        context: { model: 'small' },
      },
      task: { id: 't-1', description: 'review it', source: 'ci' },
      tags: ['nightly'],
      priority: 'high' as const,
      dedupeKey: 'summary-7',
    }
    await errorOf(executor.execute('llm', failing(http(400)), context))
    await errorOf(executor.execute('llm', failing(http(400)), context))
    expect(await letters()).toMatchObject([
      {
        queue: 'summaries',
        source: {
          kind: 'operation',
          type: 'summaries',
          method: 'POST',
          endpoint: '/v1/messages',
          context: { model: 'small' },
        },
        task: { id: 't-1' },
        tags: ['nightly'],
        priority: 'high',
        occurrences: 2,
      },
    ])
  })

  it('goes to the queue that the policy sets, or to a queue with the name of the policy', async () => {
    const { executor, letters } = await anExecutor({ search: { queue: 'lookups' }, mail: {} })
    const context = { operation: { payload: 1 } }
    await errorOf(executor.execute('search', failing(http(400)), context))
    await errorOf(executor.execute('mail', failing(http(400)), context))
    expect((await letters()).map(({ queue }) => queue)).toEqual(['lookups', 'mail'])
  })

  it('is parked and tagged as not replayable when it has no payload', async () => {
    const { executor, letters } = await anExecutor({ llm: { ...noDelay, attempts: 1 } })
    await errorOf(executor.execute('llm', failing(http(503))))
    await errorOf(executor.execute('llm', failing(http(503)), { tags: ['mine'] }))
    expect(await letters()).toMatchObject([
      {
        state: 'parked',
        reason: 'never',
        policy: { kind: 'never' },
        tags: ['not-replayable'],
        category: 'dependency',
      },
      { tags: ['mine', 'not-replayable'] },
    ])
  })

  it('is retried without a payload when the caller sets a retry policy', async () => {
    const { executor, letters } = await anExecutor({ llm: { ...noDelay, attempts: 1 } })
    await errorOf(executor.execute('llm', failing(http(503)), { policy: exponential() }))
    expect(await letters()).toMatchObject([{ state: 'pending', tags: [] }])
  })

  it('rejects with its own error when the letter cannot be stored, and emits the other error', async () => {
    const { executor, letters, eventsOf } = await anExecutor({}, { maxItems: 1 })
    const errors = [http(400), http(401), http(402)]
    for (const error of errors)
      expect(await errorOf(executor.execute('llm', failing(error)))).toBe(error)
    expect(await letters()).toHaveLength(1)
    expect(eventsOf('error')).toMatchObject([
      { during: 'capture of llm_call', error: { code: 'QUEUE_FULL' } },
      { during: 'capture of llm_call', error: { code: 'QUEUE_FULL' } },
    ])
  })

  it('rejects with its own error when the payload is too large', async () => {
    const { executor, eventsOf } = await anExecutor()
    const error = http(400)
    const context = { operation: { payload: 'x'.repeat(2000) } }
    expect(await errorOf(executor.execute('llm', failing(error), context))).toBe(error)
    expect(eventsOf('error')).toMatchObject([{ error: { code: 'TOO_LARGE' } }])
  })
})

describe('a fallback', () => {
  it('returns its result instead of the error, and nothing is stored', async () => {
    const seen: unknown[] = []
    const fallback = (error: unknown): string => {
      seen.push(error)
      return 'from the cache'
    }
    const { executor, letters } = await anExecutor({ llm: { ...noDelay, fallback } })
    const error = http(400)
    expect(await executor.execute('llm', failing(error))).toBe('from the cache')
    expect(seen).toEqual([error])
    expect(await letters()).toEqual([])
  })

  it('declines by rethrowing the error that it received', async () => {
    const fallback = async (given: unknown): Promise<never> => {
      throw given
    }
    const { executor, letters, eventsOf } = await anExecutor({ llm: { fallback } })
    const error = http(400)
    expect(await errorOf(executor.execute('llm', failing(error)))).toBe(error)
    expect(await letters()).toMatchObject([{ failure: { status: 400 } }])
    expect(eventsOf('error')).toEqual([])
  })

  it('that fails is reported, and the original error is stored and rethrown', async () => {
    const broken = new Error('the cache is empty')
    const fallback = (): never => {
      throw broken
    }
    const { executor, letters, eventsOf } = await anExecutor({ llm: { fallback } })
    const error = http(400)
    expect(await errorOf(executor.execute('llm', failing(error)))).toBe(error)
    expect(await letters()).toMatchObject([{ failure: { status: 400 } }])
    expect(eventsOf('error')).toMatchObject([{ during: 'fallback of llm', error: broken }])
  })
})

describe('the executor inside a redelivery', () => {
  it('runs the policy as usual and stores no letter', async () => {
    const { executor, letters } = await anExecutor({ llm: noDelay })
    const error = http(503)
    const operation = failing(error, error, error)
    const context = { operation: { payload: 1 } }
    const call = insideRedelivery(aLetter({ queue: 'outer' }), () =>
      executor.execute('llm', operation, context),
    )
    expect(await errorOf(call)).toBe(error)
    expect(operation.runs).toBe(3)
    expect(await letters()).toEqual([])
  })

  it('stores a letter for a failure that the handler catches', async () => {
    const { executor, letters } = await anExecutor({ llm: { ...noDelay, attempts: 1 } })
    const input = { prompt: 'hi' }
    const context = { operation: { payload: input } }
    await insideRedelivery(aLetter({ queue: 'outer' }), async () => {
      await errorOf(executor.execute('llm', failing(http(503)), context))
      input.prompt = 'changed'
    })
    const [letter] = await letters()
    expect(letter).toMatchObject({ queue: 'llm_call', failure: { status: 503 } })
    expect(Buffer.from(letter!.payload.bytes).toString()).toBe('{"prompt":"hi"}')
  })

  it('fails and resolves the letter whose handler uses it, without a second letter', async () => {
    const { executor, letters, store } = await anExecutor({ llm: { ...noDelay, attempts: 2 } })
    const dlq = await DeadLetterQueue.open(store, { pollMs: 5 })
    const operation = failing(http(500), http(500), http(500), http(500))
    const call = (): Promise<string> =>
      executor.execute('llm', operation, { operation: { payload: { prompt: 'hi' } } })
    dlq.handle('llm_call', call)
    await errorOf(call())
    const [letter] = await letters()
    const nextEvent = (type: 'rescheduled' | 'resolved'): Promise<unknown> =>
      new Promise((resolve) => dlq.on(type, resolve))
    dlq.start()

    const rescheduled = nextEvent('rescheduled')
    await dlq.retry(letter!.id)
    await rescheduled
    expect(await letters()).toMatchObject([{ id: letter!.id, state: 'pending', retries: 1 }])

    const resolved = nextEvent('resolved')
    await dlq.retry(letter!.id)
    await resolved
    expect(await letters()).toMatchObject([{ id: letter!.id, state: 'resolved' }])
    expect(operation.runs).toBe(5)
    await dlq.close()
  })
})

describe('policies of an executor', () => {
  it('have the documented values when built in', () => {
    const row = (name: keyof typeof resiliencePolicies): unknown[] => {
      const { attempts, initialDelayMs, maxDelayMs, multiplier, jitter, timeoutMs, breaker } =
        resiliencePolicies[name]
      const limits = breaker && Object.values(breaker)
      return [attempts, initialDelayMs, maxDelayMs, multiplier, jitter, timeoutMs, limits]
    }
    expect(row('llm')).toEqual([3, 1000, 30_000, 2, 0.1, 60_000, [5, 3, 60_000, 3]])
    expect(row('github')).toEqual([5, 1000, 60_000, 2, 0.2, 30_000, [10, 5, 120_000, 5]])
    expect(row('tool')).toEqual([3, 500, 10_000, 2, 0.15, 30_000, [3, 2, 30_000, 2]])
    expect(row('verification')).toEqual([3, 2000, 30_000, 2, 0, 180_000, false])
  })

  it('override only the given fields of a built-in policy with the same name', async () => {
    const { executor } = await anExecutor({ llm: { ...noDelay, attempts: 2 } })
    const [first, second] = [http(503), http(503)]
    const operation = failing(first, second)
    expect(await errorOf(executor.execute('llm', operation))).toBe(second)
    const other = failing(http(418))
    await errorOf(executor.execute('llm', other))
    expect(other.runs).toBe(1)
  })

  it('are rejected when the queue name is invalid', async () => {
    for (const policies of [{ '': {} }, { a: { queue: '' } }, { a: { queue: 'x\n' } }])
      expect(await errorOf(anExecutor(policies))).toMatchObject({ code: 'INVALID_INPUT' })
  })

  it('are rejected when unknown, with the known and the nearest name, before a run', async () => {
    const { executor } = await anExecutor({ search: {} })
    const operation = failing()
    expect(await errorOf(executor.execute('gihub', operation))).toMatchObject({
      code: 'INVALID_INPUT',
      message:
        'unknown policy "gihub": did you mean "github"? known: llm, github, tool, verification, search',
    })
    expect(await errorOf(executor.execute('constructor', operation))).toMatchObject({
      code: 'INVALID_INPUT',
    })
    expect(operation.runs).toBe(0)
    expect(() => executor.state('nothing')).toThrow('unknown policy "nothing"')
  })

  it('reject an invalid context before a run', async () => {
    const { executor } = await anExecutor()
    const operation = failing()
    for (const context of [
      { maxRetries: -1 },
      { operation: { type: '' } },
      { operation: { method: 5, payload: 1 } },
      { operation: { endpoint: {}, payload: 1 } },
      { operation: null },
      { id: 'mine' },
    ])
      expect(await errorOf(executor.execute('llm', operation, context as never))).toMatchObject({
        code: 'INVALID_INPUT',
      })
    expect(operation.runs).toBe(0)
  })

  it.each<[object, string]>([
    [
      { llm: { attemps: 2 } },
      'unknown executor option "policies.llm.attemps": did you mean "attempts"?',
    ],
    [
      { llm: { breaker: { failure: 2 } } },
      '"policies.llm.breaker.failure": did you mean "failures"?',
    ],
    [
      { a: { retryOn: { status: [500] } } },
      '"policies.a.retryOn.status": did you mean "statuses"?',
    ],
    [{ a: { bulkhead: { concurrent: 1, size: 2 } } }, 'known: concurrent, queue'],
    [{ a: { attempts: 0 } }, 'executor option "policies.a.attempts"'],
    [{ a: { jitter: 2 } }, 'executor option "policies.a.jitter"'],
    [{ a: { multiplier: 0.5 } }, 'executor option "policies.a.multiplier"'],
    [{ a: { timeoutMs: 2 ** 31 } }, 'executor option "policies.a.timeoutMs"'],
    [
      { a: { retryOn: { categories: ['odd'] } } },
      'executor option "policies.a.retryOn.categories.0"',
    ],
    [{ a: { breaker: true } }, 'executor option "policies.a.breaker"'],
    [{ a: { fallback: 'no' } }, 'must be a function'],
    [{ a: 7 }, 'executor option "policies.a"'],
    [{ llm: { breaker: { successes: 9 } } }, '9) must not be above halfOpenCalls (3)'],
  ])('reject %j', async (policies, message) => {
    const error = await errorOf(anExecutor(policies as never))
    expect(error).toMatchObject({ code: 'INVALID_CONFIG' })
    expect(String(error)).toContain(message)
  })
})

describe('the idempotency key of a call', () => {
  it('is the same in every run of the call and in its letter', async () => {
    const { executor, letters } = await anExecutor({ llm: noDelay })
    const keys: string[] = []
    const call = executor.execute('llm', ({ idempotencyKey }) => {
      keys.push(idempotencyKey)
      throw http(503)
    })
    await errorOf(call)
    const [letter] = await letters()
    expect(keys).toEqual(Array(3).fill(`${letter!.id}:1:0`))
  })

  it('derives from the id in the context', async () => {
    const { executor } = await anExecutor()
    const id = '0198c0de-0000-7000-8000-000000000042'
    expect(await executor.execute('llm', ({ idempotencyKey }) => idempotencyKey, { id })).toBe(
      `${id}:1:0`,
    )
  })

  it('is the key of the letter when its handler repeats the same call', async () => {
    const { executor } = await anExecutor()
    const payload = encodePayload({ prompt: 'hi' })
    const letter = aLetter({ queue: 'llm_call', payload })
    const keyFor = (prompt: string): Promise<string> =>
      executor.execute('llm', ({ idempotencyKey }) => idempotencyKey, {
        operation: { payload: { prompt } },
      })
    const [same, other] = await insideRedelivery(letter, () =>
      Promise.all([keyFor('hi'), keyFor('bye')]),
    )
    expect(same).toBe(`${letter.id}:1:0`)
    expect(other).not.toBe(same)
  })
})
