import { expect, it } from 'vitest'
import { metricsType } from '../../src/api/endpoint.ts'
import { logRequests } from '../../src/observers/log.ts'
import { Idempotency } from '../../src/server/idempotency.ts'
import type { TrackedRequest } from '../../src/server/request-tracking.ts'
import { createServer } from '../../src/server/server.ts'
import { samplesOf } from '../observers/metrics/samples.ts'
import { withServerInEachTest, type TestServer } from './a-server.ts'

let server: TestServer
let admin: string

withServerInEachTest(async (one) => {
  server = one
  admin = await server.token()
})

const get = (path: string, headers: Record<string, string> = {}): Promise<Response> =>
  fetch(`${server.url}${path}`, { headers: { authorization: `Bearer ${admin}`, ...headers } })

it('GET /metrics is in the format of Prometheus, for a token that may read all letters', async () => {
  await server.dlq.enqueue({ type: 'mail', payload: 1 }, new Error('x'))
  const response = await get('/metrics')
  expect(response.status).toBe(200)
  expect(response.headers.get('content-type')).toBe(metricsType)
  const samples = samplesOf(await response.text())
  expect(samples.get('redrive_letters{queue="mail",state="pending"}')).toBe(1)
  const scoped = await server.token({ role: 'admin', queues: ['mail'] })
  const denied = await get('/metrics', { authorization: `Bearer ${scoped}` })
  expect(denied.status).toBe(403)
})

it('the client returns the metrics as a string', async () => {
  const client = await server.client()
  expect(await client.scrapeMetrics()).toContain('# TYPE redrive_store_up gauge')
})

it('counts requests by endpoint and status, never by path', async () => {
  const { id } = await server.dlq.enqueue({ type: 'mail', payload: 1 }, new Error('x'))
  await get(`/api/letters/${id}`)
  await get('/api/letters/0198c0de-0000-7000-8000-000000000000')
  await get('/api/letters', { authorization: 'Bearer wrong' })
  await get('/secret/path')
  const text = await (await get('/metrics')).text()
  const samples = samplesOf(text)
  const count = (endpoint: string, status: number): number | undefined =>
    samples.get(
      `redrive_http_requests_total{endpoint="${endpoint}",method="GET",status="${status}"}`,
    )
  expect(count('getLetter', 200)).toBe(1)
  expect(count('getLetter', 404)).toBe(1)
  expect(count('listLetters', 401)).toBe(1)
  expect(count('none', 404)).toBe(1)
  expect(samples.get('redrive_http_request_duration_seconds_count{endpoint="getLetter"}')).toBe(2)
  expect(text).not.toContain('secret')
  expect(text).not.toContain(id)
})

it('every response has an x-request-id, and a problem has it in its body', async () => {
  const ok = await get('/api/letters')
  expect(ok.headers.get('x-request-id')).toMatch(/^[0-9a-f-]{36}$/)
  for (const path of ['/api/letters?stat=x', '/nothing', '/api/letters/%E0%A4%A']) {
    const response = await get(path)
    const { requestId } = (await response.json()) as { requestId: string }
    expect(requestId, path).toBe(response.headers.get('x-request-id'))
    expect(requestId, path).toMatch(/^[0-9a-f-]{36}$/)
  }
})

it('a request keeps the id of a proxy, if it is one', async () => {
  const idOf = async (given: string): Promise<string | null> =>
    (await get('/livez', { 'x-request-id': given })).headers.get('x-request-id')
  expect(await idOf('proxy-17.a:b')).toBe('proxy-17.a:b')
  expect(await idOf('a b')).not.toBe('a b')
  expect(await idOf('x'.repeat(101))).not.toContain('xx')
})

it('a kept problem has the id of the request that repeats it', async () => {
  const send = (): Promise<Response> =>
    fetch(`${server.url}/api/letters/0198c0de-0000-7000-8000-000000000000/retry`, {
      method: 'POST',
      headers: { authorization: `Bearer ${admin}`, 'idempotency-key': 'k1' },
    })
  await send()
  const again = await send()
  expect(again.status).toBe(404)
  expect(again.headers.get('content-type')).toContain('application/problem+json')
  const { requestId } = (await again.json()) as { requestId: string }
  expect(requestId).toBe(again.headers.get('x-request-id'))
})

it('logs requests with their route and caller, and nothing of their content', async () => {
  const { dlq, tokens, clock } = server
  const lines: Record<string, unknown>[] = []
  const at =
    (level: string) =>
    (fields: object, message: string): void =>
      void lines.push({ level, message, ...fields })
  const logger = {
    debug: at('debug'),
    info: at('info'),
    warn: at('warn'),
    error: at('error'),
  }
  const app = createServer({
    dlq,
    tokens,
    idempotency: new Idempotency(server.store, clock),
    clock,
    version: '0',
    onAnswer: logRequests(logger) satisfies (request: TrackedRequest) => void,
    onError: () => {},
  })
  const headers = { authorization: `Bearer ${admin}`, 'x-request-id': 'r-1' }
  await app.inject({ url: '/api/letters?text=secret', headers })
  await app.inject({ url: '/api/letters/secret', headers })
  await app.inject({ url: '/secret', headers })
  await app.inject({ url: '/livez' })
  await app.close()
  const common = { message: 'request', event: 'request', method: 'GET', requestId: 'r-1' }
  expect(lines).toEqual([
    { ...common, level: 'info', route: '/api/letters', status: 200, caller: 'mia', durationMs: 0 },
    {
      ...common,
      level: 'info',
      route: '/api/letters/{id}',
      status: 404,
      caller: 'mia',
      durationMs: 0,
    },
    { ...common, level: 'info', route: 'none', status: 404, durationMs: 0 },
    {
      ...common,
      requestId: expect.any(String),
      level: 'debug',
      route: '/livez',
      status: 200,
      durationMs: 0,
    },
  ])
  expect(JSON.stringify(lines)).not.toContain('secret')
})
