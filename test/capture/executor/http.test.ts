import { once } from 'node:events'
import { createServer, type RequestListener, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { afterEach, describe, expect, it } from 'vitest'
import { anExecutor, errorOf } from './an-executor.ts'

const servers: Server[] = []

afterEach(async () => {
  for (const server of servers.splice(0)) {
    server.closeAllConnections()
    await new Promise((resolve) => void server.close(resolve))
  }
})

/**
 * Starts a server that answers the requests with these listeners in turn, and then with the last.
 */
async function startServer(...answers: RequestListener[]): Promise<string> {
  let requests = 0
  const server = createServer((request, response) => {
    const answer = answers[Math.min(requests++, answers.length - 1)]!
    answer(request, response)
  })
  servers.push(server)
  await once(server.listen(0, '127.0.0.1'), 'listening')
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}/`
}

const status =
  (code: number, headers: Record<string, string> = {}): RequestListener =>
  (_request, response) =>
    response.writeHead(code, headers).end()
const ok: RequestListener = (_request, response) => response.end('hello')
const reset: RequestListener = (request) => request.socket.resetAndDestroy()
const hang: RequestListener = () => {}

/**
 * Like a typical caller: fetches, and throws an error with status and headers if the response is
 * not ok.
 */
async function fetchText(url: string, signal: AbortSignal): Promise<string> {
  const response = await fetch(url, { signal })
  const { status, headers } = response
  if (!response.ok) throw Object.assign(new Error(`answered ${status}`), { status, headers })
  return response.text()
}

const policies = {
  http: { attempts: 3, initialDelayMs: 1, maxDelayMs: 2000, timeoutMs: 5000 },
  brief: { attempts: 2, initialDelayMs: 1, maxDelayMs: 1, timeoutMs: 100 },
}

describe('an executor over HTTP', () => {
  it.each<[string, RequestListener]>([
    ['a 429', status(429, { 'retry-after': '0' })],
    ['a 500', status(500)],
    ['a 503', status(503)],
    ['a reset', reset],
  ])('retries %s until the request succeeds', async (_what, answer) => {
    const url = await startServer(answer, answer, ok)
    const { executor, letters } = await anExecutor(policies)
    const seen: number[] = []
    const text = await executor.execute('http', ({ signal, attempt }) => {
      seen.push(attempt)
      return fetchText(url, signal)
    })
    expect(text).toBe('hello')
    expect(seen).toEqual([1, 2, 3])
    expect(await letters()).toEqual([])
  })

  it.each<[string, RequestListener, object]>([
    ['a 429', status(429, { 'retry-after': '0' }), { category: 'rate-limit', attempts: 3 }],
    ['a 503', status(503), { category: 'dependency', attempts: 3, failure: { status: 503 } }],
    ['a reset', reset, { category: 'network', attempts: 3, failure: { name: 'TypeError' } }],
    ['a 404', status(404), { category: 'permanent', attempts: 1, state: 'parked' }],
  ])('stores a letter for %s that persists', async (_what, answer, expected) => {
    const url = await startServer(answer)
    const { executor, letters } = await anExecutor(policies)
    let last: unknown
    const error = await errorOf(
      executor.execute(
        'http',
        async ({ signal }) => {
          try {
            return await fetchText(url, signal)
          } catch (error) {
            last = error
            throw error
          }
        },
        { operation: { endpoint: url, payload: { q: 1 } } },
      ),
    )
    expect(error).toBe(last)
    expect(await letters()).toMatchObject([{ queue: 'http', ...expected }])
  })

  it('rejects with a TimeoutError without a response, and closes the connection', async () => {
    const closed: Promise<unknown>[] = []
    const url = await startServer((request, response) => {
      closed.push(once(request.socket, 'close'))
      hang(request, response)
    })
    const { executor, letters } = await anExecutor(policies)
    const error = await errorOf(executor.execute('brief', ({ signal }) => fetchText(url, signal)))
    expect(error).toMatchObject({ name: 'TimeoutError' })
    expect(closed).toHaveLength(2)
    await Promise.all(closed)
    expect(await letters()).toMatchObject([{ category: 'timeout', attempts: 2 }])
  })

  it('leaves a Retry-After above the maximum delay to the letter', async () => {
    const url = await startServer(status(429, { 'retry-after': '120' }), ok)
    const { executor, letters } = await anExecutor(policies)
    await errorOf(
      executor.execute('http', ({ signal }) => fetchText(url, signal), {
        operation: { payload: 1 },
      }),
    )
    expect(await letters()).toMatchObject([
      { attempts: 1, state: 'pending', backoffMs: 120_000, failure: { retryAfterMs: 120_000 } },
    ])
  })

  it('lets the caller read the response body after the call', async () => {
    const url = await startServer((_request, response) => {
      response.write('hel')
      setImmediate(() => response.end('lo'))
    })
    const { executor } = await anExecutor(policies)
    const response = await executor.execute('http', ({ signal }) => fetch(url, { signal }))
    expect(await response.text()).toBe('hello')
  })
})
