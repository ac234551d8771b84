import { afterEach, describe, expect, it } from 'vitest'
import type { ServerSettings } from '../../../src/config/server.ts'
import { callerOf } from '../../../src/server/tokens.ts'
import { aServer, type TestServer } from '../a-server.ts'
import { Browser } from './a-browser.ts'

let server: TestServer

afterEach(async () => {
  await server.close()
})

/** The names of the cookies after a sign-in, and whether the session works. */
async function signIn(
  settings: ServerSettings,
  headers: Record<string, string>,
): Promise<[string[], number]> {
  server = await aServer({}, settings)
  const browser = new Browser()
  const url = `${server.url}/api/session`
  const code = server.codes.create(callerOf({ name: 'mia', role: 'viewer' }))
  await browser.send(url, 'POST', { code }, headers)
  const names = [...browser.attributes].map(
    ([name, attributes]) => `${name}${/; Secure/.test(attributes) ? ' secure' : ''}`,
  )
  return [names, (await browser.fetch(url, { headers })).status]
}

const https = { 'x-forwarded-proto': 'https' }

describe('the session cookie', () => {
  it.each<[string, ServerSettings, Record<string, string>, string]>([
    ['over http', {}, {}, 'redrive'],
    [
      'with a public https address',
      { publicUrl: 'https://a.example' },
      {},
      '__Host-redrive secure',
    ],
    ['with a public http address', { publicUrl: 'http://127.0.0.1:1' }, {}, 'redrive'],
    [
      'behind a trusted proxy with https',
      { trustedProxies: ['127.0.0.1'] },
      https,
      '__Host-redrive secure',
    ],
    ['behind a proxy that is not trusted', {}, https, 'redrive'],
  ])('%s is %s', async (_, settings, headers, expected) => {
    expect(await signIn(settings, headers)).toEqual([[expected], 200])
  })

  it('without the prefix is not accepted by a server with https', async () => {
    server = await aServer({}, { publicUrl: 'https://a.example' })
    const browser = new Browser()
    const code = server.codes.create(callerOf({ name: 'mia', role: 'viewer' }))
    await browser.send(`${server.url}/api/session`, 'POST', { code })
    const [secret] = [...browser.cookies.values()]
    const headers = { cookie: `redrive=${secret}` }
    expect((await fetch(`${server.url}/api/session`, { headers })).status).toBe(401)
  })

  it('is accepted from the public address, and from no other one', async () => {
    server = await aServer({}, { publicUrl: 'https://a.example' })
    const browser = new Browser()
    const url = `${server.url}/api/session`
    const code = server.codes.create(callerOf({ name: 'mia', role: 'viewer' }))
    await browser.send(url, 'POST', { code }, { origin: 'https://a.example' })
    const end = (origin: string): Promise<Response> =>
      browser.send(url, 'DELETE', undefined, { origin })
    for (const other of ['http://a.example', 'https://b.a.example', 'https://a.example.evil'])
      expect((await end(other)).status).toBe(403)
    expect((await end('https://a.example')).status).toBe(200)
  })
})
