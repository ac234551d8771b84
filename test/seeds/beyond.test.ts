import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { decodePayload } from '../../src/letter/payload.ts'
import { readDeadMessage } from '../../src/loops/dead-message.ts'
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
import { quote } from './rows.ts'
import { after, counts, deadOf, fails, running, type Request } from './running.ts'

describe(quote('M14'), () => {
  it('replays by itself after a while, when what broke is mended', async () => {
    const bench = aLoop()
    let mended = false
    running(bench, {
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
    let folder: string
    let dlq: Mailbox
    beforeEach(async () => {
      folder = await mkdtemp(join(tmpdir(), 'redrive-m14-'))
    })
    afterEach(async () => {
      await dlq.close()
      await rm(folder, { recursive: true, force: true })
    })

    it('a message of one mailbox dies into the file of another, and is replayed to the first', async () => {
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
      // The reply comes when the dead letter is kept.
      await bench.requests.send({ n: 7 }, { replyTo: 'replies' })
      const [told] = await bench.replies.receive({ waitSeconds: 1000 })
      await told!.acknowledge()
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

  it('transforms a body on its way back', async () => {
    const bench = aLoop()
    running(bench, {
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

  it('dead letters have priorities: kept as letters, the critical one runs before older ones', async () => {
    const { dlq: queue, clock } = await aQueue({ maxConcurrent: 1 })
    const bench = aLoop()
    const to = queue.deadLetters({
      context: ({ body }) => {
        const { n } = decodePayload(body) as Request
        return { priority: n === 3 ? 'critical' : 'low' }
      },
    })
    running(bench, { process: () => Promise.reject(refused()), dlq: { to, policy: after(1) } })
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

  it('errors go to different dead letter queues, and a route that fails loses nothing', async () => {
    const bench = aLoop()
    const { clock } = bench
    const throttled = memoryMailbox({ name: 'throttled', clock })
    running(bench, {
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
})

describe(quote('M15'), () => {
  it('a message that ends its worker every time is dead-lettered without another run', async () => {
    const folder = await mkdtemp(join(tmpdir(), 'redrive-m15-'))
    const path = join(folder, 'mail.db')
    const requests = sqliteMailbox({ path, name: 'requests' })
    const dlq = sqliteMailbox({ path, name: 'requests-dlq' })
    await requests.open()
    await dlq.open()
    const id = await requests.send({ poison: true })
    const worker = join(import.meta.dirname, 'dies-at-work.ts')
    for (let deaths = 0; deaths < 3; deaths++) {
      const child = spawn(process.execPath, [worker, path], { stdio: 'inherit' })
      expect(await once(child, 'exit')).toEqual([null, 'SIGKILL'])
    }
    let ran = 0
    const loop = new MainLoop({
      requests,
      dlq: { to: dlq, policy: after(3) },
      process: () => void ran++,
    })
    const run = loop.run()
    const [message] = await dlq.receive({ waitSeconds: 25 })
    expect(readDeadMessage(message!, dlq.name)).toMatchObject({
      messageId: id,
      deliveryCount: 4,
      lastErrorType: 'MaxDeliveriesExceeded',
      lastError: expect.stringContaining('max deliveries exceeded'),
    })
    await loop.shutdown()
    await run
    expect(ran).toBe(0)
    expect(await requests.approximateCount()).toBe(0)
    await requests.close()
    await dlq.close()
    await rm(folder, { recursive: true, force: true })
  })

  it('a body that cannot be decoded is dead-lettered as its bytes, and those beside it are processed', async () => {
    const bench = aLoop()
    const raw = new Uint8Array([0x7b, 0xff, 0x00])
    running(bench, { concurrency: 3, process: () => 'fine' })
    await bench.requests.send({ n: 1 })
    await bench.requests.send(raw, { contentType: 'application/json', replyTo: 'replies' })
    await bench.requests.send({ n: 2 })
    await bench.settle()
    expect(bench.heard('message-done')).toHaveLength(2)
    const [dead] = await deadOf(bench.dlq)
    expect([...dead!.body.bytes]).toEqual([...raw])
    expect(dead).toMatchObject({ deliveryCount: 1, failure: { code: 'UNDECODABLE' } })
    expect(await bench.take(bench.replies)).toMatchObject([
      { error: expect.stringContaining('Dead-lettered after 1 attempts') },
    ])
    expect(await bench.requests.approximateCount()).toBe(0)
  })

  it('neither is replayed by itself: they are parked', async () => {
    const bench = aLoop()
    const parked = memoryMailbox({ name: 'parked', clock: bench.clock })
    running(bench)
    await bench.requests.send(new Uint8Array([0xff]), { contentType: 'application/json' })
    const handler = replayHandler({ source: bench.requests })
    void new DLQConsumer({ mailbox: bench.dlq, clock: bench.clock, handler, parked }).run()
    await bench.settle()
    expect(await counts(bench)).toEqual([0, 0, 0])
    expect(await deadOf(parked)).toMatchObject([{ hopeless: true }])
  })
})
