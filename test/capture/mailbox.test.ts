import { describe, expect, it } from 'vitest'
import { messageCapture, messageKey, thrownOf } from '../../src/capture/mailbox.ts'
import { toFailure } from '../../src/letter/failure.ts'
import { aDeadMessage } from '../loops/a-dead-message.ts'

describe('messageCapture', () => {
  it('derives the same letter id each time, sorted by the send time', () => {
    const early = messageCapture(aDeadMessage({ enqueuedAt: '2026-01-01T00:00:00.000Z' }), 'x')
    const again = messageCapture(
      aDeadMessage({ enqueuedAt: '2026-01-01T00:00:00.000Z', deliveryCount: 9 }),
      'y',
    )
    const late = messageCapture(
      aDeadMessage({ messageId: 'm-0', enqueuedAt: '2026-01-01T00:00:00.001Z' }),
      'x',
    )
    expect(again.context.id).toBe(early.context.id)
    expect(late.context.id! > early.context.id!).toBe(true)
    expect(early.context.id).toMatch(
      /^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/,
    )
  })

  it('derives the same dedupe key when the broker reports another send time', () => {
    const one = messageCapture(aDeadMessage({ enqueuedAt: '2026-01-01T00:00:00.000Z' }), 'x')
    const two = messageCapture(aDeadMessage({ enqueuedAt: '2026-01-02T00:00:00.000Z' }), 'x')
    expect(one.context.dedupeKey).toBe(two.context.dedupeKey)
  })

  it.each([
    ['mailbox', { sourceMailbox: 'other' }],
    ['id', { messageId: 'm-2' }],
    ['replay', { replays: 1 }],
  ])('derives another dedupe key for another %s', (_, other) => {
    expect(messageKey(aDeadMessage(other))).not.toBe(messageKey(aDeadMessage()))
  })

  it('copies the trace, the headers and the lineage', () => {
    const { context, source } = messageCapture(
      aDeadMessage({
        headers: { traceparent: '00-aa-bb-01', tenant: 'acme' },
        replays: 2,
        originalId: 'm-0',
      }),
      'x',
      { context: { metadata: { shop: 7 } } },
    )
    expect(context).toMatchObject({
      traceparent: '00-aa-bb-01',
      headers: { tenant: 'acme' },
      metadata: { replays: 2, originalId: 'm-0', shop: 7 },
      attempts: 5,
    })
    expect(source).not.toHaveProperty('replyTo')
  })

  it('rejects an invalid queue name or context', () => {
    expect(() => messageCapture(aDeadMessage(), 'x', { queue: '' })).toThrow('queue name')
    expect(() => messageCapture(aDeadMessage(), 'x', { context: { maxRetries: -1 } })).toThrow(
      'maxRetries',
    )
  })
})

it('thrownOf rebuilds an error that converts to the same failure', () => {
  const at = '2026-01-01T00:00:00.000Z'
  const cause = Object.assign(new Error('reset'), { code: 'ECONNRESET' })
  const failure = toFailure(new TypeError('failed', { cause }), at)
  expect(toFailure(thrownOf(failure), at)).toEqual(failure)
})
