import { beforeEach, describe, expect, it } from 'vitest'
import { createClient } from '../../../src/api/client.ts'
import { nextTurn } from '../../../src/clock/clock.ts'
import { callerOf } from '../../../src/server/tokens.ts'
import { withServerInEachTest, type TestServer } from '../a-server.ts'
import { Browser } from './a-browser.ts'
import { waitFor } from '../../wait-for.ts'

let server: TestServer
let browser: Browser

withServerInEachTest((started) => (server = started))
beforeEach(() => (browser = new Browser()))

const hourMs = 3_600_000
const admin = callerOf({ name: 'admin', role: 'admin' })

async function signIn(body: object, by = browser): Promise<Response> {
  return by.send(`${server.url}/api/session`, 'POST', body)
}

async function whoAmI(by = browser): Promise<unknown> {
  const response = await by.fetch(`${server.url}/api/session`)
  return response.status === 200 ? response.json() : response.status
}

describe('a session', () => {
  it('is opened with a one-time code, which then is used up', async () => {
    const code = server.codes.create(admin)
    const response = await signIn({ code })
    expect(response.status).toBe(201)
    const who = await response.json()
    const expiresAt = new Date(server.clock.now() + 12 * hourMs).toISOString()
    expect(who).toMatchObject({ name: 'admin', role: 'admin', signedInWith: 'code', expiresAt })
    expect(await whoAmI()).toEqual(who)
    expect((await signIn({ code }, new Browser())).status).toBe(401)
  })

  it('is opened with a token, with its rights and its scope', async () => {
    const token = await server.token({ name: 'bob', role: 'operator', queues: ['orders'] })
    const response = await signIn({ token })
    expect(await response.json()).toMatchObject({
      name: 'bob',
      role: 'operator',
      queues: ['orders'],
      signedInWith: 'token',
    })
    expect((await browser.fetch(`${server.url}/api/letters`)).status).toBe(200)
    expect((await browser.fetch(`${server.url}/api/tokens`)).status).toBe(403)
  })

  it('has a cookie that scripts and other sites cannot use', async () => {
    await signIn({ code: server.codes.create(admin) })
    const attributes = browser.attributes.get('redrive')
    for (const one of ['HttpOnly', 'SameSite=Strict', 'Path=/', `Max-Age=${7 * 24 * 3600}`])
      expect(attributes).toContain(one)
    expect(attributes).not.toContain('Secure')
  })

  it('is in the store under the hash of its secret', async () => {
    await signIn({ code: server.codes.create(admin) })
    const [secret] = [...browser.cookies.values()]
    const records = await server.store.records.list('session')
    expect(records).toHaveLength(1)
    expect(JSON.stringify(records)).not.toContain(secret)
  })

  it('ends 12 hours after its last request', async () => {
    await signIn({ code: server.codes.create(admin) })
    await server.clock.advance(11 * hourMs)
    expect(await whoAmI()).toMatchObject({ name: 'admin' })
    await server.clock.advance(12 * hourMs - 1)
    expect(await whoAmI()).toMatchObject({ name: 'admin' })
    await server.clock.advance(12 * hourMs)
    expect(await whoAmI()).toBe(401)
  })

  it('is not extended by a page that only listens to events', async () => {
    const signedInMs = server.clock.now()
    await signIn({ code: server.codes.create(admin) })
    const events = await browser.fetch(`${server.url}/api/events`)
    expect(events.status).toBe(200)
    let text = ''
    const ended = (async () => {
      for await (const part of events.body!.pipeThrough(new TextDecoderStream())) text += part
    })()
    await waitFor(() => expect(text).toContain('event: ready'))
    // The stream checks its session every few seconds; between the checks, the clock jumps.
    for (const hours of [11, 13]) {
      server.clock.set(signedInMs + hours * hourMs)
      await server.clock.advance(60_000)
      await nextTurn()
    }
    await ended
    expect(await whoAmI()).toBe(401)
  })

  it('ends 7 days after the sign-in, however often it is used', async () => {
    await signIn({ code: server.codes.create(admin) })
    for (let hours = 0; hours < 7 * 24 - 1; hours += 11) {
      expect(await whoAmI()).toMatchObject({ name: 'admin' })
      await server.clock.advance(Math.min(11, 7 * 24 - hours) * hourMs)
    }
    expect(await whoAmI()).toBe(401)
  })

  it('ends when its token is revoked', async () => {
    const { token, info } = await server.tokens.create({
      name: 'bob',
      role: 'viewer',
      createdBy: 'mia',
    })
    await signIn({ token })
    expect(await whoAmI()).toMatchObject({ name: 'bob' })
    await server.tokens.revoke(info.id)
    expect(await whoAmI()).toBe(401)
  })

  it('ends when its token gets a new secret, after the overlap', async () => {
    const { token, info } = await server.tokens.create({
      name: 'bob',
      role: 'viewer',
      createdBy: 'mia',
    })
    await signIn({ token })
    await server.tokens.rotate(info.id, hourMs)
    expect(await whoAmI()).toMatchObject({ name: 'bob' })
    await server.clock.advance(hourMs)
    expect(await whoAmI()).toBe(401)
  })

  it('ends when its token expires', async () => {
    const expiresAt = new Date(server.clock.now() + hourMs).toISOString()
    await signIn({ token: await server.token({ expiresAt }) })
    expect(await whoAmI()).toMatchObject({ expiresAt })
    await server.clock.advance(hourMs)
    expect(await whoAmI()).toBe(401)
  })

  it('ends with the server, if it was opened with the generated token', async () => {
    await signIn({ token: server.tokens.generate() })
    expect(await whoAmI()).toMatchObject({ name: 'admin', role: 'admin' })
    server.tokens.generate()
    expect(await whoAmI()).toBe(401)
  })

  it('ends with a sign-out, which removes the cookie', async () => {
    await signIn({ code: server.codes.create(admin) })
    const stolen = new Browser()
    for (const [key, value] of browser.cookies) stolen.cookies.set(key, value)
    const response = await browser.send(`${server.url}/api/session`, 'DELETE')
    expect(await response.json()).toEqual({ ended: true })
    expect(browser.cookies.size).toBe(0)
    expect(await whoAmI(stolen)).toBe(401)
    expect(await server.store.records.list('session')).toEqual([])
  })

  it('is removed from the store some time after its end', async () => {
    await signIn({ code: server.codes.create(admin) })
    await server.clock.advance(13 * hourMs)
    await signIn({ code: server.codes.create(admin) }, new Browser())
    expect(await server.store.records.list('session')).toHaveLength(1)
  })

  it('is of no use with a wrong token, which does not fall back to the cookie', async () => {
    await signIn({ code: server.codes.create(admin) })
    const headers = { authorization: `Bearer rdr_${'a'.repeat(12)}_${'b'.repeat(43)}` }
    expect((await browser.fetch(`${server.url}/api/session`, { headers })).status).toBe(401)
  })

  it('works with the client of a browser', async () => {
    await signIn({ code: server.codes.create(admin) })
    const { id } = await server.dlq.enqueue({ type: 'orders', payload: {} }, new Error('x'))
    const client = createClient({
      url: server.url,
      fetch: (...args) => browser.fetch(...(args as [string])),
    })
    expect(await client.parkLetter({ id })).toMatchObject({ state: 'parked' })
    expect(await client.endSession()).toEqual({ ended: true })
  })
})

describe('POST /api/session', () => {
  it.each([
    [{}, 400],
    [{ code: 'x', token: 'y' }, 400],
    [{ code: '' }, 400],
    [{ code: 5 }, 400],
    [{ password: 'x' }, 400],
    [{ code: 'x'.repeat(43) }, 401],
    [{ token: 'x'.repeat(43) }, 401],
    [{ token: `rdr_${'a'.repeat(12)}_${'b'.repeat(43)}` }, 401],
    [{ token: 'x'.repeat(20_000) }, 413],
  ])('rejects %j: %d', async (body, status) => {
    const response = await signIn(body)
    expect(response.status).toBe(status)
    expect(response.headers.getSetCookie()).toEqual([])
  })

  it('has no Idempotency-Key', async () => {
    const body = { code: server.codes.create(admin) }
    const headers = { 'idempotency-key': 'one' }
    const response = await browser.send(`${server.url}/api/session`, 'POST', body, headers)
    expect(response.status).toBe(400)
  })

  it('cannot be sent by a page of another site', async () => {
    const body = { code: server.codes.create(admin) }
    for (const headers of [
      { origin: 'https://evil.example' },
      { 'sec-fetch-site': 'cross-site' },
      { 'sec-fetch-site': 'same-site' },
      { origin: 'null' },
    ]) {
      const response = await browser.send(`${server.url}/api/session`, 'POST', body, headers)
      expect(response.status).toBe(403)
    }
    expect((await signIn(body)).status).toBe(201)
  })
})

describe('DELETE /api/session', () => {
  it('has nothing to end for a caller with a token', async () => {
    expect(await (await server.client()).endSession()).toEqual({ ended: false })
  })
})

describe('the audit log', () => {
  it('has every sign-in and sign-out', async () => {
    await signIn({ token: await server.token({ name: 'bob', role: 'viewer' }) })
    await browser.send(`${server.url}/api/session`, 'DELETE')
    const { items } = await server.dlq.audit({
      action: ['sign-in', 'sign-out'],
      outcome: 'done',
      order: 'oldest',
    })
    expect(items).toMatchObject([
      { actor: 'bob', via: 'http', action: 'sign-in', after: { method: 'token', role: 'viewer' } },
      { actor: 'bob', via: 'http', action: 'sign-out' },
    ])
    expect(items[0]?.what).toEqual(items[1]?.what)
    expect(items[0]?.what.kind).toBe('session')
  })

  it('has failed sign-ins, once a minute', async () => {
    for (let n = 0; n < 20; n++) await signIn({ code: 'wrong' })
    await server.clock.advance(60_000)
    await signIn({ code: 'wrong' })
    const { items } = await server.dlq.audit({ action: 'sign-in', order: 'oldest' })
    expect(items).toMatchObject([
      { actor: 'unauthenticated', outcome: 'denied', code: 'UNAUTHENTICATED' },
      { actor: 'unauthenticated', outcome: 'denied', code: 'UNAUTHENTICATED', repeats: 19 },
    ])
  })
})
