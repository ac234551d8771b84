import { describe, expect, it } from 'vitest'
import { Capturer } from '../../src/capture/capture.ts'
import { resolve } from '../../src/letter/moves.ts'
import { decodePayload, encodePayload } from '../../src/letter/payload.ts'
import { readDeadMessage, type DeadMessage } from '../../src/loops/dead-message.ts'
import { letterDestination, mailboxDestination } from '../../src/loops/destination.ts'
import { MainLoop } from '../../src/loops/main-loop.ts'
import { sqsMailbox } from '../../src/mailboxes/sqs/sqs.ts'
import { ObserverHub } from '../../src/observer.ts'
import { DLQPolicy } from '../../src/policy/dlq-policy.ts'
import type { Store } from '../../src/store.ts'
import { memoryStore } from '../../src/stores/memory/memory.ts'
import { fakeClock, type FakeClock } from '../../src/testing/fake-clock.ts'
import { aDeadMessage } from './a-dead-message.ts'
import { aLoop, faulty } from './a-loop.ts'

function aCapturer(clock: FakeClock = fakeClock()): { capturer: Capturer; store: Store } {
  const store = memoryStore({ clock })
  const capturer = new Capturer({
    store,
    clock,
    hub: new ObserverHub(),
    rulesFor: () => ({ priority: 'medium', maxRetries: 3 }),
    classifierRules: [],
    backoffs: {},
    capacity: undefined,
    maxPayloadBytes: 1_000_000,
  })
  return { capturer, store }
}

describe('a mailbox as destination of dead messages', () => {
  it('stores a body near its size limit with a short error', async () => {
    const { dlq } = aLoop()
    const size = dlq.powers.maxBodyBytes - 4096
    const bytes = new Uint8Array(size).map((_, at) => at % 251)
    const stack = 'at work\n'.repeat(100_000)
    const { failure } = aDeadMessage()
    const dead = aDeadMessage({
      body: encodePayload(bytes, 'application/octet-stream'),
      failure: { ...failure, stack },
    })
    await mailboxDestination(dlq).keep(dead, undefined)
    const [message] = await dlq.receive()
    const read = readDeadMessage(message!, dlq.name)
    expect(read).toMatchObject({ messageId: dead.messageId, sourceMailbox: dead.sourceMailbox })
    expect(read.failure).toMatchObject({ name: failure.name, message: failure.message, causes: [] })
    expect(read.body.contentType).toBe('application/octet-stream')
    expect(Buffer.compare(read.body.bytes, bytes)).toBe(0)
  })

  const largest = (most: number): Pick<DeadMessage, 'body'> => ({
    body: encodePayload(new Uint8Array(most).fill(0x0a), 'text/plain'),
  })

  it('stores a body at its size limit with the error in a header', async () => {
    const { dlq } = aLoop()
    const headers = { tenant: 'ünï\u007f 東京 "x"' }
    const dead = aDeadMessage({ ...largest(dlq.powers.maxBodyBytes), headers })
    await mailboxDestination(dlq).keep(dead, undefined)
    const [message] = await dlq.receive()
    const { body, ...read } = readDeadMessage(message!, dlq.name)
    expect(read).toMatchObject({ messageId: dead.messageId, lastError: dead.lastError, headers })
    expect(body.contentType).toBe('text/plain')
    expect(Buffer.compare(body.bytes, dead.body.bytes)).toBe(0)
  })

  it('rejects a body whose error does not fit into a header', async () => {
    const { dlq } = aLoop()
    const headers = { long: 'x'.repeat(8192) }
    const dead = aDeadMessage({ ...largest(dlq.powers.maxBodyBytes), headers })
    await expect(mailboxDestination(dlq).keep(dead, undefined)).rejects.toMatchObject({
      code: 'TOO_LARGE',
      message: expect.stringMatching(/^message .* cannot be stored in requests-dlq/) as string,
    })
  })
})

describe('letters as destination of dead messages', () => {
  it('have the source and the exact bytes of the message', async () => {
    const bench = aLoop()
    const { capturer, store } = aCapturer(bench.clock)
    const loop = new MainLoop({
      ...bench.parts,
      process: () => {
        throw Object.assign(new Error('connect ECONNREFUSED'), { code: 'ECONNREFUSED' })
      },
      dlq: { to: letterDestination(capturer), policy: new DLQPolicy({ maxDeliveryCount: 2 }) },
    })
    void loop.run()
    const id = await bench.requests.send({ requestId: 'r-1', n: 1 }, { replyTo: 'replies' })
    await bench.clock.advance(60_000)
    const { items } = await store.find({ payload: true })
    expect(items).toMatchObject([
      {
        queue: 'requests',
        category: 'network',
        attempts: 2,
        source: {
          kind: 'mailbox',
          mailbox: 'requests',
          messageId: id,
          replyTo: 'replies',
          requestId: 'r-1',
          deliveries: 2,
          enqueuedAt: '2026-01-01T00:00:00.000Z',
          firstReceivedAt: '2026-01-01T00:00:00.000Z',
        },
        failedAt: '2026-01-01T00:00:00.000Z',
        deadLetteredAt: '2026-01-01T00:01:00.000Z',
      },
    ])
    expect(decodePayload(items[0]!.payload)).toEqual({ requestId: 'r-1', n: 1 })
    expect(await bench.requests.approximateCount()).toBe(0)
  })

  it('are not duplicated when the message is delivered again after a crash, even if the letter was resolved', async () => {
    const bench = aLoop()
    const { capturer, store } = aCapturer(bench.clock)
    const source = faulty(bench.requests)
    source.faults.acknowledge = new Error('the process dies here')
    const loop = new MainLoop({
      ...bench.parts,
      requests: source.mailbox,
      visibilitySeconds: 60,
      process: () => {
        throw new Error('x')
      },
      dlq: { to: letterDestination(capturer), policy: new DLQPolicy({ maxDeliveryCount: 1 }) },
    })
    void loop.run()
    await bench.requests.send({ n: 1 })
    await bench.settle()
    const [letter] = (await store.find({ payload: true })).items
    const { id } = letter!
    await store.apply([
      resolve(letter!, { actor: 'ada', at: '2026-01-01T00:00:00.000Z', guard: 'version' }),
    ])
    delete source.faults.acknowledge
    await bench.clock.advance(120_000)
    expect(bench.eventsOf('dead-lettered')).toHaveLength(2)
    const states = ['pending', 'parked', 'resolved', 'exhausted', 'archived'] as const
    expect((await store.find({ state: [...states] })).items).toMatchObject([
      { id, state: 'resolved' },
    ])
    expect(await bench.requests.approximateCount()).toBe(0)
  })

  it('are new for another body with the same id, and after a replay', async () => {
    const { capturer, store } = aCapturer()
    const letters = letterDestination(capturer)
    const first = aDeadMessage()
    await letters.keep(first, new Error('x'))
    await letters.keep(first, new Error('x'))
    expect((await store.find({})).items).toHaveLength(1)
    await letters.keep(aDeadMessage({ body: { ...first.body, bytes: new Uint8Array([48]) } }), 'x')
    await letters.keep(aDeadMessage({ replays: 1 }), 'x')
    expect((await store.find({})).items).toHaveLength(3)
  })

  it('are parked if the message must not run again by itself', async () => {
    const { capturer, store } = aCapturer()
    const unreachable = Object.assign(new Error('x'), { code: 'ECONNREFUSED' })
    await letterDestination(capturer).keep(aDeadMessage({ hopeless: true }), unreachable)
    expect((await store.find({})).items).toMatchObject([{ state: 'parked' }])
  })

  it('have the queue, the priority and the tags of the context', async () => {
    const { capturer, store } = aCapturer()
    const letters = letterDestination(capturer, {
      queue: 'orders',
      context: ({ requestId }) => ({ priority: 'high', tags: [requestId ?? 'none'] }),
    })
    await letters.keep(aDeadMessage({ requestId: 'r-1' }), new Error('x'))
    expect((await store.find({})).items).toMatchObject([
      { queue: 'orders', priority: 'high', tags: ['r-1'] },
    ])
  })
})

describe('a mailbox as destination', () => {
  it('stores each message once', async () => {
    const { dlq } = aLoop()
    const destination = mailboxDestination(dlq)
    await destination.keep(aDeadMessage(), undefined)
    await destination.keep(aDeadMessage(), undefined)
    expect(await dlq.approximateCount()).toBe(1)
    await destination.keep(aDeadMessage({ replays: 1 }), undefined)
    expect(await dlq.approximateCount()).toBe(2)
  })

  it.each([
    ['has a line break', '00-x\n'],
    ['is too long', 'x'.repeat(9000)],
    ['is cut off', `00-${'a'.repeat(32)}-`],
  ])('stores a message whose traceparent %s, without passing it on', async (_, traceparent) => {
    const { dlq } = aLoop()
    await mailboxDestination(dlq).keep(aDeadMessage({ headers: { traceparent } }), undefined)
    const [message] = await dlq.receive()
    expect(message!.headers).toEqual({})
    expect(readDeadMessage(message!, dlq.name).headers).toEqual({ traceparent })
  })

  it('passes on a traceparent', async () => {
    const { dlq } = aLoop()
    const headers = { traceparent: `00-${'a'.repeat(32)}-00f067aa0ba902b7-01` }
    await mailboxDestination(dlq).keep(aDeadMessage({ headers }), undefined)
    expect((await dlq.receive())[0]!.headers).toEqual(headers)
  })

  it('rejects a delay above the limit of the broker when it is created', () => {
    const url = 'sqs://localhost/dead?region=us-east-1'
    for (const [mailbox, delaySeconds] of [
      [aLoop().dlq, 43_201],
      [aLoop().dlq, -1],
      [aLoop().dlq, Number.NaN],
      [sqsMailbox({ name: 'dead', url }), 901],
    ] as const)
      expect(() => mailboxDestination(mailbox, { delaySeconds })).toThrow(
        expect.objectContaining({
          code: 'INVALID_INPUT',
          message: expect.stringContaining('delaySeconds') as string,
        }) as Error,
      )
    mailboxDestination(sqsMailbox({ name: 'dead', url }), { delaySeconds: 900 })
  })

  it('shows a message to consumers after its delay', async () => {
    const { dlq, clock } = aLoop()
    await mailboxDestination(dlq, { delaySeconds: 60 }).keep(aDeadMessage(), undefined)
    expect(await dlq.receive()).toEqual([])
    await clock.advance(60_000)
    expect(await dlq.receive()).toHaveLength(1)
  })
})
