import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { RedriveError } from '../../src/errors.ts'
import { decodePayload } from '../../src/letter/payload.ts'
import { MainLoop } from '../../src/loops/main-loop.ts'
import type { Mailbox } from '../../src/mailbox.ts'
import { sqliteMailbox } from '../../src/mailboxes/sqlite/sqlite.ts'
import { DLQPolicy } from '../../src/policy/dlq-policy.ts'
import { deferred } from '../a-queue.ts'
import { aLoop, faulty } from '../loops/a-loop.ts'
import { aFolder } from '../folders.ts'
import { clause, row } from './rows.ts'
import { after, away, counts, deadOf, fails, runLoop } from './run-loop.ts'

describe(row('M4'), () => {
  describe(
    clause(
      'M4',
      'DeadLetter has every field of the seed: message id, body, source mailbox, delivery count, last error and its type, dead-lettered at, first received at, request id, reply-to, trace id',
    ),
    () => {
      it('all fields survive the mailbox, and unknown optional ones are absent', async () => {
        const bench = aLoop()
        const trace = '0af7651916cd43dd8448eb211c80319c'
        const headers = { traceparent: `00-${trace}-b7ad6b7169203331-01` }
        const body = { requestId: 'r-1', amount: 10 }
        const id = await bench.requests.send(body, { replyTo: 'replies', headers })
        await bench.clock.advance(5000)
        runLoop(bench, { dlq: { to: bench.dlq, policy: after(2) } })
        await bench.clock.advance(60_000)
        await bench.requests.send('just text')
        await bench.clock.advance(60_000)
        const [dead, bare] = await deadOf(bench.dlq)
        const start = Date.UTC(2026, 0, 1)
        const at = (ms: number): string => new Date(start + ms).toISOString()
        expect(dead).toMatchObject({
          messageId: id,
          sourceMailbox: 'requests',
          deliveryCount: 2,
          lastError: 'no such order',
          lastErrorType: 'TypeError',
          enqueuedAt: at(0),
          firstReceivedAt: at(5000),
          deadLetteredAt: at(65_000),
          requestId: 'r-1',
          replyTo: 'replies',
          traceId: trace,
        })
        expect(decodePayload(dead!.body)).toEqual(body)
        expect(bare).toMatchObject({ deliveryCount: 2, lastErrorType: 'TypeError' })
        for (const optional of ['requestId', 'replyTo', 'traceId'])
          expect(bare).not.toHaveProperty(optional)
      })
    },
  )

  describe(
    clause(
      'M4',
      'DeadLetter has every field of the seed: message id, body, source mailbox, delivery count, last error and its type, dead-lettered at, first received at, request id, reply-to, trace id',
    ),
    () => {
      it('cannot be changed', async () => {
        const bench = aLoop()
        runLoop(bench, { dlq: { to: bench.dlq, policy: after(1) } })
        await bench.requests.send({})
        await bench.settle()
        const [dead] = await deadOf(bench.dlq)
        expect(() => Object.assign(dead!, { lastError: 'another' })).toThrow(TypeError)
      })
    },
  )

  describe(
    clause(
      'M4',
      'DeadLetter has every field of the seed: message id, body, source mailbox, delivery count, last error and its type, dead-lettered at, first received at, request id, reply-to, trace id',
    ),
    () => {
      it('the failure has code and stack, and the history has each failed attempt', async () => {
        const bench = aLoop()
        let run = 0
        runLoop(bench, {
          process: () => {
            throw Object.assign(new Error(`try ${++run}`), { code: 'ECONNRESET' })
          },
        })
        await bench.requests.send({})
        await bench.clock.advance(3_600_000)
        const [dead] = await deadOf(bench.dlq)
        expect(dead?.failure).toMatchObject({ code: 'ECONNRESET', message: 'try 3' })
        expect(dead?.failure.stack).toContain('loops.test.ts')
        expect(dead?.history.map(({ error }) => error)).toEqual(['try 1', 'try 2', 'try 3'])
      })
    },
  )
})

describe(row('M5'), () => {
  const folder = aFolder('loops')

  it(clause('M5', 'MainLoop: receive → process → reply → acknowledge'), async () => {
    const bench = aLoop()
    const source = faulty(bench.requests)
    runLoop(bench, { requests: source.mailbox, process: ({ n }) => n! * 2 })
    await bench.requests.send({ requestId: 'r-1', n: 21 }, { replyTo: 'replies' })
    await bench.requests.send({ n: 1 })
    await bench.settle()
    expect(source.calls.filter((call) => call !== 'receive')).toEqual([
      'reply',
      'acknowledge',
      'acknowledge',
    ])
    expect(await bench.take(bench.replies)).toMatchObject([{ requestId: 'r-1', output: 42 }])
    expect(await counts(bench)).toEqual([0, 0, 0])
  })

  describe(clause('M5', 'failure → policy → nack min(60·n, 900) s'), () => {
    it('hides a failed message for min(60 · n, 900) seconds', async () => {
      const bench = aLoop()
      runLoop(bench, { dlq: { to: bench.dlq, policy: after(20) } })
      await bench.requests.send({})
      await bench.clock.advance(12 * 3_600_000)
      const delays = bench.eventsOf('message-failed').map(({ delaySeconds }) => delaySeconds)
      expect(delays).toEqual(Array.from({ length: 19 }, (_, n) => Math.min(60 * (n + 1), 900)))
    })
  })

  describe(
    clause(
      'M5',
      'or dead-letter: durable write, then error reply "Dead-lettered after N attempts: …", then acknowledge',
    ),
    () => {
      it('at the threshold, and not below it, the message moves and is replied to', async () => {
        const bench = aLoop()
        runLoop(bench)
        await bench.requests.send({ requestId: 'r-1' }, { replyTo: 'replies' })
        await bench.clock.advance(60_000)
        expect(bench.eventsOf('message-failed')).toHaveLength(2)
        expect(await counts(bench)).toEqual([1, 0, 0])
        await bench.clock.advance(120_000)
        expect(await counts(bench)).toEqual([0, 1, 1])
        expect(await bench.take(bench.replies)).toMatchObject([
          { requestId: 'r-1', error: 'Dead-lettered after 3 attempts: no such order' },
        ])
      })
    },
  )

  describe(
    clause(
      'M5',
      'or dead-letter: durable write, then error reply "Dead-lettered after N attempts: …", then acknowledge',
    ),
    () => {
      it('in this order: check of the lease, durable write, error reply, acknowledge', async () => {
        const bench = aLoop()
        const source = faulty(bench.requests)
        const order: string[] = []
        const to = {
          name: 'noting',
          keep: async (): Promise<void> => void order.push(...source.calls.splice(0), 'kept'),
        }
        runLoop(bench, { requests: source.mailbox, dlq: { to, policy: after(1) } })
        await bench.requests.send({}, { replyTo: 'replies' })
        await bench.settle()
        order.push(...source.calls)
        expect(order.filter((call) => call !== 'receive')).toEqual([
          'extend',
          'kept',
          'reply',
          'acknowledge',
        ])
      })
    },
  )

  describe(
    clause(
      'M5',
      'or dead-letter: durable write, then error reply "Dead-lettered after N attempts: …", then acknowledge',
    ),
    () => {
      it('a message without a reply address is dead-lettered too', async () => {
        const bench = aLoop()
        runLoop(bench, { dlq: { to: bench.dlq, policy: after(1) } })
        await bench.requests.send({})
        await bench.settle()
        expect(await counts(bench)).toEqual([0, 1, 0])
        expect(bench.eventsOf('error')).toEqual([])
      })
    },
  )

  describe(clause('M5', 'failure → policy → nack min(60·n, 900) s'), () => {
    it('without a dead letter queue: retried forever, or replied to and acknowledged, by withoutPolicy', async () => {
      const bench = aLoop()
      const { requests, clock, onEvent } = bench.parts
      const retrying = new MainLoop({ requests, clock, onEvent, process: fails })
      const run = retrying.run()
      await requests.send({}, { replyTo: 'replies' })
      await clock.advance(24 * 3_600_000)
      expect(bench.eventsOf('message-failed').length).toBeGreaterThan(50)
      expect(await counts(bench)).toEqual([1, 0, 0])
      await retrying.shutdown()
      await run
      const withoutPolicy = 'reply-and-ack'
      void new MainLoop({ requests, clock, onEvent, process: fails, withoutPolicy }).run()
      await clock.advance(900_000)
      expect(await counts(bench)).toEqual([0, 0, 1])
      expect(await bench.take(bench.replies)).toMatchObject([{ error: 'no such order' }])
    })
  })

  describe(
    clause(
      'M5',
      'or dead-letter: durable write, then error reply "Dead-lettered after N attempts: …", then acknowledge',
    ),
    () => {
      it('on mailboxes in a file', async () => {
        const path = join(folder, 'mail.db')
        const known = new Map<string, Mailbox>()
        const resolver = { resolve: (name: string) => known.get(name) }
        const [requests, dlq, replies] = ['requests', 'requests-dlq', 'replies'].map((name) =>
          sqliteMailbox({ path, name, resolver }),
        ) as [Mailbox, Mailbox, Mailbox]
        for (const mailbox of [requests, dlq, replies]) {
          await mailbox.open()
          known.set(mailbox.name, mailbox)
        }
        const loop = new MainLoop({ requests, process: fails, dlq: { to: dlq, policy: after(1) } })
        const run = loop.run()
        await requests.send({}, { replyTo: 'replies' })
        const [reply] = await replies.receive({ waitSeconds: 20 })
        expect(reply?.value()).toMatchObject({ error: expect.stringContaining('Dead-lettered') })
        await loop.shutdown()
        await run
        expect(await deadOf(dlq)).toMatchObject([{ lastError: 'no such order' }])
        for (const mailbox of known.values()) await mailbox.close()
      })
    },
  )
})

describe(row('M6'), () => {
  it(clause('M6', 'no reply before a terminal outcome'), async () => {
    const bench = aLoop()
    let run = 0
    runLoop(bench, { process: () => (++run < 3 ? fails() : 'well in the end') })
    await bench.requests.send({}, { replyTo: 'replies' })
    await bench.clock.advance(60_000)
    expect(await counts(bench)).toEqual([1, 0, 0])
    await bench.clock.advance(120_000)
    expect(await bench.take(bench.replies)).toMatchObject([{ output: 'well in the end' }])
    expect(await counts(bench)).toEqual([0, 0, 0])
  })

  describe(clause('M6', 'a failing reply never stops dead-lettering'), () => {
    it.each([
      ['is full', new RedriveError('MAILBOX_FULL', 'full')],
      ['is away', away()],
      ['fails with an unexpected error', new Error('socket hang up')],
    ])('the mailbox of the reply %s', async (_title, fault) => {
      const bench = aLoop()
      const source = faulty(bench.requests)
      source.faults.reply = fault
      runLoop(bench, { requests: source.mailbox, dlq: { to: bench.dlq, policy: after(1) } })
      await bench.requests.send({}, { replyTo: 'replies' })
      await bench.settle()
      expect(await counts(bench)).toEqual([0, 1, 0])
    })
  })

  describe(clause('M6', 'a failing DLQ write never ends the loop nor acknowledges'), () => {
    it('the message stays, unreplied, and is dead-lettered once the write succeeds', async () => {
      const bench = aLoop()
      const dlq = faulty(bench.dlq)
      dlq.faults.send = away()
      const loop = runLoop(bench, { dlq: { to: dlq.mailbox, policy: after(1) } })
      await bench.requests.send({}, { replyTo: 'replies' })
      await bench.settle()
      expect(await counts(bench)).toEqual([1, 0, 0])
      expect(loop.running).toBe(true)
      expect(bench.eventsOf('message-failed')).toHaveLength(1)
      delete dlq.faults.send
      await bench.clock.advance(60_000)
      expect(await counts(bench)).toEqual([0, 1, 1])
    })
  })

  describe(clause('M6', 'a failing DLQ write never ends the loop nor acknowledges'), () => {
    it('an expired receipt and an unreachable broker never end the loop either', async () => {
      const bench = aLoop()
      const source = faulty(bench.requests)
      const loop = runLoop(bench, { requests: source.mailbox, process: () => 'done' })
      for (const fault of [new RedriveError('RECEIPT_EXPIRED', 'stale'), away()]) {
        source.faults.acknowledge = fault
        await bench.requests.send({})
        await bench.settle()
      }
      delete source.faults.acknowledge
      source.faults.receive = away()
      await bench.clock.advance(3_600_000)
      expect(loop.running).toBe(true)
      expect(loop.problems()).toHaveLength(1)
      delete source.faults.receive
      await bench.clock.advance(60_000)
      expect(loop.problems()).toEqual([])
      expect(await counts(bench)).toEqual([0, 0, 0])
    })
  })

  describe(clause('M6', 'a failing DLQ write never ends the loop nor acknowledges'), () => {
    it('a worker without its lease writes no dead letter, and a second write after a crash adds none', async () => {
      const bench = aLoop()
      const gate = deferred()
      runLoop(bench, {
        visibilitySeconds: 10,
        process: () => gate.promise.then(fails),
        dlq: { to: bench.dlq, policy: after(1) },
      })
      await bench.requests.send({})
      await bench.clock.advance(10_000)
      gate.resolve()
      await bench.settle()
      expect(bench.eventsOf('message-lost').length).toBeGreaterThan(0)
      const other = aLoop()
      const source = faulty(other.requests)
      source.faults.acknowledge = away()
      runLoop(other, {
        requests: source.mailbox,
        dlq: { to: other.dlq, policy: new DLQPolicy({ includeErrors: [TypeError] }) },
      })
      await other.requests.send({})
      await other.clock.advance(600_000)
      expect(other.eventsOf('dead-lettered').length).toBeGreaterThan(1)
      expect(await other.dlq.approximateCount()).toBe(1)
    })
  })

  describe(clause('M6', 'a failing DLQ write never ends the loop nor acknowledges'), () => {
    it('a mailbox cannot be its own dead letter queue', () => {
      const bench = aLoop()
      const make = (): unknown =>
        new MainLoop({ ...bench.parts, process: fails, dlq: { to: bench.requests } })
      expect(make).toThrow(expect.objectContaining({ code: 'INVALID_CONFIG' }))
    })
  })
})
