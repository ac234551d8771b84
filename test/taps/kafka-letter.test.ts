import { describe, expect, it } from 'vitest'
import type { Stored } from '../../src/kafka/record.ts'
import { openedOf } from '../../src/mailboxes/kafka/packing.ts'
import { foreignLetterOf, homewardOf } from '../../src/taps/kafka-letter.ts'
import { connectHeaders, springHeaders } from './kafka-headers.ts'

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

  it('takes what was edited on the way', () => {
    const letter = foreignLetterOf(stored({ odd: Buffer.from([0xff]) }))
    const { headers } = homewardOf({ ...letter, headers: { odd: 'now a text' } }, 1)
    expect([...headers][0]?.[1].toString()).toBe('now a text')
    expect(openedOf(stored({})).id).toBe('orders.DLT:2:7')
  })
})
