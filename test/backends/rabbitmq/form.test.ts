import type { Message, MessageProperties, Options } from 'amqplib'
import { describe, expect, it } from 'vitest'
import { toCopy, deliveryOf, toPublishOptions } from '../../../src/backends/rabbitmq/form.ts'
import type { Delivery, OutgoingMessage } from '../../../src/mailbox.ts'

const nowMs = Date.UTC(2026, 0, 2)
const about = { receipt: 'r', nowMs, freshId: () => 'fresh' }
const memory = { enqueuedMs: 5000, deliveries: 0, failures: 0 }

function parcel(more: Partial<OutgoingMessage> = {}): OutgoingMessage {
  const bytes = Buffer.from('body')
  return { id: 'one', bytes, contentType: 'text/plain', headers: {}, ...more }
}

/** A message as the client delivers it. */
function message(properties: Options.Publish, redelivered = false): Message {
  const fields = { deliveryTag: 1, redelivered, exchange: '', routingKey: 'q' }
  return { content: Buffer.from('body'), fields, properties: properties as MessageProperties }
}

const delivered = (one: Message): Delivery => deliveryOf(one, about)

describe('toPublishOptions', () => {
  it('maps to properties of AMQP, so that others can read them', () => {
    const sent = toPublishOptions(parcel({ replyTo: 'answers', headers: { a: 'b' } }), memory)
    expect(sent).toMatchObject({
      messageId: 'one',
      contentType: 'text/plain',
      replyTo: 'answers',
      timestamp: 5,
      headers: { a: 'b' },
    })
  })

  it('hides names that the server would act upon, and values that are too long', () => {
    const odd = parcel({
      id: '東'.repeat(200),
      contentType: `text/plain; name=${'東'.repeat(150)}`,
      replyTo: 'amq.rabbitmq.reply-to',
      headers: Object.fromEntries([
        ...['CC', 'BCC', 'x-death', 'x-delivery-count', 'X-Match', '__proto__', 'x-redrive'].map(
          (name) => [name, 'mine'] as const,
        ),
        ['東'.repeat(100), 'long'],
      ]),
    })
    const sent = toPublishOptions(odd, memory)
    expect(Object.keys(sent.headers as object)).toEqual(['x-redrive'])
    expect(sent.replyTo).toBeUndefined()
    const back = delivered(message(sent))
    expect(back).toMatchObject({ id: odd.id, contentType: odd.contentType, replyTo: odd.replyTo })
    expect(Object.entries(back.headers)).toEqual(Object.entries(odd.headers))
  })

  it('rejects headers that the client would truncate', () => {
    const headers = Object.fromEntries(
      Array.from({ length: 8 }, (_, n) => [`h${n}`, 'x'.repeat(8000)]),
    )
    expect(() => toPublishOptions(parcel({ headers }), memory)).toThrow(
      expect.objectContaining({ code: 'TOO_LARGE' }) as Error,
    )
  })
})

describe('toCopy', () => {
  it('reserves room for its state, however long the headers are', () => {
    const headers = Object.fromEntries(
      Array.from({ length: 7 }, (_, n) => [`h${n}`, 'x'.repeat(8192)]),
    )
    const fits = (length: number): Options.Publish =>
      toPublishOptions(parcel({ headers: { ...headers, last: 'x'.repeat(length) } }), memory)
    let most = 8192
    while (most > 0)
      try {
        fits(most)
        break
      } catch {
        most -= 1
      }
    expect(most).toBeGreaterThan(0)
    const sent = message(fits(most))
    const copy = toCopy(sent, delivered(sent), 'failed')
    expect(delivered(message(copy))).toMatchObject({ id: 'one', deliveries: 2, failures: 1 })
  })

  it('preserves deliveries, failures and timestamps', () => {
    const first = message(toPublishOptions(parcel(), memory))
    const one = delivered(first)
    expect(one).toMatchObject({ deliveries: 1, failures: 0, firstReceivedMs: nowMs })
    const second = message(toCopy(first, one, 'failed'))
    const two = deliveryOf(second, { ...about, nowMs: nowMs + 1000 })
    expect(two).toMatchObject({ deliveries: 2, failures: 1, enqueuedMs: 5000 })
    expect(two.firstReceivedMs).toBe(nowMs)
    const lapsed = delivered(message(toCopy(second, two, 'lapsed')))
    expect(lapsed).toMatchObject({ deliveries: 3, failures: 1 })
    const untried = delivered(message(toCopy(second, two, 'untried')))
    expect(untried).toMatchObject({ deliveries: 2, failures: 1, firstReceivedMs: nowMs })
  })

  it('preserves them for a message with an invalid timestamp', () => {
    const first = message({ messageId: 'theirs', timestamp: 1.7e18 })
    const one = delivered(first)
    expect(one).toMatchObject({ deliveries: 1, enqueuedMs: nowMs })
    const two = delivered(message(toCopy(first, one, 'failed')))
    expect(two).toMatchObject({ deliveries: 2, failures: 1, enqueuedMs: nowMs })
  })

  it('adds the counts of the server, and resets them', () => {
    const sent = toPublishOptions(parcel(), memory)
    const again = message({ ...sent, headers: { ...sent.headers, 'x-delivery-count': 2 } }, true)
    const third = delivered(again)
    expect(third.deliveries).toBe(3)
    const copy = toCopy(again, third, 'lapsed')
    expect(copy.headers).not.toHaveProperty('x-delivery-count')
    expect(delivered(message(copy)).deliveries).toBe(4)
  })

  it('preserves properties of others, except harmful ones', () => {
    const headers = { retries: 3, nested: { deep: true } }
    const kept = { correlationId: 'c', type: 't', appId: 'app', contentEncoding: 'gzip' }
    const foreign = message({ ...kept, headers, userId: 'somebody', expiration: '1000' })
    const one = delivered(foreign)
    const copy = toCopy(foreign, one, 'failed')
    expect(asRead(copy)).toMatchObject({ ...kept, headers })
    expect(copy).not.toHaveProperty('userId')
    expect(copy).not.toHaveProperty('expiration')
    const two = delivered(message(asRead(copy)))
    expect(two.id).toBe('fresh')
    expect(two.headers).toEqual(one.headers)
  })

  it('removes its own delays from x-death, and no other death', () => {
    const death = (queue: string): object => ({ queue, reason: 'expired', count: 1 })
    const ours = {
      'x-death': [death('redrive.delay.1000.q'), death('theirs')],
      'x-first-death-queue': 'theirs',
      'x-last-death-queue': 'redrive.delay.1000.q',
      'x-last-death-reason': 'expired',
    }
    const foreign = message({ headers: ours })
    const { headers } = asRead(toCopy(foreign, delivered(foreign), 'failed'))
    expect(headers).toMatchObject({ 'x-death': [death('theirs')], 'x-first-death-queue': 'theirs' })
    expect(headers).not.toHaveProperty('x-last-death-queue')
    expect(headers).not.toHaveProperty('x-last-death-reason')
  })
})

/** Headers as the client reads them after sending: integers without their width. */
function asRead<T>(sent: T): T {
  const text = JSON.stringify(sent)
  return JSON.parse(text, (_key, value: unknown) => {
    const { '!': type, value: integer } = (value ?? {}) as { '!'?: string; value?: unknown }
    return type === 'int' || type === 'long' ? integer : value
  }) as T
}

describe('deliveryOf', () => {
  it('converts any message to a delivery', () => {
    const bare = delivered(message({}))
    expect(bare).toMatchObject({ id: 'fresh', contentType: 'application/octet-stream' })
    expect(bare).toMatchObject({ headers: {}, deliveries: 1, failures: 0, enqueuedMs: nowMs })
    const told = message({
      headers: { n: 1, b: true, list: [1], none: null },
      correlationId: 'c',
      timestamp: nowMs / 1000,
    })
    expect(delivered(told).headers).toEqual({
      'correlation-id': 'c',
      n: '1',
      b: 'true',
      list: '[1]',
      none: 'null',
    })
    expect(delivered(message({ timestamp: nowMs })).enqueuedMs).toBe(nowMs)
    expect(delivered(message({}, true)).deliveries).toBe(2)
  })

  it.each([
    'no JSON',
    '5',
    'null',
    '{}',
    '{"enqueuedMs":1,"deliveries":-1,"failures":0}',
    '{"enqueuedMs":1,"deliveries":1,"failures":"0"}',
    '{"enqueuedMs":1,"deliveries":1,"failures":0,"id":7}',
    '{"enqueuedMs":1,"deliveries":1,"failures":0,"headers":{"a":1}}',
  ])('ignores an invalid state header: %s', (note) => {
    const delivery = delivered(message({ messageId: 'theirs', headers: { 'x-redrive': note } }))
    expect(delivery).toMatchObject({ id: 'theirs', deliveries: 1, failures: 0, headers: {} })
  })
})
