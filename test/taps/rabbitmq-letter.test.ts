import type { Message, MessageProperties } from 'amqplib'
import { describe, expect, it } from 'vitest'
import { foreignLetterOf, toPublishOptions } from '../../src/taps/rabbitmq-letter.ts'

const nowMs = Date.UTC(2026, 0, 2)
const about = { queue: 'dead', freshId: () => 'fresh' }

function message(properties: Partial<MessageProperties>): Message {
  const fields = { deliveryTag: 1, redelivered: false, exchange: 'dlx', routingKey: 'dead.key' }
  return { content: Buffer.from('body'), fields, properties: properties as MessageProperties }
}

const time = (ms: number) => ({ '!': 'timestamp' as const, value: ms / 1000 })

const rejected = {
  reason: 'rejected' as const,
  queue: 'orders',
  exchange: 'shop',
  'routing-keys': ['order.new', 'copied'],
  count: 3,
  time: time(nowMs - 60_000),
}
const expired = {
  reason: 'expired' as const,
  queue: 'orders.retry',
  exchange: 'retry',
  'routing-keys': ['orders'],
  count: 2,
  time: time(nowMs - 90_000),
}

describe('foreignLetterOf', () => {
  it('reads the source, the last reason and the time of death', () => {
    const headers = {
      'x-death': [rejected, expired],
      'x-first-death-queue': 'orders',
      'x-first-death-reason': 'rejected',
    }
    const dead = message({ headers, messageId: 'm-1' })
    const letter = foreignLetterOf(dead, about)
    expect(letter).toMatchObject({
      source: 'orders',
      reason: 'rejected',
      deliveries: 3,
      failedAt: '2026-01-01T23:59:00.000Z',
      messageId: 'm-1',
      contentType: 'application/octet-stream',
      origin: { queue: 'orders', exchange: 'shop', routingKey: 'order.new' },
    })
  })

  it('distinguishes the deaths of one message', () => {
    const deathOf = (...deaths: object[]): string | undefined => {
      const headers = { 'x-death': deaths } as unknown as MessageProperties['headers']
      return foreignLetterOf(message({ headers, messageId: 'm-1' }), about).death
    }
    const first = deathOf(rejected, expired)
    expect(deathOf(rejected, expired)).toBe(first)
    expect(deathOf({ ...rejected, count: 4 }, expired)).not.toBe(first)
    expect(deathOf({ ...rejected, time: time(nowMs) }, expired)).not.toBe(first)
  })

  it('reads a message that never died', () => {
    const sent = message({ contentType: 'text/plain', timestamp: nowMs / 1000 })
    const letter = foreignLetterOf(sent, about)
    expect(letter).not.toHaveProperty('failedAt')
    expect(letter).toMatchObject({
      source: 'dead',
      reason: 'unknown',
      deliveries: 0,
      enqueuedAt: '2026-01-02T00:00:00.000Z',
      contentType: 'text/plain',
      messageId: 'fresh',
      origin: { queue: 'dead', exchange: 'dlx', routingKey: 'dead.key' },
    })
  })

  it.each([
    'text',
    5,
    {},
    [null, 7, 'x', {}],
    [{ queue: 5, reason: 'rejected' }],
    [{ queue: 'q', reason: {} }],
  ])('ignores deaths that RabbitMQ did not write: %j', (deaths) => {
    const headers = { 'x-death': deaths } as unknown as MessageProperties['headers']
    expect(foreignLetterOf(message({ headers }), about)).toMatchObject({ reason: 'unknown' })
  })
})

describe('toPublishOptions', () => {
  it('restores the original headers without those about deaths', () => {
    const headers = {
      'x-death': [rejected],
      'x-first-death-queue': 'orders',
      'x-delivery-count': 3,
      CC: ['elsewhere'],
      retries: 3,
      flag: true,
      text: '3',
    } as unknown as MessageProperties['headers']
    const kept = {
      correlationId: 'c',
      replyTo: 'r',
      type: 't',
      priority: 4,
      timestamp: 1_700_000_000,
      deliveryMode: 2,
    }
    const dead = message({ ...kept, headers, messageId: 'm', userId: 'u', expiration: '5' })
    const home = toPublishOptions(foreignLetterOf(dead, about), 2)
    expect(home).toEqual({
      ...kept,
      messageId: 'm',
      headers: {
        retries: { '!': 'int', value: 3 },
        flag: true,
        text: '3',
        'redrive-replays': '2',
        'redrive-original-id': 'm',
      },
    })
  })

  it('sends edited headers as strings', () => {
    const letter = foreignLetterOf(message({ headers: { retries: 3, other: 1 } }), about)
    const edited = { ...letter, headers: { retries: '4', other: '1' } }
    expect(toPublishOptions(edited, 1).headers).toMatchObject({
      retries: '4',
      other: { '!': 'int', value: 1 },
    })
  })

  it('adds neither a message id nor a content type that the message did not have', () => {
    const home = toPublishOptions(foreignLetterOf(message({}), about), 1)
    expect(home).not.toHaveProperty('messageId')
    expect(home).not.toHaveProperty('contentType')
    expect(home).not.toHaveProperty('deliveryMode')
    const edited = { ...foreignLetterOf(message({}), about), contentType: 'application/json' }
    expect(toPublishOptions(edited, 1).contentType).toBe('application/json')
  })

  it('rejects a 64-bit header that could not be read exactly, until it is edited', () => {
    const headers = { total: Number(9_007_199_254_740_993n) }
    const letter = foreignLetterOf(message({ headers }), about)
    expect(() => toPublishOptions(letter, 1)).toThrow(
      'the header "total" could not be read exactly (a 64-bit integer beyond 2^53 was rounded',
    )
    expect(toPublishOptions({ ...letter, headers: { total: '17' } }, 1).headers).toMatchObject({
      total: '17',
    })
    expect(toPublishOptions({ ...letter, headers: {} }, 1).headers).not.toHaveProperty('total')
  })

  it('ignores an origin that it cannot parse', () => {
    const letter = foreignLetterOf(message({}), about)
    const odd = { ...letter, origin: { typed: 'no JSON', properties: '{"userId":"root"}' } }
    expect(toPublishOptions(odd, 1)).not.toHaveProperty('userId')
  })
})
