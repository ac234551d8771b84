import { describe, expect, it } from 'vitest'
import type { StoredRecord } from '../../src/backends/kafka/record.ts'
import { decodeMessage } from '../../src/backends/kafka/message-format.ts'
import { toForeignLetter, toOriginalRecord } from '../../src/taps/kafka-letter.ts'
import type { ForeignLetter } from '../../src/taps/tap.ts'
import { connectHeaders, retryableHeaders, springHeaders } from './kafka-headers.ts'

const stored = (
  headers: Record<string, Buffer>,
  more: Partial<StoredRecord> = {},
): StoredRecord => ({
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

const pairs = (all: Pairs): StoredRecord['headers'] =>
  all.map(([name, value]) => [Buffer.from(name), value])

/** The headers of the returned record without ours. */
const returned = (letter: ForeignLetter): [string, Buffer | null][] =>
  [...toOriginalRecord(letter, 1).headers]
    .map(([name, value]): [string, Buffer | null] => [name.toString(), value])
    .filter(([name]) => !name.startsWith('redrive-'))

describe('toForeignLetter', () => {
  it('reads the headers of Spring Kafka', () => {
    const letter = toForeignLetter(stored(springHeaders()))
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

  it('reads the headers of Kafka Connect', () => {
    expect(toForeignLetter(stored(connectHeaders()))).toMatchObject({
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

  it('reads the headers of @RetryableTopic of Spring Kafka', () => {
    const letter = toForeignLetter({ ...stored({}), headers: pairs(retryableHeaders()) })
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

  it('uses the timestamp of a record of Kafka Connect as the original timestamp', () => {
    const letter = toForeignLetter(stored(connectHeaders()))
    expect(letter.enqueuedAt).toBe('2026-01-02T00:00:00.000Z')
    expect(letter).not.toHaveProperty('failedAt')
    const appended = toForeignLetter(stored(connectHeaders(), { isAppendTime: true }))
    expect(appended.failedAt).toBe('2026-01-02T00:00:00.000Z')
    expect(appended).not.toHaveProperty('enqueuedAt')
    const timeless = toForeignLetter(stored(connectHeaders(), { timestampMs: 0 }))
    expect(timeless).not.toHaveProperty('enqueuedAt')
  })

  it('converts a record without headers', () => {
    const letter = toForeignLetter(stored({}))
    expect(letter).toMatchObject({ source: 'orders.DLT', reason: 'the record does not tell why' })
    expect(letter).not.toHaveProperty('error')
    expect(letter.origin['topic']).toBeUndefined()
  })

  it('ignores headers with values of another type', () => {
    const headers = {
      'kafka_dlt-original-partition': Buffer.from([1, 2, 3]),
      'kafka_dlt-original-offset': Buffer.alloc(0),
      kafka_deliveryAttempt: Buffer.from('often'),
      'kafka_dlt-original-topic': Buffer.from([0xff, 0xfe]),
    }
    expect(toForeignLetter(stored(headers)).deliveries).toBe(1)
  })
})

describe('toOriginalRecord', () => {
  it('returns the original record with its lineage and without headers about its death', () => {
    const headers = { ...springHeaders(), ...connectHeaders(), odd: Buffer.from([0xff, 0x00]) }
    const { key, value, headers: sent } = toOriginalRecord(toForeignLetter(stored(headers)), 2)
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

  it('omits all headers of Spring and Kafka Connect', () => {
    const own: Pairs = [['trace', Buffer.from('abc')]]
    const serialized = [['springDeserializerExceptionValue', Buffer.from([0xac, 0xed])]] as const
    for (const all of [retryableHeaders(), serialized])
      expect(
        returned(toForeignLetter({ ...stored({}), headers: pairs([...own, ...all]) })),
      ).toEqual(own)
  })

  it.each<[string, Pairs]>([
    [
      'repeated names',
      [
        ['a', Buffer.from('1')],
        ['b', Buffer.from('2')],
        ['a', Buffer.from('3')],
      ],
    ],
    [
      'null and empty values',
      [
        ['none', null],
        ['empty', Buffer.alloc(0)],
      ],
    ],
    ['bytes', [['odd', Buffer.from([0xff, 0])]]],
    [
      'names that are integers',
      [
        ['b', Buffer.from('1')],
        ['2', Buffer.from('2')],
        ['1', Buffer.from('3')],
      ],
    ],
    [
      'names of object properties',
      ['__proto__', 'constructor', 'toString', 'hasOwnProperty', 'valueOf'].map((name) => [
        name,
        Buffer.from(name),
      ]),
    ],
    ['no headers', []],
  ])('returns headers in their order: %s', (_, all) => {
    const headers = pairs([...all, ...retryableHeaders()])
    const letter = toForeignLetter({ ...stored({}), headers })
    // Letters are stored as JSON.
    const kept = JSON.parse(
      JSON.stringify({ headers: letter.headers, origin: letter.origin }),
    ) as ForeignLetter
    expect(returned({ ...letter, ...kept })).toEqual(all)
  })

  it('replaces all headers of an edited name and keeps the others', () => {
    const all: Pairs = [
      ['a', Buffer.from('1')],
      ['a', Buffer.from('2')],
      ['none', null],
      ['gone', Buffer.from('x')],
    ]
    const letter = toForeignLetter({ ...stored({}), headers: pairs(all) })
    expect(returned({ ...letter, headers: { a: 'now', none: '', more: 'm' } })).toEqual([
      ['none', null],
      ['a', Buffer.from('now')],
      ['more', Buffer.from('m')],
    ])
  })

  it.each(['key', undefined])('returns a null value as null, with the key %s', (key) => {
    const nothing = {
      isNull: true,
      value: Buffer.alloc(0),
      key: key ? Buffer.from(key) : undefined,
    } as const
    expect(toOriginalRecord(toForeignLetter(stored({}, nothing)), 1).value).toBe(null)
  })

  it('uses edited headers', () => {
    const letter = toForeignLetter(stored({ odd: Buffer.from([0xff]) }))
    const { headers } = toOriginalRecord({ ...letter, headers: { odd: 'now a string' } }, 1)
    expect([...headers][0]?.map(String)).toEqual(['odd', 'now a string'])
    expect(decodeMessage(stored({})).id).toBe('orders.DLT:2:7')
  })
})
