import { describe, expect, it } from 'vitest'
import { RedriveError } from '../../src/errors.ts'
import { readDeadMessage, type DeadMessage } from '../../src/loops/dead-message.ts'
import { mailboxDestination } from '../../src/loops/destination.ts'
import { DLQConsumer, type DLQConsumerOptions } from '../../src/loops/dlq-consumer.ts'
import { alertHandler } from '../../src/loops/handlers/alert.ts'
import { dedupedReplay } from '../../src/loops/handlers/deduped-replay.ts'
import { replay, replayHandler } from '../../src/loops/handlers/replay.ts'
import { selectiveReplay } from '../../src/loops/handlers/selective-replay.ts'
import { memoryMailbox } from '../../src/mailboxes/memory/memory.ts'
import { deferred } from '../a-queue.ts'
import { aDeadMessage } from './a-dead-message.ts'
import { aLoop, faulty, type LoopBench } from './a-loop.ts'

const hourMs = 3_600_000

function consuming(bench: LoopBench, options: Partial<DLQConsumerOptions>): DLQConsumer {
  const { dlq: mailbox, clock, onEvent } = bench
  const consumer = new DLQConsumer({ mailbox, clock, onEvent, handler: () => {}, ...options })
  void consumer.run()
  return consumer
}

const bury = (bench: LoopBench, given: Partial<DeadMessage> = {}): Promise<void> =>
  mailboxDestination(bench.dlq).keep(aDeadMessage(given), undefined)

const fails = (): never => {
  throw new Error('no pager')
}

describe('DLQConsumer', () => {
  it('passes each dead message to its handler, then removes it from the queue', async () => {
    const bench = aLoop()
    const seen: string[] = []
    consuming(bench, { handler: ({ messageId }) => void seen.push(messageId) })
    await bury(bench, { messageId: 'm-1' })
    await bury(bench, { messageId: 'm-2' })
    await bench.settle()
    expect(seen).toEqual(['m-1', 'm-2'])
    expect(await bench.dlq.approximateCount()).toBe(0)
  })

  it('hides a message for an hour after its handler failed', async () => {
    const bench = aLoop()
    let runs = 0
    consuming(bench, {
      handler: () => {
        runs++
        fails()
      },
    })
    await bury(bench)
    await bench.settle()
    expect(bench.eventsOf('dead-letter-failed')).toMatchObject([{ delaySeconds: 3600 }])
    await bench.clock.advance(hourMs - 1)
    expect(runs).toBe(1)
    await bench.clock.advance(1)
    expect(runs).toBe(2)
    expect(await bench.dlq.approximateCount()).toBe(1)
  })

  it('parks a message after the maximum of failed attempts, with both errors', async () => {
    const bench = aLoop()
    const parked = memoryMailbox({ name: 'parked', clock: bench.clock })
    consuming(bench, { handler: fails, maxAttempts: 3, parked })
    await bury(bench)
    await bench.clock.advance(hourMs)
    expect(await parked.approximateCount()).toBe(0)
    await bench.clock.advance(hourMs)
    expect(await bench.dlq.approximateCount()).toBe(0)
    const [message] = await parked.receive()
    expect(readDeadMessage(message!, 'parked')).toMatchObject({
      messageId: 'm-1',
      sourceMailbox: 'requests',
      lastError: 'no such order',
      note: 'its handler failed 3 times: no pager',
      history: [{ error: 'no pager', errorType: 'Error' }],
    })
    expect(bench.eventsOf('dead-letter-parked')).toMatchObject([{ destination: 'parked' }])
  })

  it('hides parked messages without a destination, never runs them again and never discards them', async () => {
    const bench = aLoop()
    let runs = 0
    consuming(bench, {
      maxAttempts: 2,
      handler: () => {
        runs++
        fails()
      },
    })
    await bury(bench)
    await bench.clock.advance(48 * hourMs)
    expect(runs).toBe(2)
    expect(await bench.dlq.approximateCount()).toBe(1)
    expect(bench.eventsOf('dead-letter-parked').length).toBeGreaterThanOrEqual(4)
  })

  it('asks its handler again about a message that it parked, if there is no destination', async () => {
    const bench = aLoop()
    let runs = 0
    consuming(bench, { handler: () => ({ action: 'park', why: `${++runs}` }) })
    await bury(bench)
    await bench.clock.advance(24 * hourMs)
    expect(runs).toBe(3)
    expect(await bench.dlq.approximateCount()).toBe(1)
  })

  it('releases a message that could not be parked, and continues', async () => {
    const bench = aLoop()
    const parked = faulty(memoryMailbox({ name: 'parked', clock: bench.clock }))
    parked.faults.send = new RedriveError('MAILBOX_UNAVAILABLE', 'away')
    consuming(bench, { handler: fails, maxAttempts: 1, parked: parked.mailbox })
    await bury(bench)
    await bench.settle()
    expect(bench.eventsOf('error')).toMatchObject([
      { during: 'parking a message of requests-dlq in parked' },
    ])
    delete parked.faults.send
    await bench.clock.advance(hourMs)
    expect(await parked.mailbox.approximateCount()).toBe(1)
    expect(await bench.dlq.approximateCount()).toBe(0)
  })

  it('parks a message at once if its handler says so', async () => {
    const bench = aLoop()
    const parked = memoryMailbox({ name: 'parked', clock: bench.clock })
    consuming(bench, { handler: () => ({ action: 'park', why: 'a person must look' }), parked })
    await bury(bench)
    await bench.settle()
    expect(bench.eventsOf('dead-letter-parked')).toMatchObject([{ why: 'a person must look' }])
    expect(bench.eventsOf('dead-letter-handled')).toEqual([])
    expect(await parked.approximateCount()).toBe(1)
  })

  it('parks a message that kills its worker repeatedly, without a run', async () => {
    const bench = aLoop()
    await bury(bench)
    for (let died = 0; died < 5; died++) {
      await bench.dlq.receive({ visibilitySeconds: 1 })
      await bench.clock.advance(1000)
    }
    let runs = 0
    consuming(bench, { handler: () => void runs++ })
    await bench.settle()
    expect(runs).toBe(0)
    expect(bench.eventsOf('dead-letter-parked')).toHaveLength(1)
  })

  it('distinguishes a failed acknowledgement from a failed handler', async () => {
    const bench = aLoop()
    const source = faulty(bench.dlq)
    source.faults.acknowledge = new RedriveError('MAILBOX_UNAVAILABLE', 'away')
    consuming(bench, { mailbox: source.mailbox })
    await bury(bench)
    await bench.settle()
    expect(bench.eventsOf('dead-letter-handled')).toHaveLength(1)
    expect(bench.eventsOf('dead-letter-failed')).toEqual([])
    expect(bench.eventsOf('error')).toMatchObject([
      { during: 'acknowledging a message of requests-dlq' },
    ])
    expect(source.calls).not.toContain('nack')
  })

  it('handles messages that brokers moved by themselves', async () => {
    const bench = aLoop()
    const seen: DeadMessage[] = []
    consuming(bench, { handler: (dead) => void seen.push(dead) })
    const id = await bench.dlq.send({ order: 1 })
    await bench.settle()
    expect(seen).toMatchObject([{ messageId: id, sourceMailbox: 'requests-dlq' }])
  })

  it('extends the lease while its handler beats', async () => {
    const bench = aLoop()
    const gate = deferred()
    consuming(bench, {
      visibilitySeconds: 100,
      handler: async (_, { heartbeat }) => {
        heartbeat.beat()
        await gate.promise
      },
    })
    await bench.dlq.send({})
    await bench.clock.advance(99_000)
    const consumerHolds = await bench.dlq.receive()
    expect(consumerHolds).toEqual([])
    gate.resolve()
    await bench.settle()
    expect(await bench.dlq.approximateCount()).toBe(0)
  })

  it('waits for its handler at shutdown, and releases uncounted a message that takes too long', async () => {
    const bench = aLoop()
    const consumer = consuming(bench, {
      handler: (_, { signal }) =>
        new Promise((_resolve, reject) =>
          signal.addEventListener('abort', () => reject(new Error('stopped'))),
        ),
    })
    await bury(bench)
    await bench.settle()
    expect(consumer.running).toBe(true)
    const stopped = consumer.shutdown({ timeoutMs: 8000 })
    await bench.clock.advance(7000)
    expect(await stopped).toBe(true)
    expect(consumer.running).toBe(false)
    const [message] = await bench.dlq.receive()
    expect(message).toMatchObject({ deliveries: 1, failures: 0 })
  })

  it('reports the depth and the oldest age of its queue once a minute, even when idle', async () => {
    const bench = aLoop()
    await bury(bench)
    const consumer = consuming(bench, { handler: fails })
    await bench.clock.advance(180_000)
    const mailbox = 'requests-dlq'
    expect(bench.eventsOf('depth')).toEqual(
      [0, 60, 120, 180].map((oldestAgeSeconds) => ({
        type: 'depth',
        mailbox,
        depth: 1,
        oldestAgeSeconds,
      })),
    )
    await consumer.shutdown()
    await bench.clock.advance(600_000)
    expect(bench.eventsOf('depth')).toHaveLength(4)
    expect(bench.clock.pending()).toBe(0)
  })

  it('reports every depthEveryMs, and rejects an invalid interval', async () => {
    const bench = aLoop()
    consuming(bench, { depthEveryMs: 10_000 })
    await bench.clock.advance(60_000)
    expect(bench.eventsOf('depth')).toHaveLength(7)
    expect(() => consuming(bench, { depthEveryMs: 0 })).toThrow('depthEveryMs must be from 1')
  })

  it('does not report twice when it is run a second time', async () => {
    const bench = aLoop()
    const consumer = consuming(bench, {})
    await expect(consumer.run()).rejects.toThrow('is already running')
    await bench.clock.advance(60_000)
    expect(bench.eventsOf('depth')).toHaveLength(2)
  })

  it('reports how long a message has been dead', async () => {
    const bench = aLoop()
    await bury(bench)
    await bench.clock.advance(90_000)
    consuming(bench, {})
    await bench.settle()
    expect(bench.eventsOf('dead-letter-handled')).toMatchObject([{ ageSeconds: 90 }])
  })

  it('cannot park into the queue that it consumes', () => {
    const { dlq } = aLoop()
    expect(() => new DLQConsumer({ mailbox: dlq, handler: fails, parked: dlq })).toThrow(
      'cannot store its own dead letters',
    )
  })
})

describe('the handler of a DLQConsumer', () => {
  const withHandler = (handler: unknown): (() => DLQConsumer) => {
    const { dlq: mailbox } = aLoop()
    return () => new DLQConsumer({ mailbox, handler: handler as DLQConsumerOptions['handler'] })
  }

  it.each([undefined, null, 'alert', {}, [], Promise.resolve(() => {})])(
    'is rejected when it is %o',
    (handler) => {
      expect(withHandler(handler)).toThrow(expect.objectContaining({ code: 'INVALID_CONFIG' }))
      expect(withHandler(handler)).toThrow(/handler/)
    },
  )

  it.each<[string, unknown]>([
    ['alertHandler({ log })', alertHandler],
    ['replayHandler({ source })', replayHandler],
    ['dedupedReplay({ source, seen })', dedupedReplay],
    ['replayHandler({ source })', replay],
    ['call it without a consumer', selectiveReplay],
  ])('is rejected when it is a function that returns a handler: %s', (fix, handler) => {
    expect(withHandler(handler)).toThrow(expect.objectContaining({ code: 'INVALID_CONFIG' }))
    expect(withHandler(handler)).toThrow(fix)
  })

  it.each<[string, unknown, string]>([
    ['a function', () => () => {}, 'returned a function'],
    ['a factory that was not called', () => alertHandler, 'returned a function (alertHandler)'],
    ['a string', 'ok', 'returned a string'],
    ['a number', 1, 'returned a number'],
    ['a boolean', true, 'returned a boolean'],
    ['null', null, 'returned null'],
    ['an array', [{ action: 'processed' }], 'returned an array'],
    ['an empty object', {}, 'returned an object without keys'],
    ['the result of replay', { kind: 'replayed', id: 'm' }, 'an object with the keys kind, id'],
    ['{ ok: true }', { ok: true }, 'an object with the keys ok'],
    ['{ ok: false }', { ok: false }, '{ ok: false } without an error'],
    ['{ ok: false, error }', { ok: false, error: new Error('no pager') }, 'no pager'],
    ['an unknown action', { action: 'proccessed' }, 'did you mean "processed"?'],
    ['an action of a prototype', { action: 'constructor' }, 'unknown action'],
    ['park without a reason', { action: 'park' }, "{ action: 'park' } without why"],
  ])('fails when it returns %s', async (_, returned, message) => {
    const bench = aLoop()
    const source = faulty(bench.dlq)
    const value = typeof returned === 'function' ? (returned as () => unknown)() : returned
    const handler = (async () => value) as DLQConsumerOptions['handler']
    consuming(bench, { mailbox: source.mailbox, handler })
    await bury(bench)
    await bench.settle()
    expect(bench.eventsOf('dead-letter-handled')).toEqual([])
    const [failed] = bench.eventsOf('dead-letter-failed')
    expect(String(failed?.error)).toContain(message)
    expect(source.calls).not.toContain('acknowledge')
    expect((await bench.dlq.browse!()).messages).toMatchObject([{ failures: 1 }])
  })

  it('gets an error with the allowed results', async () => {
    const bench = aLoop()
    consuming(bench, { handler: (() => 'ok') as unknown as DLQConsumerOptions['handler'] })
    await bury(bench)
    await bench.settle()
    expect(bench.eventsOf('dead-letter-failed')[0]?.error).toMatchObject({
      code: 'INVALID_INPUT',
      message:
        "the handler returned a string; a handler returns nothing, { action: 'processed' | 'alerted' | 'replayed' | 'discarded' } or { action: 'park', why }",
    })
  })

  it.each([undefined, { ok: false }])(
    'parks the message, counted as failed, if it always returns or throws a useless value: %o',
    async (returned) => {
      const bench = aLoop()
      consuming(bench, {
        maxAttempts: 2,
        handler: (() => {
          if (returned === undefined) throw undefined
          return returned
        }) as unknown as DLQConsumerOptions['handler'],
      })
      await bury(bench)
      await bench.clock.advance(hourMs)
      expect(bench.eventsOf('dead-letter-parked')).toHaveLength(1)
      expect((await bench.dlq.browse!()).messages).toMatchObject([{ failures: 2 }])
    },
  )

  it('may return nothing, or any of the actions', async () => {
    const bench = aLoop()
    const returns = [undefined, 'processed', 'alerted', 'replayed', 'discarded']
    consuming(bench, {
      handler: (({ messageId }) => {
        const action = returns[Number(messageId)]
        return action === undefined ? undefined : { action }
      }) as DLQConsumerOptions['handler'],
    })
    for (const n of returns.keys()) await bury(bench, { messageId: String(n) })
    await bench.settle()
    expect(bench.eventsOf('dead-letter-handled').map(({ action }) => action)).toEqual([
      'processed',
      ...returns.slice(1),
    ])
    expect(await bench.dlq.approximateCount()).toBe(0)
  })
})
