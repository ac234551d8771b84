import { describe, expect, it } from 'vitest'
import type { Stored } from '../../src/backends/kafka/record.ts'
import { openedOf } from '../../src/backends/kafka/packing.ts'
import { foreignLetterOf, homewardOf } from '../../src/taps/kafka-letter.ts'
import type { ForeignLetter } from '../../src/taps/tap.ts'
import { connectHeaders, retryableHeaders, springHeaders } from './kafka-headers.ts'

const stored = (headers: Record<string, Buffer>, more: Partial<Stored> = {}): Stored => ({
  topic: 'orders.DLT',
  partition: 2,
  offset: 7,
  timestampMs: Date.UTC(2026, 0, 2),
  key: Buffer.from('k'),
  value: Buffer.from('body'),
  headers: Object.entries(headers).map(([name, value]) => [Buffer.from(name), value]),
  ...more,
})

type Pairs = readonly (readonly [string, Buffer | null])[]

const pairs = (all: Pairs): Stored['headers'] =>
  all.map(([name, value]) => [Buffer.from(name), value])

/** The headers that go back, but for our own. */
const returned = (letter: ForeignLetter): [string, Buffer | null][] =>
  [...homewardOf(letter, 1).headers]
    .map(([name, value]): [string, Buffer | null] => [name.toString(), value])
    .filter(([name]) => !name.startsWith('redrive-'))

describe('foreignLetterOf', () => {
  it('reads what Spring Kafka wrote', () => {
    const letter = foreignLetterOf(stored(springHeaders()))
    expect(letter).toMatchObject({
      source: 'orders',
      reason: 'java.lang.IllegalStateException: no such customer',
      error: {
        name: 'IllegalStateException',
        message: 'no such customer',
        stack: 'IllegalStateException\n\tat com.acme.Billing.charge',
      },
      deliveries: 3,
      enqueuedAt: '2026-01-01T00:00:00.000Z',
      failedAt: '2026-01-02T00:00:00.000Z',
      messageId: 'orders.DLT:2:7',
      contentType: 'application/json',
      origin: { topic: 'orders', partition: '1', offset: '5000000000', by: 'billing', key: 'aw==' },
    })
    expect(letter.headers['kafka_dlt-original-timestamp']).toBe('1767225600000')
    expect(letter.headers['kafka_dlt-exception-stacktrace']).toContain('at com.acme')
  })

  it('reads what Kafka Connect wrote', () => {
    expect(foreignLetterOf(stored(connectHeaders()))).toMatchObject({
      source: 'payments',
      reason: 'org.apache.kafka.connect.errors.DataException: cannot convert (in VALUE_CONVERTER)',
      error: {
        name: 'DataException',
        message: 'cannot convert (in VALUE_CONVERTER)',
        stack: 'DataException\n\tat org.apache.kafka.connect',
      },
      deliveries: 1,
      origin: { topic: 'payments', partition: '4', offset: '99', by: 'to-s3/0' },
    })
  })

  it('reads what @RetryableTopic of Spring Kafka wrote', () => {
    const letter = foreignLetterOf({ ...stored({}), headers: pairs(retryableHeaders()) })
    expect(letter).toMatchObject({
      source: 'orders',
      reason: 'java.lang.IllegalStateException: the bank did not answer',
      error: { name: 'IllegalStateException', message: 'the bank did not answer' },
      deliveries: 2,
      enqueuedAt: '2026-01-01T00:00:00.000Z',
      failedAt: '2026-01-02T00:00:00.000Z',
      origin: { topic: 'orders', partition: '1', offset: '5000000000', by: 'billing' },
    })
    expect(letter.headers).toMatchObject({
      'retry_topic-attempts': '3',
      'retry_topic-original-timestamp': '1767225600000',
    })
  })

  it('takes the timestamp of a record of Kafka Connect for that of the original', () => {
    const letter = foreignLetterOf(stored(connectHeaders()))
    expect(letter.enqueuedAt).toBe('2026-01-02T00:00:00.000Z')
    expect(letter).not.toHaveProperty('failedAt')
    const appended = foreignLetterOf(stored(connectHeaders(), { isAppendTime: true }))
    expect(appended.failedAt).toBe('2026-01-02T00:00:00.000Z')
    expect(appended).not.toHaveProperty('enqueuedAt')
    const timeless = foreignLetterOf(stored(connectHeaders(), { timestampMs: 0 }))
    expect(timeless).not.toHaveProperty('enqueuedAt')
  })

  it('makes a letter of what nobody wrote anything on', () => {
    const letter = foreignLetterOf(stored({}))
    expect(letter).toMatchObject({ source: 'orders.DLT', reason: 'nobody wrote on it why' })
    expect(letter).not.toHaveProperty('error')
    expect(letter.origin['topic']).toBeUndefined()
  })

  it('bears headers that are not what their names say', () => {
    const headers = {
      'kafka_dlt-original-partition': Buffer.from([1, 2, 3]),
      'kafka_dlt-original-offset': Buffer.alloc(0),
      kafka_deliveryAttempt: Buffer.from('often'),
      'kafka_dlt-original-topic': Buffer.from([0xff, 0xfe]),
    }
    expect(foreignLetterOf(stored(headers)).deliveries).toBe(1)
  })
})

describe('homewardOf', () => {
  it('goes back as it was, without what was written on it, and with its lineage', () => {
    const headers = { ...springHeaders(), ...connectHeaders(), odd: Buffer.from([0xff, 0x00]) }
    const { key, value, headers: sent } = homewardOf(foreignLetterOf(stored(headers)), 2)
    expect([key?.toString(), value?.toString()]).toEqual(['k', 'body'])
    const byName = Object.fromEntries([...sent].map(([name, text]) => [name.toString(), text]))
    expect(Object.keys(byName).toSorted()).toEqual([
      'content-type',
      'odd',
      'redrive-original-id',
      'redrive-replays',
      'trace',
    ])
    expect(byName['odd']).toEqual(Buffer.from([0xff, 0x00]))
    expect(byName['redrive-replays']?.toString()).toBe('2')
    expect(byName['redrive-original-id']?.toString()).toBe('orders.DLT:2:7')
  })

  it('leaves out all that Spring and Kafka Connect wrote', () => {
    const own: Pairs = [['trace', Buffer.from('abc')]]
    const serialized = [['springDeserializerExceptionValue', Buffer.from([0xac, 0xed])]] as const
    for (const all of [retryableHeaders(), serialized])
      expect(
        returned(foreignLetterOf({ ...stored({}), headers: pairs([...own, ...all]) })),
      ).toEqual(own)
  })

  it.each<[string, Pairs]>([
    [
      'names that come twice',
      [
        ['a', Buffer.from('1')],
        ['b', Buffer.from('2')],
        ['a', Buffer.from('3')],
      ],
    ],
    [
      'null beside empty',
      [
        ['none', null],
        ['empty', Buffer.alloc(0)],
      ],
    ],
    ['bytes', [['odd', Buffer.from([0xff, 0])]]],
    [
      'names that objects sort',
      [
        ['b', Buffer.from('1')],
        ['2', Buffer.from('2')],
        ['1', Buffer.from('3')],
      ],
    ],
    [
      'names that every object has',
      ['__proto__', 'constructor', 'toString', 'hasOwnProperty', 'valueOf'].map((name) => [
        name,
        Buffer.from(name),
      ]),
    ],
    ['nothing', []],
  ])('sends back headers in their order, with %s', (_, all) => {
    const headers = pairs([...all, ...retryableHeaders()])
    const letter = foreignLetterOf({ ...stored({}), headers })
    // As it is kept: in JSON.
    const kept = JSON.parse(
      JSON.stringify({ headers: letter.headers, origin: letter.origin }),
    ) as ForeignLetter
    expect(returned({ ...letter, ...kept })).toEqual(all)
  })

  it('sends what was edited in the place of all headers of that name, and the others as they were', () => {
    const all: Pairs = [
      ['a', Buffer.from('1')],
      ['a', Buffer.from('2')],
      ['none', null],
      ['gone', Buffer.from('x')],
    ]
    const letter = foreignLetterOf({ ...stored({}), headers: pairs(all) })
    expect(returned({ ...letter, headers: { a: 'now', none: '', more: 'm' } })).toEqual([
      ['none', null],
      ['a', Buffer.from('now')],
      ['more', Buffer.from('m')],
    ])
  })

  it.each(['key', undefined])('sends back no value as none, with the key %s', (key) => {
    const nothing = {
      isNull: true,
      value: Buffer.alloc(0),
      key: key ? Buffer.from(key) : undefined,
    } as const
    expect(homewardOf(foreignLetterOf(stored({}, nothing)), 1).value).toBe(null)
  })

  it('takes what was edited on the way', () => {
    const letter = foreignLetterOf(stored({ odd: Buffer.from([0xff]) }))
    const { headers } = homewardOf({ ...letter, headers: { odd: 'now a text' } }, 1)
    expect([...headers][0]?.map(String)).toEqual(['odd', 'now a text'])
    expect(openedOf(stored({})).id).toBe('orders.DLT:2:7')
  })
})
