import type { RequestListener } from 'node:http'
import { afterEach, describe, expect, it } from 'vitest'
import { notifyUrlProblem } from '../../../src/observers/notify/http-sender.ts'
import { pagerduty } from '../../../src/observers/notify/pagerduty.ts'
import { webhook } from '../../../src/observers/notify/webhook.ts'
import { fakeClock } from '../../../src/testing/fake-clock.ts'
import { raised } from './a-notification.ts'
import { aServer, closeServers } from './a-server.ts'

const canary = 'canary-s3cr3t'

afterEach(closeServers)

describe('sending over HTTP', () => {
  const statuses: [number, boolean][] = [
    [400, false],
    [401, false],
    [404, false],
    [408, true],
    [410, false],
    [429, true],
    [500, true],
    [503, true],
  ]
  it.each(statuses)('says whether another attempt helps after status %i', async (status, again) => {
    const { url } = await aServer(status)
    const result = await webhook({ url, private: true }).send(raised)
    expect(result).toEqual({ sent: false, again, answer: `answered ${status}: thank you` })
  })

  it('passes on what retry-after asks, at most an hour', async () => {
    const clock = fakeClock()
    const later = new Date(clock.now() + 90_000).toUTCString()
    const waits = ['30', '86400', 'nonsense', later].map(
      (after): RequestListener =>
        (_, response) =>
          response.writeHead(429, { 'retry-after': after }).end(),
    )
    const { url } = await aServer(...waits)
    const target = webhook({ url, private: true, clock })
    const results = []
    for (const _ of waits) results.push(await target.send(raised))
    expect(results.map((one) => ('afterMs' in one ? one.afterMs : 0))).toEqual([
      30_000, 3_600_000, 0, 90_000,
    ])
  })

  it('does not follow redirects', async () => {
    const elsewhere = await aServer()
    const { url } = await aServer((_, response) =>
      response.writeHead(307, { location: elsewhere.url }).end(),
    )
    expect(await webhook({ url, private: true }).send(raised)).toEqual({
      sent: false,
      again: false,
      answer: 'answered 307: redirects are not followed',
    })
    expect(elsewhere.requests).toEqual([])
  })

  it('gives up on a server that does not respond', async () => {
    const { url, arrival } = await aServer(() => {})
    const clock = fakeClock()
    const sending = webhook({ url, private: true, clock }).send(raised)
    await arrival(1)
    await clock.advance(5000)
    expect(await sending).toEqual({
      sent: false,
      again: true,
      answer: 'no response within 5000 ms',
    })
  })

  it('reads only the beginning of an endless response', async () => {
    const endless: RequestListener = (_, response) => {
      response.writeHead(200).write('x'.repeat(65_536))
    }
    const { url } = await aServer(endless)
    const { sent, answer } = await webhook({ url, private: true }).send(raised)
    expect(sent).toBe(true)
    expect(answer.length).toBeLessThan(250)
  })

  it('reports the system error of a server that is unreachable', async () => {
    const { url } = await aServer()
    await closeServers()
    expect(await webhook({ url, private: true }).send(raised)).toMatchObject({
      sent: false,
      again: true,
      answer: '127.0.0.1 is unreachable: ECONNREFUSED',
    })
  })

  it('shows no secret that a receiver repeats', async () => {
    const echo: RequestListener = (request, response) =>
      response.writeHead(400).end(`${request.url} ${JSON.stringify(request.headers)}`)
    const { url } = await aServer(echo, echo)
    const target = webhook({
      url: `${url}/${canary}?token=${canary}`,
      private: true,
      headers: { authorization: canary },
    })
    const { answer } = await target.send(raised)
    expect(answer).toContain('answered 400: ')
    expect(answer).not.toContain(canary)
    const pager = await pagerduty({ routingKey: canary, url, private: true }).send(raised)
    expect(pager.answer).not.toContain(canary)
  })

  it('refuses a name whose address is private when it connects', async () => {
    const { url, requests } = await aServer()
    const local = url.replace('http://127.0.0.1', 'https://localhost')
    const result = await webhook({ url: local }).send(raised)
    expect(result).toMatchObject({ sent: false, again: true })
    expect(result.answer).toMatch(/^localhost is unreachable: the address .* is private/)
    expect(requests).toEqual([])
  })
})

it.each([0, 60_001, Number.NaN])('rejects a timeout of %s ms', (timeoutMs) => {
  const options = { url: 'https://hooks.example.com', timeoutMs }
  expect(() => webhook(options)).toThrow('webhook: timeoutMs must be a number from 1 to 60000')
})

describe('notifyUrlProblem', () => {
  it.each<[string, 'public' | 'private' | 'never']>([
    ['https://hooks.example.com/x', 'public'],
    ['https://93.184.216.34/', 'public'],
    ['http://hooks.example.com/x', 'never'],
    ['http://93.184.216.34/', 'never'],
    ['http://127.0.0.1:8080/', 'private'],
    ['http://localhost/', 'private'],
    ['http://[::1]:8080/', 'private'],
    ['http://10.0.0.1/', 'never'],
    ['https://127.0.0.1/', 'private'],
    ['https://127.1/', 'private'],
    ['https://0x7f000001/', 'private'],
    ['https://2130706433/', 'private'],
    ['https://[::ffff:127.0.0.1]/', 'private'],
    ['https://[::ffff:7f00:1]/', 'private'],
    ['https://10.1.2.3/', 'private'],
    ['https://172.16.0.1/', 'private'],
    ['https://192.168.1.1/', 'private'],
    ['https://100.64.0.1/', 'private'],
    ['https://[fd00::1]/', 'private'],
    ['https://169.254.169.254/latest/meta-data/', 'never'],
    ['https://[::ffff:169.254.169.254]/', 'never'],
    ['https://[64:ff9b::a9fe:a9fe]/', 'never'],
    ['https://[fe80::1]/', 'never'],
    ['https://[fd00:ec2::254]/', 'never'],
    ['https://0.0.0.0/', 'never'],
    ['https://[::]/', 'never'],
    ['https://224.0.0.1/', 'never'],
    ['file:///etc/passwd', 'never'],
    ['gopher://127.0.0.1/', 'never'],
    ['ftp://example.com/', 'never'],
    ['https://user:password@example.com/', 'never'],
    ['not a url', 'never'],
  ])('judges %s', (url, allowed) => {
    expect(notifyUrlProblem(url, false) === undefined).toBe(allowed === 'public')
    expect(notifyUrlProblem(url, true) === undefined).toBe(allowed !== 'never')
  })
})
