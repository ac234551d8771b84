import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest'
import { resiliencePolicies } from '../../src/capture/resilience.ts'
import { DeadLetterQueue } from '../../src/queue.ts'
import { quote } from './rows.ts'

const names = ['llm', 'github', 'tool', 'verification'] as const

/** A policy like the built-in one, without its waits. */
const swift = Object.fromEntries(
  names.map((name) => [name, { initialDelayMs: 0, maxDelayMs: 0, jitter: 0 }]),
)

describe(quote('O6'), () => {
  let server: Server
  let url = ''
  let status = 503
  let asked = 0

  beforeAll(async () => {
    server = createServer((_request, response) => {
      asked++
      response.writeHead(status).end('no')
    })
    await new Promise<void>((resolve) => void server.listen(0, '127.0.0.1', resolve))
    url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/`
  })
  afterAll(() => void server.close())

  it('has the numbers of the four policies', () => {
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

  it('retries a real call, keeps it as detected, and rethrows the very error', async () => {
    status = 503
    asked = 0
    const dlq = await DeadLetterQueue.open('memory:')
    const executor = dlq.executor({ policies: swift })
    let thrown: unknown
    const call = async (): Promise<string> => {
      const response = await fetch(url)
      if (response.ok) return response.text()
      thrown = Object.assign(new Error('the model is busy'), { status: response.status })
      throw thrown
    }
    const operation = { method: 'chat', endpoint: url, payload: { prompt: 'hello' } }
    const caught: unknown = await executor
      .execute('llm', call, { operation })
      .catch((error) => error)
    expect(caught).toBeInstanceOf(Error)
    expect(caught).toBe(thrown)
    expect(asked).toBe(3)
    const { items } = await dlq.find({ payload: true })
    expect(items).toMatchObject([
      {
        queue: 'llm_call',
        attempts: 3,
        category: 'dependency',
        failure: { status: 503, detail: 'llm_server_error' },
      },
    ])
    await dlq.close()
  })

  it('keeps a permanent failure too, parked and without a second try', async () => {
    status = 404
    asked = 0
    const dlq = await DeadLetterQueue.open('memory:')
    const call = async (): Promise<never> => {
      const response = await fetch(url)
      throw Object.assign(new Error('Not Found'), { status: response.status })
    }
    const executor = dlq.executor({ policies: swift })
    const context = { operation: { payload: { issue: 7 } } }
    await expect(executor.execute('github', call, context)).rejects.toThrow('Not Found')
    expect(asked).toBe(1)
    const [letter] = (await dlq.find()).items
    expect(letter).toMatchObject({
      queue: 'github_api',
      state: 'parked',
      failure: { detail: 'github_not_found' },
    })
    await dlq.close()
  })

  it('is answered by the fallback, if there is one, and keeps nothing then', async () => {
    const dlq = await DeadLetterQueue.open('memory:')
    const fallback = vi.fn<(error: unknown) => string>(() => 'from the cache')
    const executor = dlq.executor({ policies: { ...swift, llm: { ...swift['llm'], fallback } } })
    const busy = Object.assign(new Error('busy'), { status: 429 })
    expect(await executor.execute('llm', () => Promise.reject(busy))).toBe('from the cache')
    expect(fallback).toHaveBeenCalledWith(busy)
    expect((await dlq.find()).items).toEqual([])
    await dlq.close()
  })

  it('makes no second letter inside a redelivery', async () => {
    const dlq = await DeadLetterQueue.open('memory:', { maxRetries: 1 })
    const executor = dlq.executor({ policies: swift })
    const call = (): Promise<never> => Promise.reject(new Error('ETIMEDOUT'))
    const context = { operation: { payload: 1 }, policy: { kind: 'immediate' as const } }
    dlq.handle('tool_execution', () => executor.execute('tool', call, context))
    await expect(executor.execute('tool', call, context)).rejects.toThrow('ETIMEDOUT')
    const over = new Promise((resolve) => dlq.on('exhausted', resolve))
    dlq.start()
    await over
    expect((await dlq.find({ state: ['pending', 'exhausted', 'parked'] })).items).toHaveLength(1)
    await dlq.close()
  })
})
