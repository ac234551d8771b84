import { describe, expect, it } from 'vitest'
import { foreignCapture } from '../../src/taps/capture.ts'
import type { ForeignLetter } from '../../src/taps/tap.ts'
import { aQueue } from '../a-queue.ts'
import { aForeignLetter } from './a-foreign-letter.ts'

describe('a dead letter of another broker', () => {
  it('is kept with its bytes, its headers and its way home, and parked', async () => {
    const { dlq, heard } = await aQueue()
    await dlq.foreignLetters()(aForeignLetter())
    const letter = (await dlq.get(heard('captured')[0]!.letter.id))!
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

  it('tells what its consumer died of, where somebody wrote that down', async () => {
    const { dlq, heard } = await aQueue()
    const stack = 'java.net.SocketTimeoutException: Read timed out\n\tat com.acme.Billing.charge'
    const error = { name: 'SocketTimeoutException', message: 'Read timed out', stack }
    await dlq.foreignLetters()(aForeignLetter({ error }))
    expect(heard('captured')[0]!.letter).toMatchObject({
      failure: error,
      category: 'timeout',
      state: 'parked',
    })
  })

  it.each([Infinity, NaN, 1.5, -1, 2 ** 53])(
    'counts once what says that it was delivered %d times: a letter has whole numbers',
    async (deliveries) => {
      const { dlq, heard } = await aQueue()
      await dlq.foreignLetters()(aForeignLetter({ deliveries }))
      const source = { deliveries: 1 }
      expect(heard('captured')[0]!.letter).toMatchObject({ attempts: 1, source })
    },
  )

  it('is the same letter when it is read again, also once it is resolved', async () => {
    const { dlq, heard } = await aQueue()
    const keep = dlq.foreignLetters()
    await keep(aForeignLetter())
    await keep(aForeignLetter())
    await dlq.resolve(heard('captured')[0]!.letter.id)
    await keep(aForeignLetter())
    expect(heard('captured')).toHaveLength(1)
    expect(heard('duplicate')).toHaveLength(2)
  })

  it('is the same letter also where the broker tells no moments', async () => {
    const { dlq, heard, clock } = await aQueue()
    const { enqueuedAt: _, failedAt: __, ...timeless } = aForeignLetter()
    await dlq.foreignLetters()(timeless)
    await dlq.resolve(heard('captured')[0]!.letter.id)
    await clock.advance(1000)
    await dlq.foreignLetters()(timeless)
    expect(heard('captured')).toHaveLength(1)
    expect(heard('captured')[0]!.letter.failedAt).toBe('2026-01-01T00:00:00.000Z')
  })

  it('is another letter when the message dies again, unless the first is still open', async () => {
    const { dlq, heard } = await aQueue()
    const keep = dlq.foreignLetters()
    await keep(aForeignLetter({ death: '1' }))
    await keep(aForeignLetter({ death: '2' }))
    expect(heard('captured')).toHaveLength(1)
    await dlq.resolve(heard('captured')[0]!.letter.id)
    await keep(aForeignLetter({ death: '1' }))
    expect(heard('captured')).toHaveLength(1)
    await keep(aForeignLetter({ death: '3' }))
    expect(heard('captured')).toHaveLength(2)
  })

  it.each<[string, Partial<ForeignLetter>]>([
    ['id', { messageId: 'm-2' }],
    ['place', { source: 'other' }],
    ['body', { body: Buffer.from('{}') }],
    ['life', { headers: { 'redrive-replays': '1' } }],
  ])('is another letter with another %s', (_, other) => {
    const { context } = foreignCapture(aForeignLetter())
    const another = foreignCapture(aForeignLetter(other)).context
    expect(another.id).not.toBe(context.id)
    expect(another.dedupeKey).not.toBe(context.dedupeKey)
  })

  it('knows its earlier lives, and says when they are enough', () => {
    const lives = (replays: number, maxReplays?: number): unknown => {
      const headers = { 'redrive-replays': String(replays), 'redrive-original-id': 'm-0' }
      const options = maxReplays === undefined ? {} : { maxReplays }
      return foreignCapture(aForeignLetter({ headers }), options).context.metadata
    }
    expect(lives(2)).toMatchObject({ replays: 2, originalId: 'm-0' })
    expect(lives(2)).not.toHaveProperty('note')
    expect(lives(3)).toMatchObject({ note: 'sent back 3 times, and it died each time' })
    expect(lives(1, 1)).toHaveProperty('note')
  })

  it.each([
    ['text that is not what it is said to be', 'application/json', '{"order":', 'text/plain'],
    ['bytes that are not', 'application/json', '\xff\xfe', 'application/octet-stream'],
    ['what is as it is said to be', 'application/json', '{}', 'application/json'],
  ])('keeps %s so that it can run', (_, contentType, text, kept) => {
    const body = Buffer.from(text, 'latin1')
    const { payload, context } = foreignCapture(aForeignLetter({ contentType, body }))
    expect(payload.contentType).toContain(kept)
    expect(Buffer.from(payload.bytes)).toEqual(body)
    expect(context.metadata).toMatchObject({ origin: { contentType } })
  })

  it('gets a queue name of its own where that of the broker is none', () => {
    const queueOf = (source: string): string => foreignCapture(aForeignLetter({ source })).queue
    expect(queueOf('ORDERS/worker')).toBe('ORDERS/worker')
    const long = 'x'.repeat(249)
    for (const source of ['', 'a\nb', long]) {
      expect(queueOf(source)).toBe(queueOf(source))
      expect(queueOf(source).length).toBeLessThanOrEqual(200)
    }
    expect(queueOf(`${long}1`)).not.toBe(queueOf(`${long}2`))
  })

  it('goes to the queue that is named, with what is said about it', async () => {
    const { dlq, heard } = await aQueue()
    const context = ({ headers }: ForeignLetter): object => ({
      tags: [headers['tenant']],
      metadata: { shop: 7, origin: 'mine' },
    })
    await dlq.foreignLetters({ queue: 'dead orders', context })(aForeignLetter())
    expect(heard('captured')[0]!.letter).toMatchObject({
      queue: 'dead orders',
      tags: ['acme'],
      metadata: { shop: 7, origin: { queue: 'orders' } },
    })
  })
})
