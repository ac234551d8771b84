import { exportJWK, generateKeyPair, SignJWT, type CryptoKey, type JWK } from 'jose'
import { afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import type { JwtSettings } from '../../../src/config/server.ts'
import { aServer, type TestServer } from '../a-server.ts'
import { Browser } from './a-browser.ts'
import { Front } from './a-provider.ts'

type Key = CryptoKey
/** Undefined: the claim is left out. */
type Given = Record<string, unknown>

let own: { privateKey: Key; jwk: JWK }
let other: { privateKey: Key; jwk: JWK }
let elliptic: { privateKey: Key; jwk: JWK }
let issuer: Front
let server: TestServer

async function aKey(alg: string): Promise<{ privateKey: Key; jwk: JWK }> {
  const { privateKey, publicKey } = await generateKeyPair(alg)
  return { privateKey, jwk: { ...(await exportJWK(publicKey)), kid: alg, alg } }
}

beforeAll(async () => {
  own = await aKey('RS256')
  other = await aKey('RS256')
  elliptic = await aKey('ES256')
})

beforeEach(async () => {
  issuer = await Front.listen()
  issuer.listener = ({ url }, response) => {
    const documents: Record<string, unknown> = {
      '/.well-known/openid-configuration': { issuer: issuer.url, jwks_uri: `${issuer.url}/keys` },
      '/keys': { keys: [own.jwk, elliptic.jwk] },
      '/own-keys': { keys: [own.jwk] },
    }
    const document = documents[url!]
    response.statusCode = document ? 200 : 404
    response.end(JSON.stringify(document ?? {}))
  }
  await start()
})

afterEach(async () => {
  await server.close()
  await issuer.close()
})

async function start(settings: Partial<JwtSettings> = {}): Promise<void> {
  await server?.close()
  const jwt = { issuer: issuer.url, audience: 'redrive', ...settings }
  server = await aServer({}, { jwt })
}

const seconds = (): number => Math.floor(server.clock.now() / 1000)

function claimsOf(given: Given = {}): Given {
  const [iat, exp] = [seconds(), seconds() + 300]
  return { iss: issuer.url, aud: 'redrive', sub: 'ci', role: 'operator', iat, exp, ...given }
}

function sign(
  given: Given = {},
  { alg = 'RS256', key = own.privateKey }: { alg?: string; key?: Key } = {},
): Promise<string> {
  return new SignJWT(claimsOf(given)).setProtectedHeader({ alg, kid: alg }).sign(key)
}

async function whoIs(token: string): Promise<{ status: number; body: Record<string, unknown> }> {
  const headers = { authorization: `Bearer ${token}` }
  const response = await fetch(`${server.url}/api/session`, { headers })
  return { status: response.status, body: (await response.json()) as Record<string, unknown> }
}

const encode = (value: object): string => Buffer.from(JSON.stringify(value)).toString('base64url')

describe('a JWT', () => {
  it('gives the role that it has, until it expires', async () => {
    const token = await sign()
    const expiresAt = new Date((seconds() + 300) * 1000).toISOString()
    expect(await whoIs(token)).toMatchObject({
      status: 200,
      body: { name: 'ci', role: 'operator', signedInWith: 'jwt', expiresAt },
    })
    await server.clock.advance(300_000)
    // The clocks may differ by 5 seconds.
    expect((await whoIs(token)).status).toBe(200)
    await server.clock.advance(6000)
    expect((await whoIs(token)).status).toBe(401)
  })

  it('is verified with keys that are fetched once', async () => {
    const token = await sign()
    for (let n = 0; n < 5; n++) expect((await whoIs(token)).status).toBe(200)
    expect(issuer.paths).toEqual(['/.well-known/openid-configuration', '/keys'])
  })

  it('is verified with keys at a given address, without discovery', async () => {
    await start({ jwksUrl: `${issuer.url}/own-keys` })
    expect((await whoIs(await sign())).status).toBe(200)
    expect(issuer.paths).toEqual(['/own-keys'])
  })

  it('has roles, queues and tenants by the configured claims', async () => {
    await start({
      claims: {
        name: 'https://example.com/name',
        role: 'realm.roles',
        queues: 'queues',
        tenants: 'tenants',
      },
      roles: { viewer: ['staff'], admin: ['dlq-admins'] },
    })
    const name = { 'https://example.com/name': 'Mia' }
    const scope = { queues: ['orders', 'mail'], tenants: '*' }
    const admin = await sign({ ...name, ...scope, realm: { roles: ['staff', 'dlq-admins'] } })
    expect((await whoIs(admin)).body).toEqual(
      expect.objectContaining({ name: 'Mia', role: 'admin', queues: ['orders', 'mail'] }),
    )
    expect((await whoIs(admin)).body).not.toHaveProperty('tenants')
    // The names of roles have no meaning of their own then.
    const named = await sign({ ...name, ...scope, realm: { roles: ['admin', 'operator'] } })
    expect((await whoIs(named)).status).toBe(403)
  })

  it.each<[string, Given, string]>([
    ['no role', { role: undefined }, 'ci has no role in Redrive'],
    ['an unknown role', { role: 'boss' }, 'ci has no role in Redrive'],
    ['a role that is no string', { role: { admin: true } }, 'ci has no role in Redrive'],
    ['no name', { sub: undefined }, 'the claim sub'],
    ['a long name', { sub: 'x'.repeat(201) }, 'the claim sub'],
    ['no queues', { queues: undefined }, 'ci has no queues in Redrive'],
    ['an empty list of queues', { queues: [] }, 'ci has no queues in Redrive'],
    ['queues that are no strings', { queues: [1] }, 'ci has no queues in Redrive'],
  ])('is denied with %s', async (_, claims, detail) => {
    await start({ claims: { queues: 'queues' } })
    const { status, body } = await whoIs(await sign({ queues: ['orders'], ...claims }))
    expect([status, body['detail']]).toEqual([403, expect.stringContaining(detail)])
  })

  it.each<[string, () => Promise<string> | string]>([
    ['another issuer', () => sign({ iss: 'https://evil.example' })],
    ['another audience', () => sign({ aud: 'other' })],
    ['no audience', () => sign({ aud: undefined })],
    ['no expiry', () => sign({ exp: undefined })],
    ['a start in the future', () => sign({ nbf: seconds() + 60 })],
    ['the key of somebody else', () => sign({}, { key: other.privateKey })],
    [
      'an unknown key id',
      async () => {
        const header = { alg: 'RS256', kid: 'unknown' }
        return new SignJWT(claimsOf()).setProtectedHeader(header).sign(own.privateKey)
      },
    ],
    ['no signature', () => `${encode({ alg: 'none' })}.${encode(claimsOf())}.`],
    ['the algorithm none', () => `${encode({ alg: 'none' })}.${encode(claimsOf())}.x`],
    [
      'the public key as a shared secret',
      async () => {
        const secret = new TextEncoder().encode(JSON.stringify(own.jwk))
        const header = { alg: 'HS256', kid: 'RS256' }
        return new SignJWT(claimsOf()).setProtectedHeader(header).sign(secret)
      },
    ],
    [
      'changed claims',
      async () => {
        const [header, , signature] = (await sign()).split('.')
        return `${header}.${encode(claimsOf({ role: 'admin' }))}.${signature}`
      },
    ],
    [
      'claims that are no JSON',
      async () => {
        const [header, , signature] = (await sign()).split('.')
        return `${header}.bm8ganNvbg.${signature}`
      },
    ],
    [
      'its own key in the header',
      async () => {
        const header = { alg: 'RS256', jwk: other.jwk as Required<JWK>, kid: 'other' }
        return new SignJWT(claimsOf()).setProtectedHeader(header).sign(other.privateKey)
      },
    ],
  ])('is not valid with %s', async (_, make) => {
    expect((await whoIs(await make())).status).toBe(401)
  })

  it('is not valid with an algorithm that is not allowed', async () => {
    const token = await sign({}, { alg: 'ES256', key: elliptic.privateKey })
    expect((await whoIs(token)).status).toBe(200)
    await start({ algorithms: ['RS256'] })
    expect((await whoIs(token)).status).toBe(401)
  })

  it('opens a session that ends with it', async () => {
    const browser = new Browser()
    const url = `${server.url}/api/session`
    const response = await browser.send(url, 'POST', { token: await sign() })
    expect(await response.json()).toMatchObject({ name: 'ci', signedInWith: 'jwt' })
    await server.clock.advance(299_000)
    expect((await browser.fetch(url)).status).toBe(200)
    await server.clock.advance(1000)
    expect((await browser.fetch(url)).status).toBe(401)
  })

  it('is an unknown token for a server without an issuer', async () => {
    const token = await sign()
    await server.close()
    server = await aServer()
    expect((await whoIs(token)).status).toBe(401)
  })
})

describe('an issuer that is down', () => {
  it.each(['discovery', 'jwksUrl'])(
    'is a problem with status 503 until it is back: %s',
    async (by) => {
      if (by === 'jwksUrl') await start({ jwksUrl: `${issuer.url}/keys` })
      issuer.isDown = true
      const token = await sign()
      const headers = { authorization: `Bearer ${token}` }
      const response = await fetch(`${server.url}/api/session`, { headers })
      expect(response.headers.get('retry-after')).toBe('1')
      expect(await response.json()).toMatchObject({
        status: 503,
        code: 'IDENTITY_PROVIDER_UNAVAILABLE',
        retry: true,
      })
      expect(server.errors).toMatchObject([{ code: 'IDENTITY_PROVIDER_UNAVAILABLE' }])
      issuer.isDown = false
      expect((await whoIs(token)).status).toBe(200)
    },
  )

  it('does not affect API tokens', async () => {
    issuer.isDown = true
    expect(await (await server.client()).getCaller()).toMatchObject({ name: 'mia' })
  })

  it.each([
    ['no JSON', 'nothing'],
    [
      'another issuer',
      JSON.stringify({ issuer: 'https://evil.example', jwks_uri: 'https://e.e/' }),
    ],
    ['no keys', JSON.stringify({ issuer: 'x' })],
  ])('or that answers with %s is a problem with status 503', async (_, text) => {
    issuer.listener = (_request, response) => void response.end(text)
    expect((await whoIs(await sign())).status).toBe(503)
  })
})
