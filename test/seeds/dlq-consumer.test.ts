import { describe, expect, it } from 'vitest'
import { readDeadMessage, type DeadMessage } from '../../src/loops/dead-message.ts'
import { mailboxDestination } from '../../src/loops/destination.ts'
import { DLQConsumer, type DLQConsumerOptions } from '../../src/loops/dlq-consumer.ts'
import { alertHandler } from '../../src/loops/handlers/alert.ts'
import { dedupedReplay, recordedSeen } from '../../src/loops/handlers/deduped-replay.ts'
import { replayHandler } from '../../src/loops/handlers/replay.ts'
import { selectiveReplay } from '../../src/loops/handlers/selective-replay.ts'
import type { Mailbox } from '../../src/mailbox.ts'
import { memoryMailbox } from '../../src/mailboxes/memory/memory.ts'
import { memoryStore } from '../../src/stores/memory/memory.ts'
import { deferred } from '../a-queue.ts'
import { aDeadMessage } from '../loops/a-dead-message.ts'
import { aLoop, type LoopBench } from '../loops/a-loop.ts'
import { clause, row } from './rows.ts'
import type { RunOptions } from '../../src/loops/runnable.ts'
import { after, recordReceives, counts, deadOf, fails, runLoop } from './run-loop.ts'

describe(row('M8'), () => {
  const sendDead = async (dlq: Mailbox, ...ids: string[]): Promise<void> => {
    for (const messageId of ids)
      await mailboxDestination(dlq).keep(aDeadMessage({ messageId }), undefined)
  }
  const consumer = (bench: LoopBench, options: Partial<DLQConsumerOptions>): DLQConsumer =>
    new DLQConsumer({
      mailbox: bench.dlq,
      clock: bench.clock,
      onEvent: bench.onEvent,
      handler: () => {},
      ...options,
    })

  it(clause('M8', 'DLQConsumer is a runnable: handler'), async () => {
    const bench = aLoop()
    const seen: string[] = []
    void consumer(bench, { handler: ({ messageId }) => void seen.push(messageId) }).run()
    await sendDead(bench.dlq, 'm-1', 'm-2', 'm-3')
    await bench.settle()
    expect(seen).toEqual(['m-1', 'm-2', 'm-3'])
    expect(await bench.dlq.approximateCount()).toBe(0)
  })

  it(clause('M8', '1 h backoff'), async () => {
    const bench = aLoop()
    let runs = 0
    const parked = memoryMailbox({ name: 'parked', clock: bench.clock })
    const handler = (): void => {
      runs++
      fails()
    }
    void consumer(bench, { handler, parked }).run()
    await sendDead(bench.dlq, 'm-1')
    await bench.clock.advance(3_599_999)
    expect([runs, await bench.dlq.approximateCount()]).toEqual([1, 1])
    await bench.clock.advance(1)
    expect([runs, await bench.dlq.approximateCount()]).toEqual([2, 1])
    await bench.clock.advance(24 * 3_600_000)
    expect([runs, await bench.dlq.approximateCount()]).toEqual([5, 0])
    expect(await deadOf(parked)).toMatchObject([
      { messageId: 'm-1', note: expect.stringContaining('no such order') },
    ])
  })

  it(clause('M8', 'visibility timeout'), async () => {
    const bench = aLoop()
    await sendDead(bench.dlq, 'm-1')
    const until = async (visibilitySeconds: number, run: RunOptions = {}): Promise<unknown> => {
      const { mailbox, visibilities } = recordReceives(bench.dlq)
      await consumer(bench, { visibilitySeconds, mailbox }).run({
        ...run,
        waitSeconds: 0,
        maxIterations: 1,
      })
      return visibilities[0]
    }
    expect(await until(120)).toBe(120)
    expect(await until(120, { visibilitySeconds: 0 })).toBe(0)
    expect(await until(0)).toBe(0)
  })

  describe(clause('M8', 'running, heartbeat'), () => {
    it('runs from run to shutdown, and beats while it waits', async () => {
      const bench = aLoop()
      const startConsumer = consumer(bench, {})
      expect(startConsumer.running).toBe(false)
      const run = startConsumer.run()
      expect(startConsumer.running).toBe(true)
      await bench.clock.advance(60_000)
      expect(startConsumer.heartbeat.elapsedMs()).toBeLessThanOrEqual(20_000)
      expect(await startConsumer.shutdown()).toBe(true)
      await run
      expect(startConsumer.running).toBe(false)
    })

    it('the run ends after maxIterations, and when the mailbox is closed', async () => {
      const bench = aLoop()
      const seen: string[] = []
      const startConsumer = consumer(bench, {
        handler: ({ messageId }) => void seen.push(messageId),
      })
      await sendDead(bench.dlq, 'm-1', 'm-2', 'm-3')
      await startConsumer.run({ maxIterations: 2 })
      expect(seen).toEqual(['m-1', 'm-2'])
      const run = startConsumer.run()
      await bench.settle()
      await bench.dlq.close()
      await run
      expect(seen).toHaveLength(3)
      expect(startConsumer.running).toBe(false)
    })
  })

  describe(clause('M8', 'shutdown that waits'), () => {
    it('waits for the handler, returns the rest of a batch uncounted, and may be called before run', async () => {
      const bench = aLoop()
      const gate = deferred()
      const begun: string[] = []
      const startConsumer = consumer(bench, {
        concurrency: 2,
        handler: async ({ messageId }) => {
          begun.push(messageId)
          await gate.promise
        },
      })
      await sendDead(bench.dlq, 'm-1', 'm-2', 'm-3', 'm-4')
      const run = startConsumer.run()
      await bench.settle()
      let stopped = false
      const stopping = startConsumer.shutdown().then((ended) => (stopped = ended))
      await bench.clock.advance(1000)
      expect(stopped).toBe(false)
      gate.resolve()
      expect(await stopping).toBe(true)
      await run
      expect(begun).toEqual(['m-1', 'm-2'])
      const left = await bench.dlq.receive({ max: 10 })
      expect(left.map(({ failures }) => failures)).toEqual([0, 0])
      expect(await startConsumer.shutdown()).toBe(true)
      await startConsumer.run()
      expect(begun).toHaveLength(2)
    })
  })

  describe(clause('M8', 'shutdown that waits'), () => {
    it('aborts a handler that does not end in time, and returns false when it ignores the signal', async () => {
      const bench = aLoop()
      const startConsumer = consumer(bench, { handler: () => new Promise<void>(() => {}) })
      await sendDead(bench.dlq, 'm-1')
      const run = startConsumer.run()
      await bench.settle()
      const stopping = startConsumer.shutdown({ timeoutMs: 5000 })
      await bench.clock.advance(10_000)
      expect(await stopping).toBe(false)
      await run
      expect((await bench.dlq.receive())[0]).toMatchObject({ deliveries: 2, failures: 1 })
    })
  })

  describe(clause('M8', 'shutdown that waits'), () => {
    it('stops when the block that uses it ends', async () => {
      const bench = aLoop()
      let used: DLQConsumer
      {
        await using startConsumer = consumer(bench, {})
        used = startConsumer
        void startConsumer.run()
        await bench.settle()
        expect(used.running).toBe(true)
      }
      expect(used.running).toBe(false)
    })
  })
})

describe(row('M9'), () => {
  describe(
    clause(
      'M9',
      'a handler that is missing or is not a handler is refused and never acknowledges anything',
    ),
    () => {
      it('a consumer without a valid handler cannot be created', () => {
        const bench = aLoop()
        const make = (handler: unknown) => (): unknown =>
          new DLQConsumer({ mailbox: bench.dlq, clock: bench.clock, handler: handler as never })
        for (const handler of [undefined, null, 'alert', {}, Promise.resolve(() => {})])
          expect(make(handler)).toThrow(
            expect.objectContaining({
              code: 'INVALID_CONFIG',
              message: expect.stringContaining('handler'),
            }),
          )
      })

      it('a handler factory that was not called is refused', () => {
        const bench = aLoop()
        for (const handler of [alertHandler, replayHandler, dedupedReplay, selectiveReplay])
          expect(() => new DLQConsumer({ mailbox: bench.dlq, handler: handler as never })).toThrow(
            expect.objectContaining({ code: 'INVALID_CONFIG' }),
          )
      })

      it.each([
        ['a function', () => () => {}],
        ['an unknown action', () => ({ action: 'acknowledged' })],
        ['a boolean', () => true],
      ])('a handler that returns %s has not processed the message', async (_title, handler) => {
        const bench = aLoop()
        await sendDead(bench.dlq, {})
        startConsumer(bench, handler as never)
        await bench.settle()
        expect(bench.eventsOf('dead-letter-handled')).toEqual([])
        expect(bench.eventsOf('dead-letter-failed')).toHaveLength(1)
        expect(await bench.dlq.approximateCount()).toBe(1)
      })
    },
  )

  const sendDead = (dlq: Mailbox, dead: Partial<DeadMessage>): Promise<void> =>
    mailboxDestination(dlq).keep(aDeadMessage(dead), undefined)
  const startConsumer = (bench: LoopBench, handler: DLQConsumerOptions['handler']): DLQConsumer => {
    const { dlq: mailbox, clock, onEvent } = bench
    const consumer = new DLQConsumer({ mailbox, clock, onEvent, handler })
    void consumer.run()
    return consumer
  }

  it(clause('M9', 'handlers shipped: alert'), async () => {
    const bench = aLoop()
    const lines: object[] = []
    const notified: string[] = []
    startConsumer(
      bench,
      alertHandler({
        log: { error: (fields, message) => void lines.push({ ...fields, message }) },
        notify: ({ messageId }) => notified.push(messageId),
      }),
    )
    await sendDead(bench.dlq, { requestId: 'r-1' })
    await bench.settle()
    expect(lines).toEqual([
      {
        message: 'Request dead-lettered',
        messageId: 'm-1',
        requestId: 'r-1',
        errorType: 'TypeError',
        error: 'no such order',
        deliveryCount: 5,
        source: 'requests',
      },
    ])
    expect(notified).toEqual(['m-1'])
    expect(await bench.dlq.approximateCount()).toBe(0)
  })

  describe(clause('M9', 'replay (resolves reply-to)'), () => {
    it('returns the body to its source, and the reply of the second run reaches the sender', async () => {
      const bench = aLoop()
      let broken = true
      runLoop(bench, {
        process: ({ n }) => (broken ? fails() : n! * 2),
        dlq: { to: bench.dlq, policy: after(1) },
      })
      await bench.requests.send({ requestId: 'r-1', n: 21 }, { replyTo: 'replies' })
      await bench.settle()
      await bench.take(bench.replies)
      broken = false
      const known: Record<string, Mailbox> = { requests: bench.requests, replies: bench.replies }
      const resolver = { resolve: (name: string) => known[name] }
      startConsumer(bench, replayHandler({ source: resolver, replies: resolver }))
      await bench.settle()
      expect(await bench.take(bench.replies)).toMatchObject([{ requestId: 'r-1', output: 42 }])
      expect(await counts(bench)).toEqual([0, 0, 0])
    })
  })

  describe(clause('M9', 'replay (resolves reply-to)'), () => {
    it('an unknown reply address is refused or left out, by unknownReplyTo, and the message is never lost', async () => {
      const bench = aLoop()
      await sendDead(bench.dlq, { messageId: 'm-1', replyTo: 'gone' })
      const parts = { source: bench.requests, replies: { resolve: () => undefined } }
      startConsumer(bench, replayHandler(parts))
      await bench.settle()
      expect(bench.eventsOf('dead-letter-failed')).toHaveLength(1)
      expect(await counts(bench)).toEqual([0, 1, 0])
      const lenient = aLoop()
      await sendDead(lenient.dlq, { messageId: 'm-1', replyTo: 'gone' })
      const { requests: source } = lenient
      startConsumer(
        lenient,
        replayHandler({ ...parts, source, unknownReplyTo: 'replay-without-reply' }),
      )
      await lenient.settle()
      const [message] = await lenient.requests.receive()
      expect(message).toBeDefined()
      expect(message?.replyTo).toBeUndefined()
    })
  })

  describe(clause('M9', 'replay (resolves reply-to)'), () => {
    it('a message that fails after each replay is replayed maxReplays times', async () => {
      const bench = aLoop()
      const parked = memoryMailbox({ name: 'parked', clock: bench.clock })
      let runs = 0
      runLoop(bench, {
        process: () => {
          runs++
          fails()
        },
        dlq: { to: bench.dlq, policy: after(1) },
      })
      const handler = replayHandler({ source: bench.requests, maxReplays: 2 })
      void new DLQConsumer({ mailbox: bench.dlq, clock: bench.clock, handler, parked }).run()
      const id = await bench.requests.send({})
      await bench.clock.advance(3_600_000)
      expect(runs).toBe(3)
      expect(await deadOf(parked)).toMatchObject([{ originalId: id, replays: 2 }])
    })
  })

  it(clause('M9', 'selective replay by predicate over the whole queue'), async () => {
    const bench = aLoop()
    for (let n = 0; n < 45; n++)
      await sendDead(bench.dlq, {
        messageId: `m-${n}`,
        lastErrorType: n % 15 === 0 ? 'TimeoutError' : 'TypeError',
      })
    const report = await selectiveReplay(bench.dlq, {
      source: bench.requests,
      clock: bench.clock,
      predicate: ({ lastErrorType }) => lastErrorType === 'TimeoutError',
    })
    expect(report).toMatchObject({ scanned: 45, replayed: 3, complete: true })
    expect(report.results.map(({ messageId }) => messageId).toSorted()).toEqual([
      'm-0',
      'm-15',
      'm-30',
    ])
    expect(await counts(bench)).toEqual([3, 42, 0])
    const { messages } = await bench.dlq.browse!({ limit: 100 })
    expect(messages.filter(({ failures, deliveries }) => failures > 0 || deliveries > 1)).toEqual(
      [],
    )
    const left = messages.map((message) => readDeadMessage(message, 'requests-dlq').messageId)
    expect(left).toEqual(
      Array.from({ length: 45 }, (_, n) => `m-${n}`).filter((_, n) => n % 15 !== 0),
    )
  })

  it(clause('M9', 'deduplicated replay'), async () => {
    const bench = aLoop()
    const { records } = memoryStore({ clock: bench.clock })
    const replaying = (): DLQConsumer =>
      startConsumer(bench, dedupedReplay({ source: bench.requests, seen: recordedSeen(records) }))
    await sendDead(bench.dlq, { messageId: 'm-1', requestId: 'r-1', replyTo: 'replies' })
    const first = replaying()
    await bench.settle()
    await first.shutdown()
    await sendDead(bench.dlq, { messageId: 'm-2', requestId: 'r-1' })
    await sendDead(bench.dlq, { messageId: 'm-3' })
    await sendDead(bench.dlq, { messageId: 'm-4' })
    replaying()
    await bench.settle()
    const sent = await bench.requests.receive({ max: 10 })
    expect(sent.map(({ headers }) => headers['redrive-original-id'])).toEqual(['m-1', 'm-3', 'm-4'])
    expect(sent[0]?.replyTo).toBe('replies')
    expect(bench.eventsOf('dead-letter-handled').map(({ action }) => action)).toEqual([
      'replayed',
      'discarded',
      'replayed',
      'replayed',
    ])
  })
})
