import { describe, expect, it } from 'vitest'
import { DLQConsumer } from '../../../src/loops/dlq-consumer.ts'
import { mailboxDestination } from '../../../src/loops/destination.ts'
import { replay, replayHandler } from '../../../src/loops/handlers/replay.ts'
import { MainLoop } from '../../../src/loops/main-loop.ts'
import { encodePayload } from '../../../src/letter/payload.ts'
import type { MailboxResolver } from '../../../src/mailbox.ts'
import { memoryMailbox } from '../../../src/mailboxes/memory/memory.ts'
import { DLQPolicy } from '../../../src/policy/dlq-policy.ts'
import { aDeadMessage } from '../a-dead-message.ts'
import { aLoop } from '../a-loop.ts'

const context = { attempt: 1, signal: new AbortController().signal } as never

describe('a replay', () => {
  it('sends the exact bytes, with the reply address, the headers and the lineage', async () => {
    const { requests } = aLoop()
    const bytes = new Uint8Array([1, 2, 255])
    const dead = aDeadMessage({
      body: encodePayload(bytes, 'application/x-thing'),
      replyTo: 'replies',
      headers: { tenant: 'acme' },
      firstFailedAt: '2025-12-31T00:00:00.000Z',
      replays: 1,
      originalId: 'm-0',
    })
    expect(await replay(dead, { source: requests })).toMatchObject({ kind: 'replayed' })
    const [message] = await requests.receive()
    expect(message).toMatchObject({
      replyTo: 'replies',
      body: { contentType: 'application/x-thing' },
      headers: {
        tenant: 'acme',
        'redrive-replays': '2',
        'redrive-first-failed-at': '2025-12-31T00:00:00.000Z',
        'redrive-original-id': 'm-0',
      },
    })
    expect([...message!.body.bytes]).toEqual([...bytes])
  })

  it('sends one message when called twice, and never reuses the id of the message that died', async () => {
    const { requests } = aLoop()
    const dead = aDeadMessage()
    await replay(dead, { source: requests })
    await replay(dead, { source: requests })
    const messages = await requests.receive({ max: 10 })
    expect(messages).toHaveLength(1)
    expect(messages[0]?.id).not.toBe(dead.messageId)
  })

  it('sends two messages for two bodies with the same id', async () => {
    const { requests, take } = aLoop()
    for (const event of ['created', 'cancelled'])
      await replay(aDeadMessage({ body: encodePayload({ event }) }), { source: requests })
    expect(await take(requests)).toEqual([{ event: 'created' }, { event: 'cancelled' }])
  })

  it('preserves headers and an id with line breaks, URL-encoded', async () => {
    const { requests } = aLoop()
    const headers = { 'x-exception-stacktrace': 'java.lang.X\n\tat y' }
    await replay(aDeadMessage({ messageId: 'a\nb', headers }), { source: requests })
    expect((await requests.receive())[0]!.headers).toMatchObject({
      'x-exception-stacktrace': 'java.lang.X%0A%09at y',
      'redrive-original-id': 'a%0Ab',
    })
  })

  it('survives a foreign content type that no connection could carry', async () => {
    const { requests } = aLoop()
    for (const contentType of ['', 'text/plain;\ncharset=utf-8', 'x'.repeat(201)]) {
      const body = { ...encodePayload('odd', 'text/plain'), contentType }
      await replay(aDeadMessage({ messageId: `of ${contentType.length}`, body }), {
        source: requests,
      })
      const [message] = await requests.receive()
      expect(message?.body.contentType).toBe('application/octet-stream')
      expect(Buffer.from(message!.body.bytes).toString()).toBe('odd')
    }
  })

  it('preserves as many headers as a message may have', async () => {
    const { requests } = aLoop()
    const all = Array.from({ length: 100 }, (_, n) => [`h${n}`, String(n)])
    const headers = Object.fromEntries(all) as Record<string, string>
    await replay(aDeadMessage({ headers }), { source: requests })
    const [message] = await requests.receive()
    expect(message?.headers).toMatchObject({ ...headers, 'redrive-replays': '1' })
  })

  it('finds the source by its name, and fails when it is unknown', async () => {
    const { requests } = aLoop()
    const source: MailboxResolver = {
      resolve: (name) => (name === 'requests' ? requests : undefined),
    }
    await replay(aDeadMessage(), { source })
    expect(await requests.approximateCount()).toBe(1)
    await expect(replay(aDeadMessage({ sourceMailbox: 'gone' }), { source })).rejects.toThrow(
      'the mailbox gone that the message came from is unknown',
    )
  })

  it('refuses an unknown reply address, or sends without it and reports it, by option', async () => {
    const bench = aLoop()
    const { requests: source, onEvent } = bench
    const replies: MailboxResolver = { resolve: () => undefined }
    const dead = aDeadMessage({ replyTo: 'gone' })
    await expect(replay(dead, { source, replies })).rejects.toMatchObject({
      code: 'REPLY_UNAVAILABLE',
    })
    expect(await source.approximateCount()).toBe(0)
    await replay(dead, { source, replies, unknownReplyTo: 'replay-without-reply', onEvent })
    const [message] = await source.receive()
    expect(message?.replyTo).toBeUndefined()
    expect(bench.eventsOf('error')).toHaveLength(1)
  })

  it('sends the result of transform', async () => {
    const { requests: source } = aLoop()
    await replay(aDeadMessage(), {
      source,
      transform: (value) => ({ ...(value as object), fixed: true }),
    })
    const [message] = await source.receive()
    expect(message?.value()).toEqual({ order: 42, fixed: true })
  })

  it.each<[string, unknown]>([
    ['nothing', () => undefined],
    ['a function', () => () => ({})],
  ])('sends nothing when transform returns %s', async (_, transform) => {
    const { requests: source } = aLoop()
    const given = { source, transform: transform as () => unknown }
    await expect(replay(aDeadMessage(), given)).rejects.toMatchObject({
      code: 'INVALID_INPUT',
      message: expect.stringContaining('return the body to send') as string,
    })
    expect(await source.approximateCount()).toBe(0)
  })
})

describe('replayHandler', () => {
  it('replays a message that always fails three times, then parks it', async () => {
    const bench = aLoop()
    const parked = memoryMailbox({ name: 'parked', clock: bench.clock })
    const loop = new MainLoop({
      ...bench.parts,
      process: () => {
        throw new Error('always')
      },
      dlq: { to: bench.dlq, policy: new DLQPolicy({ maxDeliveryCount: 1 }) },
    })
    const consumer = new DLQConsumer({
      mailbox: bench.dlq,
      clock: bench.clock,
      onEvent: bench.onEvent,
      handler: replayHandler({ source: bench.requests }),
      parked,
    })
    void loop.run()
    void consumer.run()
    const id = await bench.requests.send({ n: 1 }, { replyTo: 'replies' })
    await bench.clock.advance(60_000)
    expect(bench.eventsOf('dead-lettered')).toHaveLength(4)
    const handled = bench.eventsOf('dead-letter-handled').map(({ action }) => action)
    expect(handled).toEqual(['replayed', 'replayed', 'replayed'])
    expect(bench.eventsOf('dead-letter-parked')).toMatchObject([
      { why: 'already replayed 3 times' },
    ])
    const [message] = await parked.receive()
    expect(message?.value()).toMatchObject({
      originalId: id,
      replays: 3,
      replyTo: 'replies',
      firstFailedAt: '2026-01-01T00:00:00.000Z',
    })
    expect(await bench.requests.approximateCount()).toBe(0)
  })

  it('parks a message that is not fit to run again, unless it is transformed', async () => {
    const { requests: source } = aLoop()
    const dead = aDeadMessage({ hopeless: true })
    expect(await replayHandler({ source })(dead, context)).toMatchObject({ action: 'park' })
    const transform = (): unknown => ({ order: 1 })
    expect(await replayHandler({ source, transform })(dead, context)).toEqual({
      action: 'replayed',
    })
  })

  it('leaves the dead message in place if it cannot be sent', async () => {
    const bench = aLoop()
    const full = memoryMailbox({ name: 'requests', clock: bench.clock, maxMessages: 1 })
    await full.send({})
    await mailboxDestination(bench.dlq).keep(aDeadMessage(), undefined)
    const handler = replayHandler({ source: full })
    void new DLQConsumer({ mailbox: bench.dlq, clock: bench.clock, handler }).run()
    await bench.settle()
    expect(await bench.dlq.approximateCount()).toBe(1)
  })
})
