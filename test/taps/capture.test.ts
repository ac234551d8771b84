import { describe, expect, it } from 'vitest'
import { foreignCapture } from '../../src/taps/capture.ts'
import type { ForeignLetter } from '../../src/taps/tap.ts'
import { aQueue } from '../a-queue.ts'
import { aForeignLetter } from './a-foreign-letter.ts'

describe('foreignCapture', () => {
  it('parks the letter with its body, headers and origin', async () => {
    const { dlq, eventsOf } = await aQueue()
    await dlq.foreignLetters()(aForeignLetter())
    const letter = (await dlq.get(eventsOf('captured')[0]!.letter.id))!
    expect(Buffer.from(letter.payload.bytes).toString()).toBe('{"order":7}')
    expect(letter).toMatchObject({
      queue: 'orders',
      source: {
        kind: 'mailbox',
        mailbox: 'orders',
        messageId: 'm-1',
        deliveries: 3,
        enqueuedAt: '2026-01-01T00:00:00.000Z',
      },
      payload: { contentType: 'application/json' },
      headers: { tenant: 'acme' },
      metadata: {
        reason: 'rejected',
        origin: { queue: 'orders', exchange: 'shop', contentType: 'application/json' },
      },
      failure: { name: 'DeadLettered', message: 'rejected' },
      category: 'unknown',
      attempts: 3,
      failedAt: '2026-01-01T00:05:00.000Z',
      policy: { kind: 'never' },
      state: 'parked',
      reason: 'never',
    })
    expect(letter.failure).not.toHaveProperty('stack')
    expect(letter.metadata).not.toHaveProperty('replays')
  })

  it('records the error of the consumer if the broker has it', async () => {
    const { dlq, eventsOf } = await aQueue()
    const stack = 'java.net.SocketTimeoutException: Read timed out\n\tat com.acme.Billing.charge'
    const error = { name: 'SocketTimeoutException', message: 'Read timed out', stack }
    await dlq.foreignLetters()(aForeignLetter({ error }))
    expect(eventsOf('captured')[0]!.letter).toMatchObject({
      failure: error,
      category: 'timeout',
      state: 'parked',
    })
  })

  it.each([Infinity, NaN, 1.5, -1, 2 ** 53])(
    'sets the delivery count to 1 if the broker reports %d',
    async (deliveries) => {
      const { dlq, eventsOf } = await aQueue()
      await dlq.foreignLetters()(aForeignLetter({ deliveries }))
      const source = { deliveries: 1 }
      expect(eventsOf('captured')[0]!.letter).toMatchObject({ attempts: 1, source })
    },
  )

  it('captures the same letter when the message is read again, even after it is resolved', async () => {
    const { dlq, eventsOf } = await aQueue()
    const keep = dlq.foreignLetters()
    await keep(aForeignLetter())
    await keep(aForeignLetter())
    await dlq.resolve(eventsOf('captured')[0]!.letter.id)
    await keep(aForeignLetter())
    expect(eventsOf('captured')).toHaveLength(1)
    expect(eventsOf('duplicate')).toHaveLength(2)
  })

  it('captures the same letter where the broker reports no timestamps', async () => {
    const { dlq, eventsOf, clock } = await aQueue()
    const { enqueuedAt: _, failedAt: __, ...timeless } = aForeignLetter()
    await dlq.foreignLetters()(timeless)
    await dlq.resolve(eventsOf('captured')[0]!.letter.id)
    await clock.advance(1000)
    await dlq.foreignLetters()(timeless)
    expect(eventsOf('captured')).toHaveLength(1)
    expect(eventsOf('captured')[0]!.letter.failedAt).toBe('2026-01-01T00:00:00.000Z')
  })

  it('captures a new letter when the message dies again, unless the first one is open', async () => {
    const { dlq, eventsOf } = await aQueue()
    const keep = dlq.foreignLetters()
    await keep(aForeignLetter({ death: '1' }))
    await keep(aForeignLetter({ death: '2' }))
    expect(eventsOf('captured')).toHaveLength(1)
    await dlq.resolve(eventsOf('captured')[0]!.letter.id)
    await keep(aForeignLetter({ death: '1' }))
    expect(eventsOf('captured')).toHaveLength(1)
    await keep(aForeignLetter({ death: '3' }))
    expect(eventsOf('captured')).toHaveLength(2)
  })

  it.each<[string, Partial<ForeignLetter>]>([
    ['id', { messageId: 'm-2' }],
    ['place', { source: 'other' }],
    ['body', { body: Buffer.from('{}') }],
    ['life', { headers: { 'redrive-replays': '1' } }],
  ])('captures a new letter for another %s', (_, other) => {
    const { context } = foreignCapture(aForeignLetter())
    const another = foreignCapture(aForeignLetter(other)).context
    expect(another.id).not.toBe(context.id)
    expect(another.dedupeKey).not.toBe(context.dedupeKey)
  })

  it('counts earlier returns, and adds a note at the limit', () => {
    const lives = (replays: number, maxReplays?: number): unknown => {
      const headers = { 'redrive-replays': String(replays), 'redrive-original-id': 'm-0' }
      const options = maxReplays === undefined ? {} : { maxReplays }
      return foreignCapture(aForeignLetter({ headers }), options).context.metadata
    }
    expect(lives(2)).toMatchObject({ replays: 2, originalId: 'm-0' })
    expect(lives(2)).not.toHaveProperty('note')
    expect(lives(3)).toMatchObject({
      note: 'returned to its source 3 times, and it died each time',
    })
    expect(lives(1, 1)).toHaveProperty('note')
  })

  it.each([
    ['text that does not match its content type', 'application/json', '{"order":', 'text/plain'],
    ['bytes that are not text', 'application/json', '\xff\xfe', 'application/octet-stream'],
    ['a body that matches its content type', 'application/json', '{}', 'application/json'],
  ])('stores %s so that it can be decoded', (_, contentType, text, kept) => {
    const body = Buffer.from(text, 'latin1')
    const { payload, context } = foreignCapture(aForeignLetter({ contentType, body }))
    expect(payload.contentType).toContain(kept)
    expect(Buffer.from(payload.bytes)).toEqual(body)
    expect(context.metadata).toMatchObject({ origin: { contentType } })
  })

  it('derives a valid queue name from an invalid name of the broker', () => {
    const queueOf = (source: string): string => foreignCapture(aForeignLetter({ source })).queue
    expect(queueOf('ORDERS/worker')).toBe('ORDERS/worker')
    const long = 'x'.repeat(249)
    for (const source of ['', 'a\nb', long]) {
      expect(queueOf(source)).toBe(queueOf(source))
      expect(queueOf(source).length).toBeLessThanOrEqual(200)
    }
    expect(queueOf(`${long}1`)).not.toBe(queueOf(`${long}2`))
  })

  it('uses the queue and the context of its options', async () => {
    const { dlq, eventsOf } = await aQueue()
    const context = ({ headers }: ForeignLetter): object => ({
      tags: [headers['tenant']],
      metadata: { shop: 7, origin: 'mine' },
    })
    await dlq.foreignLetters({ queue: 'dead orders', context })(aForeignLetter())
    expect(eventsOf('captured')[0]!.letter).toMatchObject({
      queue: 'dead orders',
      tags: ['acme'],
      metadata: { shop: 7, origin: { queue: 'orders' } },
    })
  })
})
