import { Webhook } from 'standardwebhooks'
import { afterEach, describe, expect, it } from 'vitest'
import { webhook } from '../../../src/observers/notify/webhook.ts'
import { alert, digest, raised } from './a-notification.ts'
import { aServer, closeServers } from './a-server.ts'

const key = (fill: string): string => `whsec_${Buffer.from(fill.repeat(32)).toString('base64')}`
const canary = 'canary-s3cr3t'

afterEach(closeServers)

describe('webhook', () => {
  it('posts requests that the reference library of Standard Webhooks verifies', async () => {
    const { url, requests } = await aServer()
    const headers = { Authorization: 'Bearer x', 'Webhook-Id': 'mine' }
    const target = webhook({ url, private: true, secret: key('k'), headers })
    expect(await target.send(raised)).toEqual({ sent: true, answer: 'answered 200: thank you' })
    const [{ headers: sent, text }] = requests as [(typeof requests)[number]]
    expect(sent).toMatchObject({
      authorization: 'Bearer x',
      'content-type': 'application/json',
      'webhook-id': '01.team',
    })
    const given = sent as Record<string, string>
    expect(new Webhook(key('k')).verify(text, given)).toEqual({
      type: 'alert.raised',
      timestamp: raised.at,
      data: { alert, link: raised.link },
    })
    expect(() => new Webhook(key('x')).verify(text, given)).toThrow()
    expect(() => new Webhook(key('k')).verify(text.replace('101', '1'), given)).toThrow()
  })

  it('signs with both secrets while one is rotated', async () => {
    const { url, requests } = await aServer()
    await webhook({ url, private: true, secret: [key('n'), key('o')] }).send(raised)
    const [{ headers, text }] = requests as [(typeof requests)[number]]
    for (const secret of [key('n'), key('o')])
      expect(new Webhook(secret).verify(text, headers as Record<string, string>)).toMatchObject({
        type: 'alert.raised',
      })
  })

  it('does not sign without a secret', async () => {
    const { url, requests } = await aServer()
    await webhook({ url, private: true }).send(digest)
    expect(requests[0]!.headers).not.toHaveProperty('webhook-signature')
    expect(requests[0]!.body).toMatchObject({
      type: 'alert.digest',
      data: { changes: [{ state: 'raised' }, { state: 'cleared' }], stillRaised: [{}] },
    })
  })

  it.each<[string, Parameters<typeof webhook>[0]]>([
    ['a string that is not a URL', { url: canary }],
    ['a user in the URL', { url: `https://user:${canary}@example.com/` }],
    ['a header with a line break', { url: 'https://a.example/', headers: { a: `${canary}\r\nb` } }],
    ['an empty secret', { url: 'https://a.example/', secret: '' }],
    ['a secret without its prefix', { url: 'https://a.example/', secret: canary.repeat(4) }],
    ['a short secret', { url: 'https://a.example/', secret: `whsec_${'a'.repeat(31)}` }],
    ['a timeout of 0', { url: 'https://a.example/', timeoutMs: 0 }],
    ['a digest of 0', { url: 'https://a.example/', digestMs: 0 }],
    ['a reminder every second', { url: 'https://a.example/', remindMs: 1000 }],
  ])('rejects %s without showing the value', (_, options) => {
    let thrown: unknown
    try {
      webhook(options)
    } catch (error) {
      thrown = error
    }
    expect(thrown).toMatchObject({ code: 'INVALID_CONFIG' })
    expect(`${(thrown as Error).stack}${String((thrown as Error).cause)}`).not.toContain(canary)
  })
})

it('rejects an unknown option', () => {
  expect(() => webhook({ url: 'https://a.example/', secrets: 'x' } as never)).toThrow(
    'webhook options: did you mean "secret"?',
  )
})
