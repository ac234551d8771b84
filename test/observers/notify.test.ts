import type { RequestListener } from 'node:http'
import { afterEach, describe, expect, it } from 'vitest'
import { ObserverHub, type RedriveEvent } from '../../src/observer.ts'
import { pagerduty } from '../../src/observers/notify/pagerduty.ts'
import { slack } from '../../src/observers/notify/slack.ts'
import { webhook } from '../../src/observers/notify/webhook.ts'
import type { Alert } from '../../src/policy/alerts.ts'
import { verifySignature } from '../../src/backends/http/signature.ts'
import { aLetter } from '../../src/testing/a-letter.ts'
import { deferred } from '../a-queue.ts'
import { anInstantClock, aServer, closeServers, type ReceivedRequest } from './notify-bench.ts'

const alert: Alert = {
  name: 'many-exhausted',
  severity: 'warning',
  metric: 'exhausted',
  value: 101,
  above: 100,
  queue: 'orders',
  summary: 'exhausted is 101 in queue orders, above 100',
  hint: 'Look at the groups.',
  raisedAt: '2026-01-01T00:00:00.000Z',
}
const raised: RedriveEvent = { type: 'alert', alert, state: 'raised' }
const cleared: RedriveEvent = { type: 'alert', alert, state: 'cleared' }
const named = (name: string): RedriveEvent => ({
  type: 'alert',
  alert: { ...alert, name },
  state: 'raised',
})

const secret = 'canary-s3cr3t'

afterEach(closeServers)

/** Never ends its answer. */
const silent: RequestListener = () => {}

describe('webhook', () => {
  it('posts signed alerts, each with an id that identifies repetitions', async () => {
    const { url, requests } = await aServer()
    const { clock } = anInstantClock()
    const notify = webhook({ url, secret, clock, headers: { Authorization: 'Bearer x' } })
    await notify(raised)
    await notify(cleared)
    expect(requests.map(({ body }) => body)).toEqual([
      {
        type: 'alert',
        state: 'raised',
        alert,
        at: '2026-01-01T00:00:00.000Z',
        id: requests[0]!.headers['redrive-id'],
      },
      expect.objectContaining({ state: 'cleared', id: requests[1]!.headers['redrive-id'] }),
    ])
    expect(requests[0]!.body['id']).not.toBe(requests[1]!.body['id'])
    const { headers, text } = requests[0]!
    expect(headers).toMatchObject({
      authorization: 'Bearer x',
      'content-type': 'application/json',
      'redrive-signature': expect.stringMatching(/^t=\d+,v1=[0-9a-f]{64}$/),
    })
    const signature = String(headers['redrive-signature'])
    expect(verifySignature(signature, text, secret, clock.now())).toBe(true)
    expect(verifySignature(signature, text.replace('101', '1'), secret, clock.now())).toBe(false)
    expect(verifySignature(signature, text, 'another', clock.now())).toBe(false)
    expect(verifySignature(signature, text, secret, clock.now() + 300_001)).toBe(false)
  })

  it('does not sign without a secret, and does not let options override its own headers', async () => {
    const { url, requests } = await aServer()
    const headers = { 'Content-Type': 'text/plain', 'Redrive-Id': 'mine' }
    await webhook({ url, headers })(raised)
    expect(requests[0]!.headers).not.toHaveProperty('redrive-signature')
    expect(requests[0]!.headers).toMatchObject({
      'content-type': 'application/json',
      'redrive-id': requests[0]!.body['id'],
    })
  })

  it('ignores events other than alerts', async () => {
    const { url, requests } = await aServer()
    const notify = webhook({ url })
    expect(notify({ type: 'exhausted', letter: aLetter() })).toBeUndefined()
    expect(notify({ type: 'error', during: 'x', error: new Error('x') })).toBeUndefined()
    await notify.idle()
    expect(requests).toEqual([])
  })

  it('retries on 429 and 503 with the same id and a new signature', async () => {
    const { url, requests } = await aServer(503, 429)
    const { clock, pauses } = anInstantClock()
    await webhook({ url, secret, clock })(raised)
    expect(requests).toHaveLength(3)
    expect(new Set(requests.map(({ text }) => text)).size).toBe(1)
    expect(new Set(requests.map(({ headers }) => headers['redrive-id'])).size).toBe(1)
    const signatures = requests.map(({ headers }) => String(headers['redrive-signature']))
    expect(signatures[2]).not.toBe(signatures[0])
    expect(verifySignature(signatures[2], requests[2]!.text, secret, clock.now())).toBe(true)
    expect(pauses).toEqual([750, 3000])
  })

  it('waits as long as Retry-After requests, at most a minute', async () => {
    const retryAfter =
      (after: string): RequestListener =>
      (_, response) =>
        response.writeHead(429, { 'retry-after': after }).end()
    const { url } = await aServer(retryAfter('30'), retryAfter('86400'), retryAfter('nonsense'))
    const { clock, pauses } = anInstantClock()
    await webhook({ url, clock })(raised)
    expect(pauses).toEqual([30_000, 60_000, 12_000])
  })

  it.each([400, 401, 404, 410])('does not retry on status %i', async (status) => {
    const { url, requests } = await aServer(status)
    await expect(webhook({ url })(raised)).rejects.toThrow(`answered ${status}`)
    expect(requests).toHaveLength(1)
  })

  it('does not follow redirects', async () => {
    const elsewhere = await aServer()
    const { url, requests } = await aServer((_, response) =>
      response.writeHead(307, { location: elsewhere.url }).end(),
    )
    await expect(webhook({ url })(raised)).rejects.toThrow('redirects are not followed')
    expect(requests).toHaveLength(1)
    expect(elsewhere.requests).toEqual([])
  })

  it('gives up on a server that does not respond, and continues with the next alert', async () => {
    const { url, requests, arrival } = await aServer(silent, silent, silent, silent)
    const { clock, runOut } = anInstantClock()
    const notify = webhook({ url, clock })
    const first = notify(raised)
    const second = notify(cleared)
    const failed = expect(first).rejects.toThrow(
      'no response within 5000 ms, given up after 4 attempts',
    )
    for (let tries = 1; tries <= 4; tries++) {
      await arrival(tries)
      runOut()
    }
    await failed
    await second
    expect(requests.map(({ body }) => body['state'])).toEqual([
      'raised',
      'raised',
      'raised',
      'raised',
      'cleared',
    ])
  })

  it('does not read an endless response', async () => {
    const endless: RequestListener = (_, response) => {
      response.writeHead(200).write('x'.repeat(65_536))
    }
    const { url } = await aServer(endless)
    await expect(webhook({ url })(raised)).resolves.toBeUndefined()
  })

  it('reports the system error when the server is unreachable', async () => {
    const { url } = await aServer()
    await closeServers()
    const { clock, pauses } = anInstantClock()
    const failing = webhook({ url, clock })(raised)
    await expect(failing).rejects.toThrow('unreachable (ECONNREFUSED), given up after 4 attempts')
    expect(pauses).toHaveLength(3)
  })

  it('sends alerts in order, one at a time', async () => {
    const { url, requests } = await aServer(503)
    const { clock } = anInstantClock()
    const notify = webhook({ url, clock })
    void notify(raised)
    void notify(cleared)
    void notify(raised)
    await notify.idle()
    const states = requests.map(({ body }) => body['state'])
    expect(states).toEqual(['raised', 'raised', 'cleared', 'raised'])
  })

  it('drops the oldest alerts above its limit, counts them, and emits one error', async () => {
    const gate = deferred()
    const slow: RequestListener = (_, response) =>
      void gate.promise.then(() => response.writeHead(200).end())
    const { url, requests, arrival } = await aServer(slow)
    const hub = new ObserverHub()
    const errors: RedriveEvent[] = []
    hub.on('error', (event) => errors.push(event))
    const notify = webhook({ url })
    hub.on('*', notify)
    for (let count = 0; count <= 110; count++) hub.emit(named(`a${count}`))
    await arrival(1)
    gate.resolve()
    await notify.idle()
    expect(notify.dropped()).toBe(10)
    const names = requests.map(({ body }) => (body['alert'] as Alert).name)
    expect(names[0]).toBe('a0')
    expect(names.slice(1)).toEqual(Array.from({ length: 100 }, (_, index) => `a${index + 11}`))
    expect(errors).toEqual([
      {
        type: 'error',
        during: 'observer of alert',
        error: expect.objectContaining({
          message: expect.stringContaining('more than 100 notifications are waiting'),
        }),
      },
    ])
  })

  it('never delays or breaks the emitter, and its errors contain no secret', async () => {
    const echo: RequestListener = (request, response) =>
      response.writeHead(400, { 'x-echo': secret }).end(JSON.stringify(request.headers))
    const { url, requests } = await aServer(echo)
    const hub = new ObserverHub()
    const events: RedriveEvent[] = []
    hub.on('*', (event) => events.push(event))
    const notify = webhook({
      url: `${url}/${secret}?token=${secret}`,
      secret,
      headers: { authorization: secret },
    })
    hub.on('*', notify)
    hub.emit(raised)
    expect(requests).toEqual([])
    await notify.idle()
    expect(events.map(({ type }) => type)).toEqual(['alert', 'error'])
    const { error } = events[1] as { error: Error }
    expect(error.message).toMatch(/^webhook at 127\.0\.0\.1:\d+: answered 400$/)
    expect(`${error.stack} ${JSON.stringify(error)} ${String(error.cause)}`).not.toContain(secret)
  })

  it.each<[string, Parameters<typeof webhook>[0]]>([
    ['another scheme', { url: `file:///etc/${secret}` }],
    ['a string that is not a URL', { url: secret }],
    ['a user in the URL', { url: `https://user:${secret}@example.com/` }],
    [
      'a header with a line break',
      { url: 'https://example.com/', headers: { a: `${secret}\r\nb: c` } },
    ],
    ['an empty secret', { url: 'https://example.com/', secret: '' }],
    ['a timeout of 0', { url: 'https://example.com/', timeoutMs: 0 }],
  ])('rejects %s without showing the value', (_, options) => {
    let thrown: unknown
    try {
      webhook(options)
    } catch (error) {
      thrown = error
    }
    expect(thrown).toMatchObject({ code: 'INVALID_CONFIG' })
    expect(`${(thrown as Error).stack}${String((thrown as Error).cause)}`).not.toContain(secret)
  })
})

describe('slack', () => {
  it('writes the name, the severity, the summary and the hint', async () => {
    const { url, requests } = await aServer()
    const notify = slack({ url })
    await notify(raised)
    await notify(cleared)
    const strings = requests.map(({ body }) =>
      (body['blocks'] as { text: { text: string } }[]).map(({ text }) => text.text),
    )
    expect(strings).toEqual([
      ['WARNING: many-exhausted', alert.summary, 'Look at the groups.'],
      ['Cleared: many-exhausted', alert.summary],
    ])
    expect(requests[0]!.body['text']).toBe(`WARNING: many-exhausted – ${alert.summary}`)
  })

  it('escapes formatting, links, mentions and hidden characters in names and strings', async () => {
    const { url, requests } = await aServer()
    const hostile =
      '<!channel> *bold* <https://evil.example|ok> & \u202e\u0007\nline ' + '&'.repeat(9000)
    await slack({ url })({
      type: 'alert',
      alert: { ...alert, name: hostile, summary: hostile, hint: hostile },
      state: 'raised',
    })
    const [{ text, body }] = requests as [ReceivedRequest]
    expect(text).not.toMatch(/[<>\u202e]/)
    expect(text).toContain('&lt;!channel&gt; *bold* &lt;https://evil.example|ok&gt; &amp; ')
    for (const block of body['blocks'] as { text: { type: string; text: string } }[]) {
      expect(block.text.type).toBe('plain_text')
      expect(block.text.text).not.toMatch(/\p{Cc}/u)
      expect(block.text.text.length).toBeLessThanOrEqual(3000)
    }
  })
})

describe('pagerduty', () => {
  it('triggers an incident and resolves it under the same key', async () => {
    const { url, requests } = await aServer(202, 202)
    const notify = pagerduty({ routingKey: 'key', url, source: 'orders-production' })
    await notify(raised)
    await notify(cleared)
    expect(requests.map(({ body }) => body)).toEqual([
      {
        routing_key: 'key',
        event_action: 'trigger',
        dedup_key: 'orders-production:many-exhausted',
        payload: {
          summary: `many-exhausted: ${alert.summary}`,
          source: 'orders-production',
          severity: 'warning',
          timestamp: alert.raisedAt,
          class: 'exhausted',
          component: 'orders',
          custom_details: alert,
        },
      },
      {
        routing_key: 'key',
        event_action: 'resolve',
        dedup_key: 'orders-production:many-exhausted',
      },
    ])
  })

  it('keeps keys and summaries within the allowed length, and distinguishes long names', async () => {
    const { url, requests } = await aServer()
    const notify = pagerduty({ routingKey: 'key', url })
    for (const end of ['a', 'b']) await notify(named('\u202e'.repeat(300) + end))
    const keys = requests.map(({ body }) => String(body['dedup_key']))
    expect(new Set(keys).size).toBe(2)
    for (const key of keys) expect(key.length).toBeLessThanOrEqual(255)
    const { summary } = requests[0]!.body['payload'] as { summary: string }
    expect(summary.length).toBeLessThanOrEqual(1024)
  })

  it('never shows its key in an error', async () => {
    const { url } = await aServer((_, response) => response.writeHead(400).end(secret))
    const failing = pagerduty({ routingKey: secret, url })(raised)
    await expect(failing).rejects.toThrow(/^pagerduty at 127\.0\.0\.1:\d+: answered 400$/)
    expect(() => pagerduty({ routingKey: '' })).toThrow('routingKey')
  })
})

it.each<[string, () => unknown, string]>([
  ['webhook', () => webhook({ url: 'https://a.example/', secrets: 'x' } as never), '"secret"'],
  ['slack', () => slack({ url: 'https://a.example/', timeout: 5 } as never), '"timeoutMs"'],
  ['pagerduty', () => pagerduty({ routingKey: 'k', sources: 'x' } as never), '"source"'],
])('%s rejects an unknown option', (name, make, near) => {
  expect(make).toThrow(`${name} options: did you mean ${near}?`)
})
