import { join } from 'node:path'
import { afterEach, describe, expect, it } from 'vitest'
import { decodePayload } from '../../src/letter/payload.ts'
import { mailboxDestination } from '../../src/loops/destination.ts'
import { DLQConsumer } from '../../src/loops/dlq-consumer.ts'
import { replayHandler } from '../../src/loops/handlers/replay.ts'
import { selectiveReplay } from '../../src/loops/handlers/selective-replay.ts'
import { MainLoop } from '../../src/loops/main-loop.ts'
import type { Mailbox } from '../../src/mailbox.ts'
import { memoryMailbox } from '../../src/mailboxes/memory/memory.ts'
import { sqliteMailbox } from '../../src/mailboxes/sqlite/sqlite.ts'
import { aQueue, refused } from '../a-queue.ts'
import { aLoop } from '../loops/a-loop.ts'
import { aFolder } from '../folders.ts'
import { clause, row } from './rows.ts'
import { after, counts, deadOf, fails, runLoop, type Request } from './run-loop.ts'

describe(row('M14'), () => {
  it(clause('M14', 'beyond its limits: automatic replay'), async () => {
    const bench = aLoop()
    let mended = false
    runLoop(bench, {
      process: () => (mended ? 'done' : fails()),
      dlq: { to: mailboxDestination(bench.dlq, { delaySeconds: 600 }), policy: after(1) },
    })
    const handler = replayHandler({ source: bench.requests })
    void new DLQConsumer({ mailbox: bench.dlq, clock: bench.clock, handler }).run()
    await bench.requests.send({}, { replyTo: 'replies' })
    await bench.clock.advance(599_000)
    expect(await counts(bench)).toEqual([0, 1, 1])
    await bench.take(bench.replies)
    mended = true
    await bench.clock.advance(1000)
    expect(await bench.take(bench.replies)).toMatchObject([{ output: 'done' }])
    expect(await counts(bench)).toEqual([0, 0, 0])
  })

  describe('across brokers', () => {
    const folder = aFolder('beyond')
    let dlq: Mailbox
    afterEach(async () => {
      await dlq.close()
    })

    it(clause('M14', 'cross-backend'), async () => {
      const bench = aLoop()
      dlq = sqliteMailbox({ path: join(folder, 'mail.db'), name: 'requests-dlq' })
      await dlq.open()
      let broken = true
      const loop = new MainLoop<Request>({
        requests: bench.requests,
        dlq: { to: dlq, policy: after(1) },
        process: ({ n }) => (broken ? fails() : n),
      })
      const run = loop.run()
      // The reply arrives after the dead letter is stored.
      await bench.requests.send({ n: 7 }, { replyTo: 'replies' })
      const [deadReply] = await bench.replies.receive({ waitSeconds: 1000 })
      await deadReply!.acknowledge()
      broken = false
      const report = await selectiveReplay(dlq, { source: bench.requests, predicate: () => true })
      expect(report).toMatchObject({ replayed: 1, complete: true })
      const [reply] = await bench.replies.receive({ waitSeconds: 1000 })
      expect(reply?.value()).toMatchObject({ output: 7 })
      expect(await dlq.approximateCount()).toBe(0)
      await loop.shutdown()
      await run
    })
  })

  it(clause('M14', 'transformation on replay'), async () => {
    const bench = aLoop()
    runLoop(bench, {
      process: ({ n }) => (typeof n === 'number' ? n : fails()),
      dlq: { to: bench.dlq, policy: after(1) },
    })
    await bench.requests.send({ requestId: 'r-1', n: '7' }, { replyTo: 'replies' })
    await bench.settle()
    await bench.take(bench.replies)
    const transform = (value: unknown): Request => ({
      ...(value as Request),
      n: Number((value as Request).n),
    })
    const handler = replayHandler({ source: bench.requests, transform })
    void new DLQConsumer({ mailbox: bench.dlq, clock: bench.clock, handler }).run()
    await bench.settle()
    expect(await bench.take(bench.replies)).toMatchObject([{ requestId: 'r-1', output: 7 }])
  })

  it(clause('M14', 'priority'), async () => {
    const { dlq: queue, clock } = await aQueue({ maxConcurrent: 1 })
    const bench = aLoop()
    const to = queue.deadLetters({
      context: ({ body }) => {
        const { n } = decodePayload(body) as Request
        return { priority: n === 3 ? 'critical' : 'low' }
      },
    })
    runLoop(bench, { process: () => Promise.reject(refused()), dlq: { to, policy: after(1) } })
    for (const n of [1, 2, 3]) await bench.requests.send({ n })
    await bench.settle()
    expect(await bench.requests.approximateCount()).toBe(0)
    const ran: unknown[] = []
    queue.handle('requests', ({ input }) => void ran.push((input as Request).n))
    await clock.advance(3_600_000)
    queue.start()
    await clock.advance(0)
    expect(ran).toHaveLength(3)
    expect(ran[0]).toBe(3)
    await queue.close()
  })

  it(clause('M14', 'routing of errors to different DLQs'), async () => {
    const bench = aLoop()
    const { clock } = bench
    const throttled = memoryMailbox({ name: 'throttled', clock })
    runLoop(bench, {
      process: ({ n }) => {
        if (n === 1) throw new RangeError('too many requests')
        throw n === 2 ? new TypeError('bad') : new Error('odd')
      },
      dlq: {
        to: bench.dlq,
        policy: after(1),
        route: (error) => {
          if (error instanceof TypeError) throw new Error('a bug in the route')
          return error instanceof RangeError ? throttled : undefined
        },
      },
    })
    for (const n of [1, 2, 3]) await bench.requests.send({ n })
    await bench.settle()
    const types = async (mailbox: Mailbox): Promise<string[]> =>
      (await deadOf(mailbox)).map(({ lastErrorType }) => lastErrorType)
    expect(await types(throttled)).toEqual(['RangeError'])
    expect(await types(bench.dlq)).toEqual(['TypeError', 'Error'])
  })

  describe(
    clause('M14', 'a letter of a loop can be replayed to its source mailbox, counted and limited'),
    () => {
      /** A loop whose dead messages are letters, and how to replay one of them. */
      const lettersOf = async (process: (request: Request) => unknown) => {
        const { dlq, clock, events } = await aQueue({ maxReplays: 2 })
        const bench = aLoop()
        runLoop(bench, { clock, process, dlq: { to: dlq.deadLetters(), policy: after(1) } })
        return {
          bench,
          dlq,
          events,
          settle: () => clock.advance(0),
          unsettled: async () =>
            (await dlq.find({ state: ['pending', 'exhausted', 'parked'] })).items[0]!,
          replay: (id: string) => dlq.replay(id),
        }
      }

      it('the message is published to its source again, and its reply reaches the sender', async () => {
        let broken = true
        const { bench, dlq, settle, unsettled, replay } = await lettersOf(({ n }) =>
          broken ? fails() : n! * 2,
        )
        await bench.requests.send({ requestId: 'r-1', n: 21 }, { replyTo: 'replies' })
        await settle()
        await bench.take(bench.replies)
        broken = false
        const { id } = await unsettled()
        expect(await replay(id)).toMatchObject({ state: 'resolved', replays: 1 })
        await settle()
        expect(await bench.take(bench.replies)).toMatchObject([{ requestId: 'r-1', output: 42 }])
        await dlq.close()
      })

      it('replays are counted over all letters of the message, and the last one is parked', async () => {
        let runs = 0
        const { bench, dlq, settle, unsettled, replay } = await lettersOf(() => {
          runs++
          return fails()
        })
        await bench.requests.send({})
        await settle()
        for (const replays of [1, 2]) {
          expect(await replay((await unsettled()).id)).toMatchObject({ replays })
          await settle()
        }
        const last = await unsettled()
        expect(await replay(last.id)).toMatchObject({ state: 'parked', reason: 'replay-limit' })
        await settle()
        expect(runs).toBe(3)
        expect(await bench.requests.approximateCount()).toBe(0)
        await dlq.close()
      })

      it('a letter whose source has no address is refused', async () => {
        const { dlq, replay } = await lettersOf(fails)
        const { id } = await dlq.enqueue({ type: 'a' }, refused())
        await expect(replay(id)).rejects.toMatchObject({ code: 'NO_ROUTE' })
        expect((await dlq.get(id))?.state).toBe('pending')
        await dlq.close()
      })
    },
  )
})

describe(row('M15'), () => {
  describe(clause('M15', 'a body that cannot be decoded is dead-lettered too'), () => {
    it('stored as its bytes, and the other messages are processed', async () => {
      const bench = aLoop()
      const raw = new Uint8Array([0x7b, 0xff, 0x00])
      runLoop(bench, { concurrency: 3, process: () => 'fine' })
      await bench.requests.send({ n: 1 })
      await bench.requests.send(raw, { contentType: 'application/json', replyTo: 'replies' })
      await bench.requests.send({ n: 2 })
      await bench.settle()
      expect(bench.eventsOf('message-done')).toHaveLength(2)
      const [dead] = await deadOf(bench.dlq)
      expect([...dead!.body.bytes]).toEqual([...raw])
      expect(dead).toMatchObject({ deliveryCount: 1, failure: { code: 'UNDECODABLE' } })
      expect(await bench.take(bench.replies)).toMatchObject([
        { error: expect.stringContaining('Dead-lettered after 1 attempts') },
      ])
      expect(await bench.requests.approximateCount()).toBe(0)
    })
  })

  describe(clause('M15', 'a body that cannot be decoded is dead-lettered too'), () => {
    it('not replayed automatically: parked', async () => {
      const bench = aLoop()
      const parked = memoryMailbox({ name: 'parked', clock: bench.clock })
      runLoop(bench)
      await bench.requests.send(new Uint8Array([0xff]), { contentType: 'application/json' })
      const handler = replayHandler({ source: bench.requests })
      void new DLQConsumer({ mailbox: bench.dlq, clock: bench.clock, handler, parked }).run()
      await bench.settle()
      expect(await counts(bench)).toEqual([0, 0, 0])
      expect(await deadOf(parked)).toMatchObject([{ hopeless: true }])
    })
  })
})
