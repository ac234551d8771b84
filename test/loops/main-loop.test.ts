import { describe, expect, it } from 'vitest'
import { RedriveError } from '../../src/errors.ts'
import { decodePayload } from '../../src/letter/payload.ts'
import { readDeadMessage, type DeadMessage } from '../../src/loops/dead-message.ts'
import { MainLoop, type MainLoopOptions } from '../../src/loops/main-loop.ts'
import type { ProcessContext } from '../../src/loops/work.ts'
import type { Mailbox } from '../../src/mailbox.ts'
import { fixed } from '../../src/policy/backoff.ts'
import { DLQPolicy } from '../../src/policy/dlq-policy.ts'
import { deferred } from '../a-queue.ts'
import { aLoop, faulty, type LoopBench } from './a-loop.ts'

interface Asked {
  requestId?: string
  n?: number
}

const unavailable = (): RedriveError =>
  new RedriveError('MAILBOX_UNAVAILABLE', 'the broker is unreachable')

const fails = (): never => {
  throw new TypeError('no such order')
}

/** A running loop on the test mailboxes. */
function running(
  bench: LoopBench,
  options: Partial<MainLoopOptions<Asked, unknown>> = {},
): MainLoop<Asked> {
  const { requests, clock, onEvent } = bench
  const loop = new MainLoop<Asked>({ requests, clock, onEvent, ...options })
  void loop.run()
  return loop
}

async function deadOf(dlq: Mailbox): Promise<DeadMessage[]> {
  const messages = await dlq.receive({ max: 10 })
  return messages.map((message) => readDeadMessage(message, dlq.name))
}

describe('MainLoop', () => {
  it('receives, processes, replies and acknowledges', async () => {
    const bench = aLoop()
    running(bench, { process: ({ n = 0 }) => n * 2 })
    await bench.requests.send({ requestId: 'r-1', n: 21 }, { replyTo: 'replies' })
    await bench.settle()
    expect(await bench.take(bench.replies)).toEqual([
      { requestId: 'r-1', output: 42, completedAt: '2026-01-01T00:00:00.000Z' },
    ])
    expect(await bench.requests.approximateCount()).toBe(0)
    expect(bench.eventsOf('message-done')).toMatchObject([{ requestId: 'r-1', deliveries: 1 }])
  })

  it('runs the process method of a subclass', async () => {
    const bench = aLoop()
    class Greeter extends MainLoop<{ name: string }, string> {
      override process(request: { name: string }, { attempt }: ProcessContext): string {
        return `hello ${request.name}, attempt ${attempt}`
      }
    }
    void new Greeter({ requests: bench.requests, clock: bench.clock }).run()
    await bench.requests.send({ name: 'Ada' }, { replyTo: 'replies' })
    await bench.settle()
    expect(await bench.take(bench.replies)).toMatchObject([{ output: 'hello Ada, attempt 1' }])
  })

  it('is rejected without a process function', () => {
    const { requests } = aLoop()
    expect(() => new MainLoop({ requests })).toThrow('needs the option process')
  })

  it('acknowledges a message without a reply address', async () => {
    const bench = aLoop()
    running(bench, { process: () => 1 })
    await bench.requests.send({})
    await bench.settle()
    expect(await bench.requests.approximateCount()).toBe(0)
  })

  it('hides a failed message one minute more per failure, up to fifteen', async () => {
    const bench = aLoop()
    let seen: number[] = []
    running(bench, {
      process: (_, { attempt }) => {
        seen = [...seen, attempt]
        fails()
      },
    })
    await bench.requests.send({})
    await bench.settle()
    for (let n = 1; n <= 17; n++) {
      await bench.clock.advance(Math.min(60 * n, 900) * 1000 - 1)
      expect(seen).toHaveLength(n)
      await bench.clock.advance(1)
      expect(seen).toHaveLength(n + 1)
    }
    expect(bench.eventsOf('message-failed').map((event) => event.delaySeconds)).toEqual([
      60, 120, 180, 240, 300, 360, 420, 480, 540, 600, 660, 720, 780, 840, 900, 900, 900, 900,
    ])
  })

  it('waits at least as long as the failure asks for, up to twelve hours', async () => {
    const bench = aLoop()
    const waits = [90, 20 * 3600]
    running(bench, {
      process: () => {
        throw Object.assign(new Error('slow down'), { status: 429, retryAfter: waits.shift() })
      },
    })
    await bench.requests.send({})
    await bench.settle()
    await bench.clock.advance(90_000)
    expect(bench.eventsOf('message-failed').map((event) => event.delaySeconds)).toEqual([
      90, 43_200,
    ])
  })

  it('waits by its own backoff, with jitter', async () => {
    const bench = aLoop()
    running(bench, { process: fails, backoff: fixed(10_000, 0.5) })
    await bench.requests.send({})
    await bench.settle()
    const [{ delaySeconds } = { delaySeconds: 0 }] = bench.eventsOf('message-failed')
    expect(delaySeconds).toBeGreaterThanOrEqual(5)
    expect(delaySeconds).toBeLessThanOrEqual(15)
    expect(delaySeconds).not.toBe(10)
  })

  it('retries forever without a dead letter queue, without a reply', async () => {
    const bench = aLoop()
    running(bench, { process: fails })
    await bench.requests.send({}, { replyTo: 'replies' })
    await bench.clock.advance(24 * 3600 * 1000)
    expect(bench.eventsOf('message-failed').length).toBeGreaterThan(90)
    expect(await bench.requests.approximateCount()).toBe(1)
    expect(await bench.replies.approximateCount()).toBe(0)
  })

  it('replies with the error and acknowledges, with reply-and-ack', async () => {
    const bench = aLoop()
    running(bench, { process: fails, withoutPolicy: 'reply-and-ack' })
    await bench.requests.send({ requestId: 'r-1' }, { replyTo: 'replies' })
    await bench.settle()
    expect(await bench.take(bench.replies)).toMatchObject([
      { requestId: 'r-1', error: 'no such order' },
    ])
    expect(await bench.requests.approximateCount()).toBe(0)
    expect(bench.eventsOf('message-refused')).toHaveLength(1)
  })

  it('keeps a message whose error reply failed, with reply-and-ack', async () => {
    const bench = aLoop()
    running(bench, { process: fails, withoutPolicy: 'reply-and-ack' })
    await bench.requests.send({}, { replyTo: 'nobody-knows' })
    await bench.settle()
    expect(await bench.requests.approximateCount()).toBe(1)
    expect(bench.eventsOf('message-failed')).toMatchObject([{ during: 'reply' }])
  })

  it('does not reply with the error of work whose lease is lost', async () => {
    const bench = aLoop()
    running(bench, {
      visibilitySeconds: 10,
      withoutPolicy: 'reply-and-ack',
      process: (_, { signal }) =>
        new Promise((_resolve, reject) =>
          signal.addEventListener('abort', () => reject(signal.reason as Error)),
        ),
    })
    await bench.requests.send({}, { replyTo: 'replies' })
    await bench.clock.advance(15_000)
    expect(bench.eventsOf('message-lost')).toMatchObject([{ during: 'refusing' }])
    expect(await bench.replies.approximateCount()).toBe(0)
  })

  it('treats a result with ok: false as a failure', async () => {
    const bench = aLoop()
    running(bench, { process: () => ({ ok: false, error: new Error('half of it') }) })
    await bench.requests.send({}, { replyTo: 'replies' })
    await bench.settle()
    expect(bench.eventsOf('message-failed')).toHaveLength(1)
    expect(await bench.replies.approximateCount()).toBe(0)
  })

  it('runs as many messages at a time as concurrency allows', async () => {
    const bench = aLoop()
    const gate = deferred()
    let active = 0
    let most = 0
    running(bench, {
      concurrency: 3,
      process: async () => {
        most = Math.max(most, ++active)
        await gate.promise
        active--
      },
    })
    for (let n = 0; n < 7; n++) await bench.requests.send({ n })
    await bench.settle()
    expect(most).toBe(3)
    gate.resolve()
    await bench.settle()
    expect(await bench.requests.approximateCount()).toBe(0)
    expect(most).toBe(3)
  })

  it('gives every delivery of a message the same idempotency key', async () => {
    const bench = aLoop()
    const keys = new Set<string>()
    running(bench, {
      process: (_, { idempotencyKey }) => {
        keys.add(idempotencyKey)
        fails()
      },
    })
    const id = await bench.requests.send({})
    await bench.clock.advance(200_000)
    expect(bench.eventsOf('message-failed').length).toBeGreaterThan(1)
    expect([...keys]).toEqual([`requests:${id}:0`])
  })
})

describe('the dead letters of a MainLoop', () => {
  it('are stored after as many deliveries as the policy allows, and not before', async () => {
    const bench = aLoop()
    const { dlq } = bench
    const policy = new DLQPolicy({ maxDeliveryCount: 3 })
    running(bench, { process: fails, dlq: { to: dlq, policy } })
    await bench.requests.send({}, { replyTo: 'replies' })
    await bench.clock.advance(60_000)
    expect(await dlq.approximateCount()).toBe(0)
    expect(await bench.replies.approximateCount()).toBe(0)
    await bench.clock.advance(120_000)
    expect(await dlq.approximateCount()).toBe(1)
    expect(await bench.requests.approximateCount()).toBe(0)
    expect(await bench.take(bench.replies)).toMatchObject([
      { error: 'Dead-lettered after 3 attempts: no such order' },
    ])
  })

  it('contain all that is known: source, deliveries, error, and every failure seen', async () => {
    const bench = aLoop()
    running(bench, {
      process: fails,
      dlq: { to: bench.dlq, policy: new DLQPolicy({ maxDeliveryCount: 2 }) },
    })
    const trace = '4bf92f3577b34da6a3ce929d0e0e4736'
    const id = await bench.requests.send(
      { requestId: 'r-1', n: 7 },
      {
        replyTo: 'replies',
        headers: { traceparent: `00-${trace}-00f067aa0ba902b7-01`, tenant: 'acme' },
      },
    )
    await bench.clock.advance(60_000)
    const [dead] = await deadOf(bench.dlq)
    expect(dead).toMatchObject({
      messageId: id,
      sourceMailbox: 'requests',
      deliveryCount: 2,
      lastError: 'no such order',
      lastErrorType: 'TypeError',
      firstReceivedAt: '2026-01-01T00:00:00.000Z',
      deadLetteredAt: '2026-01-01T00:01:00.000Z',
      firstFailedAt: '2026-01-01T00:00:00.000Z',
      requestId: 'r-1',
      replyTo: 'replies',
      traceId: trace,
      replays: 0,
      originalId: id,
      history: [
        { at: '2026-01-01T00:00:00.000Z', error: 'no such order', errorType: 'TypeError' },
        { at: '2026-01-01T00:01:00.000Z', error: 'no such order', errorType: 'TypeError' },
      ],
    })
    expect(dead?.headers['tenant']).toBe('acme')
    expect(dead?.failure.stack).toContain('no such order')
    expect(decodePayload(dead!.body)).toEqual({ requestId: 'r-1', n: 7 })
  })

  it('contain when the message was first received, not when it was sent', async () => {
    const bench = aLoop()
    await bench.requests.send({})
    await bench.clock.advance(5000)
    running(bench, {
      process: fails,
      dlq: { to: bench.dlq, policy: new DLQPolicy({ maxDeliveryCount: 1 }) },
    })
    await bench.settle()
    expect(await deadOf(bench.dlq)).toMatchObject([
      { enqueuedAt: '2026-01-01T00:00:00.000Z', firstReceivedAt: '2026-01-01T00:00:05.000Z' },
    ])
  })

  it('have a request id by an extractor, and none if there is none', async () => {
    const bench = aLoop()
    running(bench, {
      process: fails,
      dlq: { to: bench.dlq, policy: new DLQPolicy({ maxDeliveryCount: 1 }) },
      requestIdOf: (request) => (request as { order: { id: string } }).order.id,
    })
    await bench.requests.send({ order: { id: 'o-9' } })
    await bench.requests.send('just text')
    await bench.settle()
    expect((await deadOf(bench.dlq)).map((dead) => dead.requestId)).toEqual(['o-9', undefined])
    expect(bench.eventsOf('error')).toMatchObject([{ during: 'requestIdOf of requests' }])
  })

  it('are stored before the reply, and the reply is sent before the acknowledgement', async () => {
    const bench = aLoop()
    const source = faulty(bench.requests)
    const dlq = faulty(bench.dlq)
    const order: string[] = []
    const loop = new MainLoop({
      requests: source.mailbox,
      clock: bench.clock,
      process: fails,
      dlq: {
        policy: new DLQPolicy({ maxDeliveryCount: 1 }),
        to: {
          name: 'noting',
          keep: async () => {
            order.push(...source.calls.splice(0), 'kept')
          },
        },
      },
    })
    void loop.run()
    await bench.requests.send({}, { replyTo: 'replies' })
    await bench.settle()
    order.push(...source.calls.filter((call) => call !== 'receive'))
    expect(order.filter((call) => call !== 'receive')).toEqual([
      'extend',
      'kept',
      'reply',
      'acknowledge',
    ])
    expect(dlq.calls).toEqual([])
  })

  it('are stored although the reply fails', async () => {
    const bench = aLoop()
    running(bench, {
      process: fails,
      dlq: { to: bench.dlq, policy: new DLQPolicy({ maxDeliveryCount: 1 }) },
    })
    await bench.requests.send({}, { replyTo: 'nobody-knows' })
    await bench.settle()
    expect(await bench.dlq.approximateCount()).toBe(1)
    expect(await bench.requests.approximateCount()).toBe(0)
    expect(bench.eventsOf('error')).toMatchObject([{ during: 'replying to a message of requests' }])
  })

  it('that cannot be stored leave the message in place, without a reply, and the loop continues', async () => {
    const bench = aLoop()
    const dlq = faulty(bench.dlq)
    dlq.faults.send = new RedriveError('MAILBOX_FULL', 'full')
    running(bench, {
      process: ({ n }) => (n === 1 ? fails() : 'fine'),
      dlq: { to: dlq.mailbox, policy: new DLQPolicy({ maxDeliveryCount: 1 }) },
    })
    await bench.requests.send({ n: 1 }, { replyTo: 'replies' })
    await bench.settle()
    expect(bench.eventsOf('error')).toMatchObject([
      {
        during: 'dead-lettering a message of requests to requests-dlq',
        error: { code: 'MAILBOX_FULL' },
      },
    ])
    expect(await bench.replies.approximateCount()).toBe(0)
    await bench.requests.send({ n: 2 })
    await bench.settle()
    expect(bench.eventsOf('message-done')).toHaveLength(1)
    delete dlq.faults.send
    await bench.clock.advance(60_000)
    expect(await bench.dlq.approximateCount()).toBe(1)
    expect(await bench.take(bench.replies)).toHaveLength(1)
  })

  it('are not stored by a worker whose lease is lost', async () => {
    const bench = aLoop()
    const gate = deferred()
    running(bench, {
      visibilitySeconds: 10,
      process: async () => {
        await gate.promise
        fails()
      },
      dlq: { to: bench.dlq, policy: new DLQPolicy({ maxDeliveryCount: 1 }) },
    })
    await bench.requests.send({}, { replyTo: 'replies' })
    await bench.settle()
    await bench.clock.advance(11_000)
    const [elsewhere] = await bench.requests.receive({ visibilitySeconds: 600 })
    gate.resolve()
    await bench.settle()
    expect(bench.eventsOf('message-lost')).toMatchObject([{ during: 'dead-lettering' }])
    expect(await bench.dlq.approximateCount()).toBe(0)
    expect(await bench.replies.approximateCount()).toBe(0)
    await elsewhere!.acknowledge()
  })

  it('are not stored for a delivery that the broker calls stale, although its time is not over', async () => {
    const bench = aLoop()
    running(bench, {
      visibilitySeconds: 300,
      process: async () => {
        await bench.requests.purge()
        fails()
      },
      dlq: { to: bench.dlq, policy: new DLQPolicy({ maxDeliveryCount: 1 }) },
    })
    await bench.requests.send({})
    await bench.settle()
    expect(bench.eventsOf('message-lost')).toMatchObject([{ during: 'dead-lettering' }])
    expect(await bench.dlq.approximateCount()).toBe(0)
  })

  it('are not duplicated when the acknowledgement was lost', async () => {
    const bench = aLoop()
    const source = faulty(bench.requests)
    source.faults.acknowledge = unavailable()
    running(bench, {
      requests: source.mailbox,
      visibilitySeconds: 30,
      process: fails,
      dlq: { to: bench.dlq, policy: new DLQPolicy({ maxDeliveryCount: 1 }) },
    })
    await bench.requests.send({})
    await bench.settle()
    expect(await bench.dlq.approximateCount()).toBe(1)
    delete source.faults.acknowledge
    await bench.clock.advance(60_000)
    expect(bench.eventsOf('dead-lettered')).toHaveLength(2)
    expect(await bench.dlq.approximateCount()).toBe(1)
    expect(await bench.requests.approximateCount()).toBe(0)
  })

  it('survive a receipt that expires between the write and the acknowledgement', async () => {
    const bench = aLoop()
    const source = faulty(bench.requests)
    source.faults.acknowledge = new RedriveError('RECEIPT_EXPIRED', 'stale')
    running(bench, {
      requests: source.mailbox,
      process: fails,
      dlq: { to: bench.dlq, policy: new DLQPolicy({ maxDeliveryCount: 1 }) },
    })
    await bench.requests.send({})
    await bench.settle()
    expect(bench.eventsOf('message-lost')).toMatchObject([{ during: 'acknowledging' }])
    expect(bench.eventsOf('message-failed')).toEqual([])
  })

  it('are stored at receive, without a run, for a message that was delivered too often', async () => {
    const bench = aLoop()
    await bench.requests.send({}, { replyTo: 'replies' })
    // Three workers received it and died.
    for (let died = 0; died < 3; died++) {
      await bench.requests.receive({ visibilitySeconds: 10 })
      await bench.clock.advance(10_000)
    }
    let ran = 0
    running(bench, {
      process: () => void ran++,
      dlq: { to: bench.dlq, policy: new DLQPolicy({ maxDeliveryCount: 3 }) },
    })
    await bench.settle()
    expect(ran).toBe(0)
    expect(await deadOf(bench.dlq)).toMatchObject([
      { deliveryCount: 4, lastErrorType: 'MaxDeliveriesExceeded', hopeless: true },
    ])
    expect(await bench.take(bench.replies)).toMatchObject([
      { error: expect.stringContaining('Dead-lettered after 4 attempts: max deliveries exceeded') },
    ])
  })

  it('hold the raw bytes of a body that cannot be decoded, and other messages are processed', async () => {
    const bench = aLoop()
    const raw = new Uint8Array([0x7b, 0xff, 0x00])
    running(bench, { process: () => 'fine', concurrency: 3, dlq: { to: bench.dlq } })
    await bench.requests.send({ n: 1 })
    await bench.requests.send(raw, { contentType: 'application/json' })
    await bench.requests.send({ n: 2 })
    await bench.settle()
    expect(bench.eventsOf('message-done')).toHaveLength(2)
    const [dead] = await deadOf(bench.dlq)
    expect(dead).toMatchObject({
      deliveryCount: 1,
      hopeless: true,
      failure: { code: 'UNDECODABLE' },
    })
    expect(dead?.body.contentType).toBe('application/json')
    expect([...dead!.body.bytes]).toEqual([...raw])
  })

  it('do not count deliveries that a stopping worker released', async () => {
    const bench = aLoop()
    await bench.requests.send({})
    for (let stopped = 0; stopped < 2; stopped++) {
      const [message] = await bench.requests.receive()
      await message!.nack({ failed: false })
    }
    running(bench, {
      process: fails,
      dlq: { to: bench.dlq, policy: new DLQPolicy({ maxDeliveryCount: 3 }) },
    })
    await bench.settle()
    expect(await bench.dlq.approximateCount()).toBe(0)
    expect(bench.eventsOf('message-failed')).toMatchObject([{ deliveries: 1, delaySeconds: 60 }])
    await bench.clock.advance(3600_000)
    expect(await bench.dlq.approximateCount()).toBe(1)
  })

  it('are stored at once for included errors and not for excluded ones', async () => {
    const bench = aLoop()
    running(bench, {
      process: ({ n }) => {
        throw n === 1 ? new TypeError('never') : new RangeError('for ever')
      },
      dlq: {
        to: bench.dlq,
        policy: new DLQPolicy({
          maxDeliveryCount: 2,
          includeErrors: [TypeError],
          excludeErrors: [RangeError],
        }),
      },
    })
    await bench.requests.send({ n: 1 })
    await bench.requests.send({ n: 2 })
    await bench.settle()
    expect(await bench.dlq.approximateCount()).toBe(1)
    await bench.clock.advance(3600_000)
    expect(await bench.dlq.approximateCount()).toBe(1)
    expect(await bench.requests.approximateCount()).toBe(1)
  })

  it('follow the default threshold while a policy throws', async () => {
    const bench = aLoop()
    class Broken extends DLQPolicy {
      override shouldDeadLetter(): boolean {
        throw new Error('oops')
      }
    }
    running(bench, {
      process: fails,
      dlq: { to: bench.dlq, policy: new Broken({ maxDeliveryCount: 2 }) },
    })
    await bench.requests.send({})
    await bench.clock.advance(60_000)
    expect(await bench.dlq.approximateCount()).toBe(1)
    expect(bench.eventsOf('error').length).toBeGreaterThan(0)
  })
})

describe('a reply of a MainLoop', () => {
  it('that fails after the work releases the message, and in the end dead-letters it with that error', async () => {
    const bench = aLoop()
    const source = faulty(bench.requests)
    source.faults.reply = unavailable()
    running(bench, {
      requests: source.mailbox,
      process: () => 'done',
      dlq: { to: bench.dlq, policy: new DLQPolicy({ maxDeliveryCount: 2 }) },
    })
    await bench.requests.send({}, { replyTo: 'replies' })
    await bench.settle()
    expect(await bench.requests.approximateCount()).toBe(1)
    expect(bench.eventsOf('message-failed')).toMatchObject([{ during: 'reply', delaySeconds: 60 }])
    await bench.clock.advance(60_000)
    expect(await deadOf(bench.dlq)).toMatchObject([{ failure: { code: 'MAILBOX_UNAVAILABLE' } }])
    expect(await bench.requests.approximateCount()).toBe(0)
  })

  it('is sent once the broker is reachable again', async () => {
    const bench = aLoop()
    const source = faulty(bench.requests)
    source.faults.reply = unavailable()
    running(bench, { requests: source.mailbox, process: () => 'done', dlq: { to: bench.dlq } })
    await bench.requests.send({}, { replyTo: 'replies' })
    await bench.settle()
    delete source.faults.reply
    await bench.clock.advance(60_000)
    expect(await bench.take(bench.replies)).toMatchObject([{ output: 'done' }])
    expect(await bench.dlq.approximateCount()).toBe(0)
  })

  it('is not sent when the lease was lost: another consumer replies', async () => {
    const bench = aLoop()
    const gate = deferred()
    let runs = 0
    running(bench, {
      visibilitySeconds: 10,
      process: async () => {
        if (++runs === 1) await gate.promise
        return 'done'
      },
    })
    await bench.requests.send({}, { replyTo: 'replies' })
    await bench.clock.advance(10_000)
    gate.resolve()
    await bench.settle()
    expect(bench.eventsOf('message-lost')).toHaveLength(1)
    expect(runs).toBe(2)
    expect(await bench.take(bench.replies)).toHaveLength(1)
    expect(await bench.requests.approximateCount()).toBe(0)
  })
})
