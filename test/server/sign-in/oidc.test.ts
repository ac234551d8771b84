import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import type { OidcSettings } from '../../../src/config/server.ts'
import { aServer, type TestServer } from '../a-server.ts'
import { Browser } from './a-browser.ts'
import { aProvider, clientId, clientSecret, Front, signInAt } from './a-provider.ts'

const people = {
  mia: { email: 'mia@example.com', email_verified: true, role: 'admin' },
  bob: {
    email: 'bob@example.com',
    email_verified: true,
    groups: ['staff', 'dlq'],
    queues: ['mail'],
  },
  eve: { email: 'eve@example.com', email_verified: true },
  max: { email: 'max@example.com', email_verified: false, role: 'viewer' },
  amy: { email: 'amy@example.com.evil.example', email_verified: true, role: 'viewer' },
}

let front: Front
let provider: Front
let server: TestServer
let browser: Browser
let callback: string

async function start(settings: Partial<OidcSettings> = {}): Promise<void> {
  await server?.close()
  const oidc = { issuer: provider.url, clientId, clientSecret, ...settings }
  server = await aServer({}, { publicUrl: front.url, oidc })
  front.listener = (request, response) => server.app.routing(request, response)
}

beforeEach(async () => {
  // The provider says so much about its development mode.
  vi.spyOn(console, 'warn').mockImplementation(() => undefined)
  vi.spyOn(console, 'info').mockImplementation(() => undefined)
  front = await Front.listen()
  callback = `${front.url}/login/oidc/callback`
  provider = await aProvider(callback, people)
  browser = new Browser()
  await start()
})

afterEach(async () => {
  vi.useRealTimers()
  vi.restoreAllMocks()
  await server.close()
  await front.close()
  await provider.close()
})

/** Begins a login. */
async function begin(): Promise<URL> {
  const response = await browser.fetch(`${front.url}/login/oidc`)
  expect(response.status).toBe(302)
  return new URL(response.headers.get('location')!)
}

/** The address that the provider sends the browser back to. */
async function comeBack(login: string, from?: URL): Promise<URL> {
  return signInAt(browser, from ?? (await begin()), login, callback)
}

async function whoAmI(): Promise<unknown> {
  const response = await browser.fetch(`${front.url}/api/session`)
  return response.status === 200 ? response.json() : response.status
}

async function failure(response: Response): Promise<[status: number, text: string]> {
  expect(response.headers.get('content-type')).toContain('text/html')
  return [response.status, await response.text()]
}

describe('a sign-in at an OpenID Connect provider', () => {
  it('opens a session, and ends at the start page', async () => {
    const response = await browser.fetch(await comeBack('mia'))
    expect([response.status, response.headers.get('location')]).toEqual([302, '/'])
    expect(await whoAmI()).toMatchObject({
      name: 'mia@example.com',
      role: 'admin',
      signedInWith: 'oidc',
    })
    const { items } = await server.dlq.audit({ action: 'sign-in', outcome: 'done' })
    expect(items).toMatchObject([
      { actor: 'mia@example.com', via: 'http', after: { method: 'oidc', role: 'admin' } },
    ])
    expect(server.errors).toEqual([])
  })

  it('asks with PKCE, state and nonce, and ends at the start page whatever it is given', async () => {
    const response = await browser.fetch(`${front.url}/login/oidc?returnTo=https://evil.example`)
    const url = new URL(response.headers.get('location')!)
    expect(url.origin).toBe(provider.url)
    expect(Object.fromEntries(url.searchParams)).toMatchObject({
      redirect_uri: callback,
      response_type: 'code',
      scope: 'openid profile email',
      code_challenge_method: 'S256',
      state: expect.stringMatching(/.{20}/) as string,
      nonce: expect.stringMatching(/.{20}/) as string,
      code_challenge: expect.stringMatching(/.{20}/) as string,
    })
    const back = await comeBack('mia', url)
    back.searchParams.set('returnTo', 'https://evil.example')
    const end = await browser.fetch(back)
    expect([end.status, end.headers.get('location')]).toEqual([302, '/'])
  })

  it('gives roles by the values of a claim, and a scope by another one', async () => {
    await start({
      claims: { role: 'groups', queues: 'queues', name: 'sub' },
      roles: { operator: ['dlq'], admin: ['dlq-admins'] },
    })
    await browser.fetch(await comeBack('bob'))
    expect(await whoAmI()).toMatchObject({ name: 'bob', role: 'operator', queues: ['mail'] })
  })

  it('rejects somebody without a role, and says why', async () => {
    const [status, text] = await failure(await browser.fetch(await comeBack('eve')))
    expect(status).toBe(403)
    expect(text).toContain('eve@example.com has no role in Redrive')
    expect(await whoAmI()).toBe(401)
    const { items } = await server.dlq.audit({ action: 'sign-in' })
    expect(items).toMatchObject([{ outcome: 'denied', code: 'FORBIDDEN' }])
  })

  it.each([
    ['mia', 302],
    ['max', 403],
    ['amy', 403],
  ])('accepts verified addresses of the allowed domains only: %s %d', async (login, status) => {
    await start({ emailDomains: ['example.com'] })
    expect((await browser.fetch(await comeBack(login))).status).toBe(status)
  })

  it('rejects a wrong state', async () => {
    const url = await comeBack('mia')
    url.searchParams.set('state', 'x'.repeat(43))
    const [status, text] = await failure(await browser.fetch(url))
    expect([status, text]).toEqual([401, expect.stringContaining('has not begun the sign-in')])
    expect(await whoAmI()).toBe(401)
  })

  it('rejects a callback without a state', async () => {
    const url = await comeBack('mia')
    url.searchParams.delete('state')
    expect((await browser.fetch(url)).status).toBe(401)
  })

  it('rejects the callback of another browser, such as that of an attacker', async () => {
    const url = await comeBack('mia')
    browser = new Browser()
    expect((await browser.fetch(url)).status).toBe(401)
    await begin()
    expect((await browser.fetch(url)).status).toBe(401)
    expect(await whoAmI()).toBe(401)
  })

  it('rejects an ID token with another nonce', async () => {
    const url = await begin()
    url.searchParams.set('nonce', 'x'.repeat(43))
    const [status, text] = await failure(await browser.fetch(await comeBack('mia', url)))
    expect([status, text]).toEqual([401, expect.stringContaining('does not belong to this')])
    expect(await whoAmI()).toBe(401)
  })

  it('rejects a code that was obtained with another PKCE challenge', async () => {
    const url = await begin()
    url.searchParams.set('code_challenge', 'x'.repeat(43))
    expect((await browser.fetch(await comeBack('mia', url))).status).toBe(401)
  })

  it('rejects a callback that is sent again', async () => {
    const url = await comeBack('mia')
    const cookies = new Map(browser.cookies)
    expect((await browser.fetch(url)).status).toBe(302)
    // The browser has no cookie of the login any more.
    expect((await browser.fetch(url)).status).toBe(401)
    // Whoever has kept the cookie has a code that is used up.
    browser = new Browser()
    for (const [key, value] of cookies) browser.cookies.set(key, value)
    const [status, text] = await failure(await browser.fetch(url))
    expect([status, text]).toEqual([401, expect.stringContaining('valid once')])
    expect(await whoAmI()).toBe(401)
  })

  it('rejects a code that has expired', async () => {
    const url = await comeBack('mia')
    vi.useFakeTimers({ toFake: ['Date'], now: Date.now() + 600_000 })
    const [status, text] = await failure(await browser.fetch(url))
    expect([status, text]).toEqual([401, expect.stringContaining('for a short time')])
  })

  it('rejects a login that was begun more than 10 minutes ago', async () => {
    const url = await comeBack('mia')
    await server.clock.advance(600_001)
    expect((await browser.fetch(url)).status).toBe(401)
  })

  it('rejects a cookie that the server has not made', async () => {
    const url = await comeBack('mia')
    const key = [...browser.cookies.keys()].find((one) => one.endsWith('redrive-login'))!
    for (const wrong of ['x', `${browser.cookies.get(key)}x`, 'a.b.c.d.e', '']) {
      browser.cookies.set(key, wrong)
      expect((await browser.fetch(url)).status).toBe(401)
    }
  })

  it('shows a refusal of the provider as text, not as markup', async () => {
    const { searchParams } = await begin()
    const url = new URL(callback)
    url.search = String(
      new URLSearchParams({
        error: '<script>alert(1)</script>',
        state: searchParams.get('state')!,
        iss: provider.url,
      }),
    )
    const [status, text] = await failure(await browser.fetch(url))
    expect(status).toBe(401)
    expect(text).not.toContain('<script>')
  })

  it('limits failed sign-ins by address', async () => {
    const statuses = new Set<number>()
    for (let n = 0; n < 40; n++) statuses.add((await browser.fetch(callback)).status)
    expect([...statuses]).toEqual([401, 429])
    // Others, and the same address with a valid sign-in, are not affected.
    expect((await browser.fetch(await comeBack('mia'))).status).toBe(302)
  })
})

describe('GET /api/session/methods', () => {
  it('says whether there is a provider', async () => {
    const methods = async (): Promise<unknown> =>
      (await fetch(`${server.url}/api/session/methods`)).json()
    expect(await methods()).toEqual({ oidc: true })
    await server.close()
    server = await aServer()
    expect(await methods()).toEqual({ oidc: false })
    expect((await fetch(`${server.url}/login/oidc`)).status).toBe(404)
  })
})

describe('an OpenID Connect provider that is down', () => {
  it('does not keep the server from starting, and is found when it is back', async () => {
    provider.isDown = true
    await start()
    expect((await browser.fetch(`${front.url}/livez`)).status).toBe(200)
    const response = await browser.fetch(`${front.url}/login/oidc`)
    expect(response.headers.get('retry-after')).toBe('1')
    const [status, text] = await failure(response)
    expect([status, text]).toEqual([503, expect.stringContaining('cannot be reached')])
    expect(server.errors).toMatchObject([{ code: 'IDENTITY_PROVIDER_UNAVAILABLE' }])
    provider.isDown = false
    expect((await browser.fetch(await comeBack('mia'))).status).toBe(302)
  })

  it('fails the sign-in that is under way, which works when it is back', async () => {
    const url = await comeBack('mia')
    provider.isDown = true
    const [status, text] = await failure(await browser.fetch(url))
    expect([status, text]).toEqual([503, expect.stringContaining('cannot be reached')])
    expect(await whoAmI()).toBe(401)
    provider.isDown = false
    expect((await browser.fetch(await comeBack('mia'))).status).toBe(302)
  })

  it('does not affect sessions and tokens', async () => {
    await browser.fetch(await comeBack('mia'))
    provider.isDown = true
    expect(await whoAmI()).toMatchObject({ role: 'admin' })
    expect(await (await server.client()).getCaller()).toMatchObject({ name: 'mia' })
  })
})
