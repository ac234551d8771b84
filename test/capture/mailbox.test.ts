import { describe, expect, it } from 'vitest'
import { messageCapture, messageKey, thrownOf } from '../../src/capture/mailbox.ts'
import { toFailure } from '../../src/letter/failure.ts'
import { aDeadMessage } from '../loops/a-dead-message.ts'

describe('a message at the door', () => {
  it('gets the same letter id each time, which sorts by when the message was sent', () => {
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

  it('has the same key although the broker forgot when it was sent', () => {
    const one = messageCapture(aDeadMessage({ enqueuedAt: '2026-01-01T00:00:00.000Z' }), 'x')
    const two = messageCapture(aDeadMessage({ enqueuedAt: '2026-01-02T00:00:00.000Z' }), 'x')
    expect(one.context.dedupeKey).toBe(two.context.dedupeKey)
  })

  it.each([
    ['mailbox', { sourceMailbox: 'other' }],
    ['id', { messageId: 'm-2' }],
    ['replay', { replays: 1 }],
  ])('has another key for another %s', (_, other) => {
    expect(messageKey(aDeadMessage(other))).not.toBe(messageKey(aDeadMessage()))
  })

  it('carries its trace, its headers and its past', () => {
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

  it('refuses a name or a context that a letter cannot have', () => {
    expect(() => messageCapture(aDeadMessage(), 'x', { queue: '' })).toThrow('queue name')
    expect(() => messageCapture(aDeadMessage(), 'x', { context: { maxRetries: -1 } })).toThrow(
      'maxRetries',
    )
  })
})

it('a failure that came as data is read as the failure that it was', () => {
  const at = '2026-01-01T00:00:00.000Z'
  const cause = Object.assign(new Error('reset'), { code: 'ECONNRESET' })
  const failure = toFailure(new TypeError('failed', { cause }), at)
  expect(toFailure(thrownOf(failure), at)).toEqual(failure)
})
