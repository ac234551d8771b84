import { connect } from 'node:net'
import { describe, expect, it } from 'vitest'
import { withServerInEachTest, type TestServer } from './a-server.ts'
import { waitFor } from '../wait-for.ts'

let server: TestServer

withServerInEachTest((started) => (server = started), { maxItems: 1000 })

const error = { name: 'CardError', message: 'declined', code: 'E_CARD', status: 402 }
const id = '018f0000-0000-7000-8000-000000000001'

interface Sent {
  type?: string
  headers?: Record<string, string>
  token?: string
}

async function post(body: string, { type, headers, token }: Sent = {}) {
  const response = await fetch(`${server.url}/api/capture`, {
    method: 'POST',
    headers: {
      authorization: `Bearer ${token ?? (await server.token())}`,
      'content-type': type ?? 'application/json',
      ...headers,
    },
    body,
  })
  const text = await response.text()
  const lines = text
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => JSON.parse(line) as Record<string, unknown>)
  return { status: response.status, headers: response.headers, body: lines[0]!, lines }
}

describe('capture over HTTP', () => {
  it('stores a failure with all its fields', async () => {
    const client = await server.client({ name: 'shop' })
    const stored = await client.capture({
      queue: 'charge-card',
      json: { order: 42 },
      error: { ...error, stack: 'CardError: declined\n    at charge (shop.py:7)' },
      id,
      dedupeKey: 'order-42',
      lane: 'customer-7',
      tenant: 'acme',
      tags: ['vip'],
      metadata: { region: 'eu' },
      headers: { 'x-request': '1' },
      priority: 'high',
      traceparent: '00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01',
      attempts: 3,
      failedAt: '2026-01-01T00:00:00.000Z',
      endpoint: 'https://payments.example/charge',
    })
    expect(stored).toEqual({ id, queue: 'charge-card', state: 'parked', occurrences: 1 })
    expect(await client.getLetter({ id })).toMatchObject({
      payload: { json: { order: 42 }, contentType: 'application/json' },
      failure: error,
      dedupeKey: 'order-42',
      lane: 'customer-7',
      tenant: 'acme',
      tags: ['vip'],
      metadata: { region: 'eu' },
      headers: { 'x-request': '1' },
      priority: 'high',
      attempts: 3,
      failedAt: '2026-01-01T00:00:00.000Z',
      source: { kind: 'operation', endpoint: 'https://payments.example/charge' },
      history: [{ actor: 'shop', action: 'capture' }],
    })
  })

  it('stores text and bytes unchanged', async () => {
    const client = await server.client()
    const text = await client.capture({ queue: 'a', text: '<a/>', contentType: 'text/xml', error })
    const bytes = await client.capture({ queue: 'a', base64: 'AP8=', error })
    const exact = '{"n":12345678901234567890}'
    const json = await client.capture({
      queue: 'a',
      text: exact,
      contentType: 'application/json',
      error,
    })
    expect((await client.getLetter({ id: text.id })).payload).toMatchObject({
      text: '<a/>',
      contentType: 'text/xml',
    })
    expect((await client.getLetter({ id: bytes.id })).payload.base64).toBe('AP8=')
    const { payload } = (await server.dlq.get(json.id))!
    expect(Buffer.from(payload.bytes).toString()).toBe(exact)
  })

  it('answers the same for the same id, and rejects the id with another payload', async () => {
    const client = await server.client()
    const failure = { queue: 'a', json: 1, error, id }
    const first = await client.capture(failure)
    expect(await client.capture(failure)).toEqual(first)
    await expect(client.capture({ ...failure, json: 2 })).rejects.toMatchObject({
      problem: { status: 409, code: 'ID_CONFLICT' },
    })
    expect((await server.dlq.find()).items).toHaveLength(1)
  })

  it.each([
    ['no queue', { error }, /"queue" is missing/],
    ['no error', { queue: 'a' }, /"error" is missing/],
    ['an unknown field', { queue: 'a', error, dedupekey: 'x' }, /did you mean "dedupeKey"/],
    ['two payloads', { queue: 'a', error, json: 1, text: 'x' }, /one payload, got json and text/],
    ['an id that is no UUID', { queue: 'a', error, id: 'x' }, /"id" must be/],
  ])('rejects %s', async (_, body, detail) => {
    const { status, body: problem } = await post(JSON.stringify(body))
    expect(status).toBe(400)
    expect(problem).toMatchObject({ code: 'INVALID_INPUT', detail: expect.stringMatching(detail) })
  })

  it('rejects what is not JSON, other content types and bodies that are too large', async () => {
    expect(await post('{')).toMatchObject({ status: 400 })
    expect(await post('a', { type: 'text/plain' })).toMatchObject({ status: 415 })
    const large = JSON.stringify({ queue: 'a', text: 'x'.repeat(11 * 1024 * 1024), error })
    expect(await post(large)).toMatchObject({ status: 413, body: { code: 'TOO_LARGE' } })
  })

  it('stores only into the queues and tenants of the token', async () => {
    const client = await server.client({ queues: ['mail'], tenants: ['acme'] })
    const forbidden = { problem: { status: 403 } }
    await expect(client.capture({ queue: 'card', error })).rejects.toMatchObject(forbidden)
    await expect(
      client.capture({ queue: 'mail', error, tenant: 'umbrella' }),
    ).rejects.toMatchObject(forbidden)
    const stored = await client.capture({ queue: 'mail', error })
    expect((await server.dlq.get(stored.id))!.tenant).toBe('acme')
    const viewer = await server.client({ role: 'viewer' })
    await expect(viewer.capture({ queue: 'mail', error })).rejects.toMatchObject(forbidden)
    expect(await post('{}', { token: 'rdr_x' })).toMatchObject({ status: 401 })
  })

  it('does not say what is stored under the id of somebody else', async () => {
    const admin = await server.client()
    const client = await server.client({ queues: ['mail'] })
    await admin.capture({ queue: 'card', json: 1, error, id })
    await expect(client.capture({ queue: 'mail', json: 1, error, id })).rejects.toMatchObject({
      problem: { code: 'ID_CONFLICT' },
    })
  })

  it('answers 429 with Retry-After when the store is full', async () => {
    const lines = Array.from({ length: 1000 }, () => JSON.stringify({ queue: 'a', error }))
    await post(lines.join('\n'), { type: 'application/x-ndjson' })
    const full = await post(JSON.stringify({ queue: 'a', error }))
    expect(full).toMatchObject({ status: 429, body: { code: 'QUEUE_FULL', retry: true } })
    expect(full.headers.get('retry-after')).toBe('1')
  })
})

describe('CloudEvents', () => {
  const event = {
    specversion: '1.0',
    id: 'A234-1234-1234',
    source: 'https://shop.example/orders',
    type: 'order.failed',
    time: '2026-04-05T19:31:00+02:00',
  }

  it('are stored in structured mode', async () => {
    const body = { ...event, comexampleextension: 'value', data: { order: 42 }, errorcode: 'E1' }
    const sent = { type: 'application/cloudevents+json; charset=utf-8' }
    const first = await post(JSON.stringify(body), sent)
    expect(first).toMatchObject({ status: 201, body: { queue: 'order.failed', occurrences: 1 } })
    const again = await post(JSON.stringify(body), sent)
    expect(again.body).toMatchObject({ id: first.body['id'], occurrences: 2 })
    const letter = await (await server.client()).getLetter({ id: first.body['id'] as string })
    expect(letter).toMatchObject({
      payload: { json: { order: 42 }, contentType: 'application/json' },
      failedAt: '2026-04-05T17:31:00.000Z',
      dedupeKey: 'https://shop.example/orders A234-1234-1234',
      metadata: { id: event.id, source: event.source, comexampleextension: 'value' },
      failure: { name: 'CloudEvent', code: 'E1' },
    })
  })

  it('are stored in binary mode, with the bytes of the body', async () => {
    const headers = {
      'ce-specversion': '1.0',
      'ce-id': '"a b"',
      'ce-source': '/orders',
      'ce-type': 'order.failed',
      'ce-queue': 'orders',
      'ce-errormessage': 'Euro %E2%82%AC and 100%',
      'ce-errorstatus': '503',
    }
    const { status, body } = await post('<order/>', { type: 'text/xml', headers })
    expect(status).toBe(201)
    const letter = await (await server.client()).getLetter({ id: body['id'] as string })
    expect(letter).toMatchObject({
      queue: 'orders',
      payload: { text: '<order/>', contentType: 'text/xml' },
      failure: { message: 'Euro € and 100%', status: 503 },
      dedupeKey: '/orders a b',
    })
  })

  it.each([
    ['text', { datacontenttype: 'text/plain', data: 'hi' }, { text: 'hi' }],
    ['a string', { data: 'hi' }, { json: 'hi' }],
    ['bytes', { datacontenttype: 'image/png', data_base64: 'AP8=' }, { base64: 'AP8=' }],
    ['nothing', {}, { json: null }],
  ])('can have %s as data', async (_, data, payload) => {
    const sent = { type: 'application/cloudevents+json' }
    const { body } = await post(JSON.stringify({ ...event, ...data }), sent)
    const letter = await (await server.client()).getLetter({ id: body['id'] as string })
    expect(letter.payload).toMatchObject(payload)
  })

  it.each([
    ['another version', { specversion: '0.3' }, /specversion/],
    ['no id', { id: '' }, /has no id/],
    ['two kinds of data', { data: 1, data_base64: 'AP8=' }, /data and data_base64/],
    ['a wrong attribute name', { My_Name: 'x' }, /"My_Name"/],
    ['an object as attribute', { ext: {} }, /"ext"/],
    ['no time', { time: 'yesterday' }, /failedAt/],
  ])('are rejected with %s', async (_, wrong, detail) => {
    const sent = { type: 'application/cloudevents+json' }
    const { status, body } = await post(JSON.stringify({ ...event, ...wrong }), sent)
    expect(status).toBe(400)
    expect(body['detail']).toMatch(detail)
  })
})

describe('many failures as lines', () => {
  const lines = { type: 'application/x-ndjson' }
  const line = (n: number): string => JSON.stringify({ queue: 'a', json: n, error })

  it('stores the good lines, and answers each line in order', async () => {
    const text = [line(1), '{', '', '{"queue":"a"}', line(4)].join('\n')
    const { status, lines: results } = await post(text, lines)
    expect(status).toBe(200)
    expect(results).toMatchObject([
      { line: 1, queue: 'a' },
      { line: 2, problem: { code: 'INVALID_INPUT', detail: 'line 2 is not valid JSON in UTF-8' } },
      { line: 4, problem: { code: 'INVALID_INPUT' } },
      { line: 5, queue: 'a' },
    ])
    expect((await server.dlq.find()).items).toHaveLength(2)
  })

  it('answers with 429 for the lines that do not fit', async () => {
    const text = Array.from({ length: 1002 }, (_, n) => line(n)).join('\n')
    const { lines: results } = await post(text, lines)
    expect(results.filter((one) => 'problem' in one)).toMatchObject([
      { problem: { status: 429 } },
      { problem: { status: 429 } },
    ])
  })

  it('skips a line that is too long', async () => {
    const long = JSON.stringify({ queue: 'a', text: 'x'.repeat(11 * 1024 * 1024), error })
    const { lines: results } = await post([line(1), long, line(3)].join('\n'), lines)
    expect(results).toMatchObject([{ line: 1 }, { problem: { code: 'TOO_LARGE' } }, { line: 3 }])
  })

  it('stores lines as they come: the client may send and read at the same time', async () => {
    const client = await server.client()
    const firstResult = Promise.withResolvers<void>()
    const lines = async function* (): AsyncGenerator<string> {
      for (let n = 1; n <= 256; n++) yield line(n)
      await firstResult.promise
      for (let n = 257; n <= 512; n++) yield line(n)
    }
    let read = 0
    for await (const result of client.captureMany({}, { lines: lines() })) {
      read += 1
      expect(result).toMatchObject({ line: read, queue: 'a' })
      firstResult.resolve()
    }
    expect(read).toBe(512)
  })

  it('keeps the lines before the end of the connection', async () => {
    const token = await server.token()
    const socket = connect(Number(new URL(server.url).port), '127.0.0.1')
    const batch = Array.from({ length: 256 }, (_, n) => line(n)).join('\n') + '\n'
    socket.write(
      `POST /api/capture HTTP/1.1\r\nhost: x\r\nauthorization: Bearer ${token}\r\n` +
        'content-type: application/x-ndjson\r\ncontent-length: 1000000\r\n\r\n',
    )
    socket.write(batch)
    await waitFor(async () => expect((await server.dlq.stats()).size).toBe(256))
    socket.destroy()
  })

  it('keeps the dedupeKeys of tenants apart', async () => {
    const acme = await server.client({ tenants: ['acme'] })
    const umbrella = await server.client({ tenants: ['umbrella'] })
    const failure = { queue: 'a', error, dedupeKey: 'order-1' }
    const first = await acme.capture(failure)
    expect(await umbrella.capture(failure)).toMatchObject({ occurrences: 1 })
    expect(await acme.capture(failure)).toEqual({ ...first, occurrences: 2 })
    const { items } = await server.dlq.find({ queue: 'a', order: 'oldest' })
    expect(items).toMatchObject([
      { tenant: 'acme', dedupeKey: 'acme/order-1', occurrences: 2 },
      { tenant: 'umbrella', dedupeKey: 'umbrella/order-1', occurrences: 1 },
    ])
  })

  it('bounds each line by the scope of the token', async () => {
    const client = await server.client({ queues: ['b'] })
    const results = []
    const mixed = [line(1), JSON.stringify({ queue: 'b', error })]
    for await (const result of client.captureMany({}, { lines: mixed })) results.push(result)
    expect(results).toMatchObject([{ problem: { code: 'FORBIDDEN' } }, { queue: 'b' }])
  })
})
