import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { createClient } from '../../../src/api/client.ts'
import { endpointNames, endpointOf, type EndpointName } from '../../../src/api/endpoints.ts'
import { states } from '../../../src/letter/letter.ts'
import { callerOf } from '../../../src/server/tokens.ts'
import { aServer, type TestServer } from '../a-server.ts'
import { examples, type Example } from '../examples.ts'
import { Browser } from './a-browser.ts'

let server: TestServer
let browser: Browser

beforeAll(async () => {
  // All requests belong to one session, and the clock stands still.
  server = await aServer({}, { rateLimit: { perSecond: 1, burst: 100_000 } })
  browser = new Browser()
  const code = server.codes.create(callerOf({ name: 'mia', role: 'admin' }))
  await browser.send(`${server.url}/api/session`, 'POST', { code })
})

afterAll(async () => {
  await server.close()
  expect(server.errors).toEqual([])
})

const isPublic = (name: EndpointName): boolean => endpointOf(name).permission === 'public'
const reading = endpointNames.filter((name) => endpointOf(name).method === 'GET')
const changing = endpointNames.filter((name) => !reading.includes(name) && !isPublic(name))

/** Sends the request of a client with other headers. */
async function send(name: EndpointName, headers: Record<string, string>): Promise<number> {
  const example: Example = examples[name]
  const input = await example.input(server)
  const lines = example.lines ? { lines: await example.lines(server) } : {}
  const before = await snapshot()
  let status = 0
  const client = createClient({
    url: server.url,
    fetch: async (url, init) => {
      const { 'x-redrive-csrf': _, ...own } = init!.headers as Record<string, string>
      const response = await browser.fetch(url as string, {
        ...init,
        headers: { ...own, ...headers },
      })
      status = response.status
      return response
    },
  })
  const call = client[name] as (input: object, options: object) => unknown
  try {
    const result = call(input, lines)
    const { stream } = endpointOf(name)
    if (stream) await readStream(result as AsyncIterable<{ type?: string }>)
    else await result
  } catch {
    // The status says it.
  }
  if (status >= 400 || endpointOf(name).method === 'GET') expect(await snapshot()).toEqual(before)
  return status
}

/** A stream of events has no end: it is read up to the one that says that it is ready. */
async function readStream(items: AsyncIterable<{ type?: string }>): Promise<void> {
  for await (const { type } of items) if (type === 'ready') return
}

/** All letters and records, except the log and the times of the last use. */
async function snapshot(): Promise<unknown> {
  const { items } = await server.dlq.find({ state: [...states], limit: 1000 })
  const kinds = (await server.store.records.kinds()).filter((kind) => !kind.startsWith('audit'))
  const records = await Promise.all(kinds.map((kind) => server.store.records.list(kind)))
  return { letters: items.map(({ id, version }) => [id, version]), records: records.flat() }
}

describe.each(changing)('%s', (name) => {
  it.each([
    ['without the CSRF header', {}],
    ['with another value of it', { 'x-redrive-csrf': '0' }],
    ['from another origin', { 'x-redrive-csrf': '1', origin: 'https://evil.example' }],
    ['from a page of another site', { 'x-redrive-csrf': '1', 'sec-fetch-site': 'cross-site' }],
    ['from a page of the same domain', { 'x-redrive-csrf': '1', 'sec-fetch-site': 'same-site' }],
    ['from a sandboxed page', { 'x-redrive-csrf': '1', origin: 'null' }],
  ] as [string, Record<string, string>][])('changes nothing %s', async (_, headers) => {
    expect(await send(name, headers)).toBe(403)
  })
})

describe('a session cookie', () => {
  it('is enough with the header, from the same origin', async () => {
    const headers = {
      'x-redrive-csrf': '1',
      origin: server.url,
      'sec-fetch-site': 'same-origin',
    }
    expect(await send('noteLetter', headers)).toBe(200)
    expect(await send('pauseQueue', headers)).toBe(200)
  })

  it('is not needed by a caller with a token, who needs no header either', async () => {
    const { id } = await server.dlq.enqueue({ type: 'orders', payload: {} }, new Error('x'))
    const response = await fetch(`${server.url}/api/letters/${id}/park`, {
      method: 'POST',
      headers: { authorization: `Bearer ${await server.token()}`, origin: 'https://evil.example' },
    })
    expect(response.status).toBe(200)
  })
})

describe.each(reading)('%s', (name) => {
  it('changes nothing, so that it needs no header', async () => {
    expect(await send(name, { origin: 'https://evil.example' })).toBeLessThan(500)
  })
})

describe('a preflight request', () => {
  it('is never allowed', async () => {
    const response = await fetch(`${server.url}/api/session`, {
      method: 'OPTIONS',
      headers: {
        origin: 'https://evil.example',
        'access-control-request-method': 'POST',
        'access-control-request-headers': 'x-redrive-csrf',
      },
    })
    expect(response.status).toBe(404)
    expect([...response.headers.keys()].filter((key) => key.startsWith('access-control'))).toEqual(
      [],
    )
  })
})
