import { afterEach, describe, expect, it } from 'vitest'
import type { ServerSettings } from '../../../src/config/server.ts'
import { FailedAttempts } from '../../../src/server/sign-in/failed-attempts.ts'
import { RateLimiter } from '../../../src/server/sign-in/rate-limiter.ts'
import { callerOf } from '../../../src/server/tokens.ts'
import { fakeClock } from '../../../src/testing/index.ts'
import { aServer, type TestServer } from '../a-server.ts'
import { Browser } from './a-browser.ts'

let server: TestServer

afterEach(async () => {
  await server?.close()
})

const wrong = `rdr_${'a'.repeat(12)}_${'b'.repeat(43)}`

async function call(
  token: string,
  path = '/api/session',
  init: RequestInit = {},
): Promise<Response> {
  const headers = { authorization: `Bearer ${token}`, ...(init.headers as object) }
  return fetch(`${server.url}${path}`, { ...init, headers })
}

describe('failed attempts', () => {
  it('are limited for an address, which a valid token does not notice', async () => {
    server = await aServer()
    const valid = await server.token()
    for (let n = 0; n < 30; n++) expect((await call(wrong)).status).toBe(401)
    const response = await call(wrong)
    expect(response.headers.get('retry-after')).toBe('2')
    expect(await response.json()).toMatchObject({ status: 429, code: 'TOO_MANY_REQUESTS' })
    const body = JSON.stringify({ code: 'wrong' })
    const init = { method: 'POST', body, headers: { 'content-type': 'application/json' } }
    expect((await fetch(`${server.url}/api/session`, init)).status).toBe(429)
    expect((await call(valid)).status).toBe(200)
    await server.clock.advance(2000)
    expect((await call(wrong)).status).toBe(401)
    expect((await call(wrong)).status).toBe(429)
  })

  it('are counted in the audit log, also those above the limit', async () => {
    server = await aServer()
    for (let n = 0; n < 50; n++) await call(wrong)
    await server.clock.advance(60_000)
    await call(wrong)
    for (let n = 0; n < 30; n++) await call(wrong)
    const { items } = await server.dlq.audit({ outcome: 'denied', order: 'oldest' })
    const counts = items.map(({ code, repeats = 0 }) => [code, repeats])
    expect(counts).toEqual([
      ['UNAUTHENTICATED', 0],
      ['TOO_MANY_REQUESTS', 0],
      ['UNAUTHENTICATED', 29],
      ['TOO_MANY_REQUESTS', 19],
    ])
  })

  it('do not include requests without a token, or with the cookie of an old session', async () => {
    server = await aServer()
    const headers = { cookie: `redrive=${'x'.repeat(43)}` }
    for (let n = 0; n < 40; n++) {
      expect((await fetch(`${server.url}/api/session`)).status).toBe(401)
      expect((await fetch(`${server.url}/api/session`, { headers })).status).toBe(401)
    }
  })

  it('are counted by the address that a trusted proxy names, and no other one', async () => {
    const from = (address: string): Promise<Response> =>
      call(wrong, '/api/session', { headers: { 'x-forwarded-for': address } })
    server = await aServer({}, { trustedProxies: ['127.0.0.0/8'] })
    for (let n = 0; n < 30; n++) await from('192.0.2.1')
    expect((await from('192.0.2.1')).status).toBe(429)
    expect((await from('192.0.2.2')).status).toBe(401)
    await server.close()
    server = await aServer()
    for (let n = 0; n < 30; n++) await from(`192.0.2.${n}`)
    expect((await from('192.0.2.99')).status).toBe(429)
  })

  it('are limited in total, for somebody with many addresses', () => {
    const attempts = new FailedAttempts(fakeClock())
    for (let n = 0; n < 600; n++) attempts.count(`10.0.${n >> 8}.${n & 255}`)
    expect(() => attempts.count('10.9.9.9')).toThrow('too many requests')
  })

  it.each([
    [['2001:db8:1:2::1', '2001:db8:1:2:ffff::', '2001:db8:1:2:3:4:5:6'], true],
    [['2001:db8::1', '2001:db8:0:0:1::'], true],
    [['::ffff:192.0.2.1', '192.0.2.1'], true],
    [['2001:db8:1:2::1', '2001:db8:1:3::1'], false],
    [['192.0.2.1', '192.0.2.2'], false],
  ])('of %j share a limit: %s', (addresses, isShared) => {
    const attempts = new FailedAttempts(fakeClock())
    const [first, ...others] = addresses as [string, ...string[]]
    for (let n = 0; n < 30; n++) attempts.count(first)
    for (const address of others) {
      const count = (): void => attempts.count(address)
      if (isShared) expect(count).toThrow('too many')
      else expect(count).not.toThrow()
    }
  })
})

describe('the limit of a caller', () => {
  const limited: ServerSettings = { rateLimit: { perSecond: 2, burst: 3 } }

  it('is that of its token', async () => {
    server = await aServer({}, limited)
    const [one, other] = [await server.token(), await server.token()]
    for (let n = 0; n < 3; n++) expect((await call(one)).status).toBe(200)
    const response = await call(one)
    expect([response.status, response.headers.get('retry-after')]).toEqual([429, '1'])
    expect((await call(other)).status).toBe(200)
    await server.clock.advance(500)
    expect((await call(one)).status).toBe(200)
    expect((await call(one)).status).toBe(429)
  })

  it('does not hold for captures', async () => {
    server = await aServer({}, limited)
    const token = await server.token()
    const body = JSON.stringify({ queue: 'orders', json: {}, error: { message: 'x' } })
    const init = { method: 'POST', body, headers: { 'content-type': 'application/json' } }
    for (let n = 0; n < 20; n++) expect((await call(token, '/api/capture', init)).status).toBe(201)
  })

  it('is 400 requests at once for a session, and none for a token, by default', async () => {
    server = await aServer()
    const token = await server.token()
    const browser = new Browser()
    const code = server.codes.create(callerOf({ name: 'mia', role: 'viewer' }))
    await browser.send(`${server.url}/api/session`, 'POST', { code })
    for (let n = 0; n < 400; n++)
      expect((await browser.fetch(`${server.url}/api/session`)).status).toBe(200)
    expect((await browser.fetch(`${server.url}/api/session`)).status).toBe(429)
    for (let n = 0; n < 401; n++) expect((await call(token)).status).toBe(200)
  })
})

describe('RateLimiter', () => {
  it('keeps a bounded number of buckets', async () => {
    const clock = fakeClock()
    const limiter = new RateLimiter(clock, { perSecond: 1, burst: 1 })
    expect(limiter.take('first')).toBe(0)
    expect(limiter.take('first')).toBe(1000)
    for (let n = 0; n < 10_000; n++) limiter.take(`other ${n}`)
    expect(limiter.take('first')).toBe(0)
    await clock.advance(1000)
    expect(limiter.take('first')).toBe(0)
  })
})
