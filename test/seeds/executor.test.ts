import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest'
import { resiliencePolicies } from '../../src/capture/executor/resilience.ts'
import { CircuitBreakerOpenError } from '../../src/capture/executor/errors.ts'
import { decodePayload } from '../../src/letter/payload.ts'
import { DeadLetterQueue } from '../../src/queue/queue.ts'
import { clause, row } from './rows.ts'

const names = ['llm', 'github', 'tool', 'verification'] as const

/** A policy like the built-in one, without waits. */
const swift = Object.fromEntries(
  names.map((name) => [name, { initialDelayMs: 0, maxDelayMs: 0, jitter: 0 }]),
)

describe(row('O6'), () => {
  let server: Server
  let url = ''
  let status = 503
  let requests = 0

  beforeAll(async () => {
    server = createServer((_request, response) => {
      requests++
      response.writeHead(status).end('no')
    })
    await new Promise<void>((resolve) => void server.listen(0, '127.0.0.1', resolve))
    url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/`
  })
  afterAll(() => void server.close())

  describe(
    clause(
      'O6',
      'ResilientExecutor with named policies (llm, github, tool, verification: attempts, delays, jitter, timeouts)',
    ),
    () => {
      it('the four policies have the numbers of the design', () => {
        const numbers = names.map((name) => {
          const { attempts, initialDelayMs, maxDelayMs, multiplier, jitter, timeoutMs, breaker } =
            resiliencePolicies[name]
          const limits = breaker
            ? [breaker.failures, breaker.successes, breaker.openMs, breaker.halfOpenCalls]
            : []
          return [attempts, initialDelayMs, maxDelayMs, multiplier, jitter, timeoutMs, ...limits]
        })
        expect(numbers).toEqual([
          [3, 1000, 30_000, 2, 0.1, 60_000, 5, 3, 60_000, 3],
          [5, 1000, 60_000, 2, 0.2, 30_000, 10, 5, 120_000, 5],
          [3, 500, 10_000, 2, 0.15, 30_000, 3, 2, 30_000, 2],
          [3, 2000, 30_000, 2, 0, 180_000],
        ])
      })
    },
  )

  it(clause('O6', 'error detection'), async () => {
    await using dlq = await DeadLetterQueue.open('memory:')
    const executor = dlq.executor({ policies: swift })
    const cases: [(typeof names)[number], Error, string][] = [
      ['llm', Object.assign(new Error('busy'), { status: 503 }), 'llm_server_error'],
      ['llm', Object.assign(new Error('slow down'), { status: 429 }), 'llm_rate_limit'],
      ['github', Object.assign(new Error('Not Found'), { status: 404 }), 'github_not_found'],
      ['github', Object.assign(new Error('Bad'), { status: 422 }), 'github_validation'],
      ['tool', Object.assign(new Error('x'), { name: 'TimeoutError' }), 'tool_timeout'],
    ]
    for (const [name, error, detail] of cases) {
      await expect(executor.execute(name, () => Promise.reject(error))).rejects.toBe(error)
      const [letter] = (await dlq.find({ order: 'newest', limit: 1 })).items
      expect(letter).toMatchObject({ failure: { detail } })
    }
  })

  describe(clause('O6', 'capture'), () => {
    it('a call is retried, then stored with its context', async () => {
      status = 503
      requests = 0
      await using dlq = await DeadLetterQueue.open('memory:')
      const executor = dlq.executor({ policies: swift })
      const call = async (): Promise<never> => {
        const response = await fetch(url)
        throw Object.assign(new Error('the model is busy'), { status: response.status })
      }
      const operation = { method: 'chat', endpoint: url, payload: { prompt: 'hello' } }
      await expect(executor.execute('llm', call, { operation })).rejects.toThrow('busy')
      expect(requests).toBe(3)
      const { items } = await dlq.find({ payload: true })
      expect(items).toMatchObject([
        {
          queue: 'llm_call',
          attempts: 3,
          category: 'dependency',
          source: { kind: 'operation', method: 'chat', endpoint: url },
          failure: { status: 503 },
        },
      ])
      expect(decodePayload(items[0]!.payload)).toEqual({ prompt: 'hello' })
    })
  })

  it(clause('O6', 'rethrow of the original error'), async () => {
    await using dlq = await DeadLetterQueue.open('memory:')
    const executor = dlq.executor({ policies: swift })
    const thrown = Object.assign(new Error('last'), { status: 500 })
    const errors = [Object.assign(new Error('first'), { status: 500 }), thrown]
    let run = 0
    const call = (): Promise<never> => Promise.reject(errors[Math.min(run++, 1)])
    const caught: unknown = await executor.execute('llm', call).catch((error: unknown) => error)
    expect(caught).toBe(thrown)
  })

  it(clause('O6', 'breaker'), async () => {
    await using dlq = await DeadLetterQueue.open('memory:')
    const executor = dlq.executor({
      policies: { ...swift, tool: { ...swift['tool'], attempts: 1 } },
    })
    let ran = 0
    const call = (): Promise<never> => {
      ran++
      return Promise.reject(Object.assign(new Error('slow'), { name: 'TimeoutError' }))
    }
    for (let n = 0; n < 3; n++) await expect(executor.execute('tool', call)).rejects.toThrow('slow')
    await expect(executor.execute('tool', call)).rejects.toBeInstanceOf(CircuitBreakerOpenError)
    expect(ran).toBe(3)
    // Each policy has its own breaker.
    expect(await executor.execute('github', async () => 'fine')).toBe('fine')
  })

  describe(
    clause(
      'O6',
      'ResilientExecutor with named policies (llm, github, tool, verification: attempts, delays, jitter, timeouts)',
    ),
    () => {
      it('makes the attempts of its policy', async () => {
        await using dlq = await DeadLetterQueue.open('memory:')
        const executor = dlq.executor({ policies: swift })
        const busy = Object.assign(new Error('busy'), { status: 503 })
        const late = Object.assign(new Error('late'), { name: 'TimeoutError' })
        const attempts: number[] = []
        for (const [name, error] of [
          ['llm', busy],
          ['github', busy],
          ['tool', late],
          ['verification', late],
        ] as const) {
          let ran = 0
          const call = (): Promise<never> => {
            ran++
            return Promise.reject(error)
          }
          await expect(executor.execute(name, call)).rejects.toBe(error)
          attempts.push(ran)
        }
        expect(attempts).toEqual([3, 5, 3, 3])
      })

      it('gives each attempt its timeout', async () => {
        await using dlq = await DeadLetterQueue.open('memory:')
        const executor = dlq.executor({ policies: { tool: { ...swift['tool'], timeoutMs: 20 } } })
        let ran = 0
        const hanging = (): Promise<never> => {
          ran++
          return new Promise(() => {})
        }
        await expect(executor.execute('tool', hanging)).rejects.toMatchObject({
          name: 'TimeoutError',
        })
        expect(ran).toBe(3)
      })
    },
  )

  describe(clause('O6', 'capture'), () => {
    it('a permanent failure is stored too, parked and without a second attempt', async () => {
      status = 404
      requests = 0
      await using dlq = await DeadLetterQueue.open('memory:')
      const call = async (): Promise<never> => {
        const response = await fetch(url)
        throw Object.assign(new Error('Not Found'), { status: response.status })
      }
      const executor = dlq.executor({ policies: swift })
      const context = { operation: { payload: { issue: 7 } } }
      await expect(executor.execute('github', call, context)).rejects.toThrow('Not Found')
      expect(requests).toBe(1)
      const [letter] = (await dlq.find()).items
      expect(letter).toMatchObject({ queue: 'github_api', state: 'parked' })
    })

    it('no second letter inside a redelivery', async () => {
      await using dlq = await DeadLetterQueue.open('memory:', { maxRetries: 1 })
      const executor = dlq.executor({ policies: swift })
      const call = (): Promise<never> => Promise.reject(new Error('ETIMEDOUT'))
      const context = { operation: { payload: 1 }, policy: { kind: 'immediate' as const } }
      dlq.handle('tool_execution', () => executor.execute('tool', call, context))
      await expect(executor.execute('tool', call, context)).rejects.toThrow('ETIMEDOUT')
      const over = new Promise((resolve) => dlq.on('exhausted', resolve))
      dlq.start()
      await over
      const { items } = await dlq.find({ state: ['pending', 'exhausted', 'parked'] })
      expect(items).toHaveLength(1)
    })
  })

  it(clause('O6', 'fallback'), async () => {
    await using dlq = await DeadLetterQueue.open('memory:')
    const fallback = vi.fn<(error: unknown) => string>(() => 'from the cache')
    const executor = dlq.executor({ policies: { ...swift, llm: { ...swift['llm'], fallback } } })
    const busy = Object.assign(new Error('busy'), { status: 429 })
    expect(await executor.execute('llm', () => Promise.reject(busy))).toBe('from the cache')
    expect(fallback).toHaveBeenCalledWith(busy)
    expect((await dlq.find()).items).toEqual([])
  })
})
