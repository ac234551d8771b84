import * as fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { encodePayload } from '../../src/letter/payload.ts'
import {
  envelopeType,
  readDeadMessage,
  toEnvelope,
  type DeadMessage,
} from '../../src/loops/dead-message.ts'
import { mailboxDestination } from '../../src/loops/destination.ts'
import { aDeadMessage } from './a-dead-message.ts'
import { aLoop } from './a-loop.ts'

async function throughMailbox(dead: DeadMessage): Promise<DeadMessage> {
  const { dlq } = aLoop()
  await mailboxDestination(dlq).keep(dead, undefined)
  const [message] = await dlq.receive()
  return readDeadMessage(message!, dlq.name)
}

describe('a dead message in a mailbox', () => {
  it('is read as it was written', async () => {
    const dead = aDeadMessage({
      requestId: 'r-1',
      replyTo: 'replies',
      traceId: 'a'.repeat(32),
      headers: { tenant: 'acme', traceparent: 'x' },
      hopeless: true,
      note: 'why',
      history: [{ at: '2026-01-01T00:00:00.000Z', error: 'e', errorType: 'T' }],
      failure: {
        name: 'E',
        message: 'm',
        code: 'ECONNRESET',
        status: 503,
        retryAfterMs: 1000,
        stack: 's',
        causes: [{ name: 'C', message: 'c', causes: [], at: '2026-01-01T00:00:00.000Z' }],
        at: '2026-01-01T00:00:00.000Z',
      },
    })
    expect(await throughMailbox(dead)).toEqual(dead)
  })

  it('is read as it was written, even with an empty id', async () => {
    const dead = aDeadMessage({ messageId: '', originalId: '' })
    expect(await throughMailbox(dead)).toMatchObject({ messageId: '', sourceMailbox: 'requests' })
  })

  it('preserves every byte of its body, whatever its content type', async () => {
    const types = ['application/json', 'text/plain; charset=utf-16', 'application/octet-stream']
    await fc.assert(
      fc.asyncProperty(
        fc.uint8Array({ maxLength: 64 }),
        fc.constantFrom(...types),
        async (bytes, contentType) => {
          const dead = aDeadMessage({ body: encodePayload(bytes, contentType) })
          const { body } = await throughMailbox(dead)
          expect(body.contentType).toBe(contentType)
          expect([...body.bytes]).toEqual([...bytes])
        },
      ),
      { numRuns: 200 },
    )
  })

  it('has a readable body if it is text', () => {
    const dead = aDeadMessage({ body: encodePayload({ order: 'Zürich' }) })
    expect(toEnvelope(dead)).toContain('Zürich')
  })

  it('is immutable', async () => {
    const dead = await throughMailbox(aDeadMessage())
    expect(Object.isFrozen(dead)).toBe(true)
  })
})

describe('a message without our envelope', () => {
  it('is the dead message itself', async () => {
    const { dlq } = aLoop()
    const id = await dlq.send({ order: 1 }, { replyTo: 'replies' })
    const [message] = await dlq.receive()
    expect(readDeadMessage(message!, 'requests-dlq')).toMatchObject({
      messageId: id,
      sourceMailbox: 'requests-dlq',
      deliveryCount: 1,
      lastErrorType: 'unknown',
      replyTo: 'replies',
      body: { contentType: 'application/json' },
    })
  })

  it.each([
    ['no JSON', '{'],
    ['another version', JSON.stringify({ ...JSON.parse(toEnvelope(aDeadMessage())), v: 2 })],
    ['a field of another type', toEnvelope({ ...aDeadMessage(), replays: -1 })],
    ['nested too deeply', '{"causes":['.repeat(50_000)],
  ])('is preserved although it claims to be an envelope: %s', async (_, text) => {
    const { dlq } = aLoop()
    await dlq.send(text, { contentType: envelopeType })
    const [message] = await dlq.receive()
    const dead = readDeadMessage(message!, dlq.name)
    expect(dead.lastErrorType).toBe('unknown')
    expect(Buffer.from(dead.body.bytes).toString()).toBe(text)
  })

  it('may have invalid lineage headers, which count as absent', async () => {
    const { dlq } = aLoop()
    const headers = { 'redrive-replays': '-3', 'redrive-first-failed-at': 'yesterday' }
    const id = await dlq.send({}, { headers })
    const [message] = await dlq.receive()
    expect(readDeadMessage(message!, dlq.name)).toMatchObject({
      replays: 0,
      originalId: id,
      firstFailedAt: '2026-01-01T00:00:00.000Z',
    })
  })
})
