import { connect } from 'node:net'
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest'
import { problemType } from '../../src/api/problem.ts'
import { problemSchema } from '../../src/api/schemas/problem.ts'
import { bodyTimeoutMs } from '../../src/server/limits.ts'
import { aServer, type TestServer } from './a-server.ts'
import { sendRaw, type RawResponse } from './send-raw.ts'
import { waitFor } from '../wait-for.ts'

let server: TestServer
let token: string
let id: string

beforeAll(async () => {
  server = await aServer()
  token = await server.token()
  const letter = await server.dlq.enqueue({ type: 'orders', payload: { a: 1 } }, new Error('x'))
  id = letter.id
})

afterAll(async () => {
  await server.close()
})

/** Sends a request with a valid token. */
function send(
  method: string,
  path: string,
  { body, headers = {} }: { body?: string | Buffer; headers?: Record<string, string> } = {},
): Promise<RawResponse> {
  return sendRaw(server.url, method, path, {
    ...(body === undefined ? {} : { body }),
    headers: {
      authorization: `Bearer ${token}`,
      ...(body === undefined ? {} : { 'content-type': 'application/json' }),
      ...headers,
    },
  })
}

const deep = '['.repeat(100_000) + ']'.repeat(100_000)

describe('bad requests', () => {
  it.each<[what: string, status: number, method: string, path: () => string, body?: string]>([
    ['an unknown path', 404, 'GET', () => '/api/nothing'],
    ['a path that climbs', 404, 'GET', () => '/api/../../etc/passwd'],
    ['an encoded path that climbs', 404, 'GET', () => '/%2e%2e/%2e%2e/etc/passwd'],
    ['a broken escape', 400, 'GET', () => '/api/letters/%E0%A4%A'],
    ['another method', 404, 'PATCH', () => `/api/letters/${id}`],
    ['broken JSON', 400, 'POST', () => `/api/letters/${id}/retry`, '{"at":'],
    ['an array as body', 400, 'POST', () => `/api/letters/${id}/retry`, '[]'],
    ['a string as body', 400, 'POST', () => `/api/letters/${id}/retry`, '"x"'],
    ['a key of the path in the body', 400, 'POST', () => `/api/letters/${id}/retry`, '{"id":"x"}'],
    ['a prototype key', 400, 'POST', () => `/api/letters/${id}/retry`, '{"__proto__":{"at":1}}'],
    ['a constructor key', 400, 'POST', () => `/api/letters/${id}/park`, '{"constructor":1}'],
    ['a wrong type', 400, 'POST', () => `/api/letters/${id}/retry`, '{"at":5}'],
    ['an unknown key', 400, 'POST', () => `/api/letters/${id}/retry`, '{"when":"now"}'],
    ['a deep body', 400, 'POST', () => `/api/letters/${id}/retry`, `{"at":${deep}}`],
    ['an unknown field of a query', 400, 'GET', () => '/api/letters?stat=parked'],
    ['a prototype key in a query', 400, 'GET', () => '/api/letters?__proto__.x=1'],
    ['a forged cursor', 400, 'GET', () => '/api/letters?cursor=abc'],
    ['a negative limit', 400, 'GET', () => '/api/letters?limit=-1'],
    ['a limit that is not a number', 400, 'GET', () => '/api/letters?limit=ten'],
    ['an id that does not exist', 404, 'GET', () => '/api/letters/01995c3a'],
    ['an id with a null byte', 404, 'GET', () => '/api/letters/a%00b'],
    ['a long id', 400, 'GET', () => `/api/letters/${'x'.repeat(500)}`],
  ])('%s: %d', async (_, status, method, path, body) => {
    const answer = await send(method, path(), body === undefined ? {} : { body })
    expect(answer).toMatchObject({ status })
    expect(answer.headers['content-type']).toContain(problemType)
    expect(problemSchema.safeParse(JSON.parse(answer.body)).success).toBe(true)
  })

  it('rejects a body above the limit without reading all of it', async () => {
    const answer = await send('POST', `/api/letters/${id}/retry`, {
      body: Buffer.alloc(11 * 1024 * 1024, 0x20),
    })
    expect(answer.status).toBe(413)
  })

  it('ends the connection of a body that does not arrive', async () => {
    const socket = connect(Number(new URL(server.url).port), '127.0.0.1')
    const closed = vi.fn<() => void>()
    socket.once('close', closed).resume()
    socket.write(
      `POST /api/letters/${id}/retry HTTP/1.1\r\nhost: x\r\nauthorization: Bearer ${token}\r\n` +
        'content-type: application/json\r\ncontent-length: 100\r\n\r\n{',
    )
    await waitFor(async () => {
      await server.clock.advance(bodyTimeoutMs)
      expect(closed).toHaveBeenCalled()
    })
  })

  it('rejects another content type', async () => {
    const answer = await send('POST', `/api/letters/${id}/retry`, {
      body: '<at/>',
      headers: { 'content-type': 'text/xml' },
    })
    expect(answer.status).toBe(415)
  })

  it.each([
    ['', 401],
    ['Bearer', 401],
    ['Bearer ', 401],
    ['Basic YTpi', 401],
    [`Bearer rdr_${'a'.repeat(12)}_${'b'.repeat(43)}`, 401],
    [`Bearer ${'x'.repeat(5000)}`, 401],
    ['Bearer __proto__', 401],
  ])('rejects the authorization %j', async (authorization, status) => {
    const answer = await send('GET', '/api/letters', { headers: { authorization } })
    expect(answer.status).toBe(status)
  })

  it('changes nothing, and reports no unexpected error', async () => {
    expect(server.errors).toEqual([])
    expect(await server.dlq.get(id)).toMatchObject({ version: 1 })
    expect(Object.prototype).not.toHaveProperty('at')
  })
})
