import { describe, expect, it } from 'vitest'
import { RedriveError } from '../../src/errors.ts'
import { createEmit } from '../../src/loops/events.ts'
import type { HeldMessage } from '../../src/loops/held-message.ts'
import { Receiver, type ReceiverOptions } from '../../src/loops/receiver.ts'
import type { Message } from '../../src/mailbox.ts'
import { testMailbox } from '../../src/testing/index.ts'
import { deferred } from '../a-queue.ts'
import { override } from '../crash/override.ts'
import { aLoop, faulty, type LoopBench } from './a-loop.ts'

/** Acknowledges each message, unless the test overrides it. */
function aReceiver(bench: LoopBench, options: Partial<ReceiverOptions> = {}): Receiver {
  return new Receiver({
    mailbox: bench.requests,
    clock: bench.clock,
    emit: createEmit(bench),
    handleMessage: ({ message }) => message.acknowledge(),
    ...options,
  })
}

/** Work that waits for the test, and fails when its signal aborts if it is polite. */
function slowWork(polite: boolean): {
  handleMessage: (held: HeldMessage) => Promise<void>
  begun: HeldMessage[]
  finish: () => void
} {
  const gate = deferred()
  const begun: HeldMessage[] = []
  const handleMessage = async (held: HeldMessage): Promise<void> => {
    begun.push(held)
    const aborted = new Promise<void>((resolve) =>
      held.signal.addEventListener('abort', () => resolve()),
    )
    await (polite ? Promise.race([gate.promise, aborted]) : gate.promise)
    if (held.ended === 'stopped') await held.message.nack({ failed: false }).catch(() => {})
    else await held.message.acknowledge().catch(() => {})
  }
  return { handleMessage, begun, finish: () => gate.resolve() }
}

describe('Receiver', () => {
  it('reports messages that expire while it runs, and none afterwards', async () => {
    const bench = aLoop()
    const mailbox = testMailbox({ name: 'requests', clock: bench.clock, retentionSeconds: 60 })
    const receiver = aReceiver(bench, { mailbox })
    for (let n = 0; n < 2; n++) await mailbox.send({ n })
    await mailbox.advance(60_000)
    await receiver.run({ maxIterations: 1, waitSeconds: 0 })
    const expected = [{ type: 'messages-expired', mailbox: 'requests', count: 2 }]
    expect(bench.eventsOf('messages-expired')).toEqual(expected)
    await mailbox.send('left')
    await mailbox.advance(60_000)
    expect(await mailbox.receive()).toEqual([])
    expect(bench.eventsOf('messages-expired')).toEqual(expected)
  })

  it('ends by itself after maxIterations turns', async () => {
    const bench = aLoop()
    const receiver = aReceiver(bench)
    for (let n = 0; n < 3; n++) await bench.requests.send({ n })
    await receiver.run({ maxIterations: 2 })
    expect(await bench.requests.approximateCount()).toBe(1)
    expect(receiver.running).toBe(false)
  })

  it('rejects a run with options that no mailbox accepts, instead of polling in vain', async () => {
    const bench = aLoop()
    const receiver = aReceiver(bench)
    for (const options of [
      { visibilitySeconds: Number.NaN },
      { visibilitySeconds: 43_201 },
      { waitSeconds: -1 },
      { maxIterations: Number.NaN },
    ])
      expect(() => void receiver.run(options)).toThrow(
        expect.objectContaining({ code: 'INVALID_INPUT' }),
      )
    expect(() => aReceiver(bench, { extendEveryMs: Number.NaN })).toThrow(/extendEveryMs/)
    expect(receiver.running).toBe(false)
  })

  it('continues after errors of receive with a backoff, a beating heart and a reported problem', async () => {
    const bench = aLoop()
    const source = faulty(bench.requests)
    const receiver = aReceiver(bench, { mailbox: source.mailbox })
    source.faults.receive = new RedriveError('MAILBOX_UNAVAILABLE', 'away')
    void receiver.run()
    await bench.settle()
    expect(receiver.problems()).toEqual(['cannot receive from requests: MAILBOX_UNAVAILABLE'])
    await bench.clock.advance(10_000)
    const calls = source.calls.length
    expect(calls).toBeGreaterThan(2)
    expect(calls).toBeLessThan(8)
    await bench.clock.advance(600_000)
    expect(receiver.heartbeat.elapsedMs()).toBeLessThanOrEqual(30_000)
    expect(receiver.running).toBe(true)
    delete source.faults.receive
    await bench.requests.send({})
    await bench.clock.advance(30_000)
    expect(receiver.problems()).toEqual([])
    expect(await bench.requests.approximateCount()).toBe(0)
  })

  it('ends when its mailbox is closed', async () => {
    const bench = aLoop()
    const run = aReceiver(bench).run()
    await bench.settle()
    await bench.requests.close()
    await expect(run).resolves.toBeUndefined()
  })

  it('pauses between polls when waitSeconds is 0', async () => {
    const bench = aLoop()
    const source = faulty(bench.requests)
    void aReceiver(bench, { mailbox: source.mailbox, waitSeconds: 0 }).run()
    await bench.clock.advance(1000)
    expect(source.calls.length).toBeLessThanOrEqual(12)
  })

  it('prefers the visibility of the run, even zero, to its own', async () => {
    const bench = aLoop()
    const work = slowWork(false)
    void aReceiver(bench, { handleMessage: work.handleMessage }).run({ visibilitySeconds: 0 })
    await bench.requests.send({})
    await bench.settle()
    expect(work.begun[0]?.ended).toBe('lost')
    expect(await bench.requests.receive()).toHaveLength(1)
  })

  it('aborts the signal of work whose lease expired, and not of work that beats', async () => {
    const bench = aLoop()
    const work = slowWork(false)
    void aReceiver(bench, {
      handleMessage: work.handleMessage,
      visibilitySeconds: 100,
      concurrency: 2,
    }).run()
    await bench.requests.send({})
    await bench.requests.send({})
    await bench.settle()
    const [silent, beating] = work.begun
    for (let minute = 0; minute < 5; minute++) {
      beating!.heartbeat.beat()
      await bench.clock.advance(60_000)
    }
    expect(silent?.ended).toBe('lost')
    expect(silent?.signal.reason).toMatchObject({ code: 'LEASE_LOST' })
    expect(beating?.ended).toBeUndefined()
  })

  it('respects that work extends its message by itself', async () => {
    const bench = aLoop()
    const work = slowWork(false)
    void aReceiver(bench, { handleMessage: work.handleMessage, visibilitySeconds: 100 }).run()
    await bench.requests.send({})
    await bench.clock.advance(50_000)
    const [held] = work.begun
    await held!.message.extend(200)
    await bench.clock.advance(199_000)
    expect(held?.ended).toBeUndefined()
    await bench.clock.advance(1000)
    expect(held?.ended).toBe('lost')
  })

  it('beats with the work', async () => {
    const bench = aLoop()
    const work = slowWork(false)
    const receiver = aReceiver(bench, { handleMessage: work.handleMessage })
    void receiver.run()
    await bench.requests.send({})
    await bench.clock.advance(60_000)
    expect(receiver.heartbeat.elapsedMs()).toBe(60_000)
    work.begun[0]!.heartbeat.beat()
    expect(receiver.heartbeat.elapsedMs()).toBe(0)
  })

  it('cannot run twice at a time, and can run again after it has ended', async () => {
    const bench = aLoop()
    const receiver = aReceiver(bench)
    const first = receiver.run()
    expect(() => receiver.run()).toThrow('is already running')
    await bench.settle()
    expect(await receiver.shutdown()).toBe(true)
    await first
    await bench.requests.send({})
    await receiver.run({ maxIterations: 1 })
    expect(await bench.requests.approximateCount()).toBe(0)
  })

  it('rejects with the error of the work, after other work in process', async () => {
    const bench = aLoop()
    const gate = deferred()
    let ended = false
    const receiver = aReceiver(bench, {
      concurrency: 2,
      handleMessage: async ({ message }) => {
        if ((message.value() as { n: number }).n === 1) throw new Error('a bug')
        await gate.promise
        ended = true
      },
    })
    await bench.requests.send({ n: 0 })
    await bench.requests.send({ n: 1 })
    const run = receiver.run()
    const broke = expect(run).rejects.toThrow('a bug')
    await bench.settle()
    expect(receiver.running).toBe(true)
    gate.resolve()
    await broke
    expect(ended).toBe(true)
  })

  it('rejects invalid bounds', () => {
    const bench = aLoop()
    for (const concurrency of [0, 1.5, Number.NaN])
      expect(() => aReceiver(bench, { concurrency })).toThrow('concurrency')
    expect(() => aReceiver(bench, { visibilitySeconds: 43_201 })).toThrow('visibilitySeconds')
  })
})

describe('the shutdown of a Receiver', () => {
  it('before the run ends it at once', async () => {
    const bench = aLoop()
    const receiver = aReceiver(bench)
    expect(await receiver.shutdown()).toBe(true)
    await bench.requests.send({})
    await receiver.run()
    expect(await bench.requests.approximateCount()).toBe(1)
    await receiver.run({ maxIterations: 1 })
    expect(await bench.requests.approximateCount()).toBe(0)
  })

  it('waits for the work in process, and receives nothing new', async () => {
    const bench = aLoop()
    const work = slowWork(true)
    const receiver = aReceiver(bench, { handleMessage: work.handleMessage })
    const run = receiver.run()
    await bench.requests.send({ n: 1 })
    await bench.requests.send({ n: 2 })
    await bench.settle()
    let answer: boolean | undefined
    const stopped = receiver.shutdown().then((done) => (answer = done))
    await bench.clock.advance(28_000)
    expect(answer).toBeUndefined()
    expect(work.begun).toHaveLength(1)
    work.finish()
    await stopped
    await run
    expect(answer).toBe(true)
    expect(await bench.requests.approximateCount()).toBe(1)
  })

  it('aborts work that takes too long, which then releases its message uncounted', async () => {
    const bench = aLoop()
    const work = slowWork(true)
    const receiver = aReceiver(bench, { handleMessage: work.handleMessage })
    void receiver.run()
    await bench.requests.send({})
    await bench.settle()
    const stopped = receiver.shutdown({ timeoutMs: 10_000 })
    await bench.clock.advance(8999)
    expect(work.begun[0]?.signal.aborted).toBe(false)
    await bench.clock.advance(1)
    expect(await stopped).toBe(true)
    const [message] = await bench.requests.receive()
    expect(message).toMatchObject({ deliveries: 1, failures: 0 })
  })

  it('releases messages whose work ignores its signal, returns false, and that work has no effect', async () => {
    const bench = aLoop()
    const work = slowWork(false)
    const receiver = aReceiver(bench, { handleMessage: work.handleMessage })
    const run = receiver.run()
    await bench.requests.send({})
    await bench.settle()
    const stopped = receiver.shutdown({ timeoutMs: 10_000 })
    await bench.clock.advance(10_000)
    expect(await stopped).toBe(false)
    await run
    expect(bench.eventsOf('message-released')).toHaveLength(1)
    expect(bench.clock.pending()).toBe(0)
    work.finish()
    await bench.settle()
    const [message] = await bench.requests.receive()
    expect(message).toMatchObject({ deliveries: 2, failures: 1 })
  })

  it('leaves no timer for an extension that was in flight', async () => {
    const bench = aLoop()
    const work = slowWork(false)
    const extended = deferred()
    const receiver = aReceiver(bench, { handleMessage: work.handleMessage })
    void receiver.run()
    await bench.requests.send({})
    await bench.settle()
    const [held] = work.begun
    Object.assign(held!.message, { extend: () => extended.promise })
    held!.heartbeat.beat()
    const stopped = receiver.shutdown({ timeoutMs: 10_000 })
    await bench.clock.advance(10_000)
    expect(await stopped).toBe(false)
    extended.resolve()
    await bench.settle()
    expect(bench.clock.pending()).toBe(0)
  })

  it('releases every message of a batch that arrives while it stops', async () => {
    const bench = aLoop()
    const arrived = deferred()
    const late = new Proxy(bench.requests, {
      get: (target, key) => {
        const value: unknown = Reflect.get(target, key)
        if (typeof value !== 'function') return value
        if (key !== 'receive') return value.bind(target) as unknown
        return async () => {
          const messages = await target.receive({ max: 10, visibilitySeconds: 600 })
          await arrived.promise
          return messages
        }
      },
    })
    for (let n = 0; n < 4; n++) await bench.requests.send({ n })
    let begun = 0
    const receiver = aReceiver(bench, {
      mailbox: late,
      concurrency: 5,
      handleMessage: async () => void begun++,
    })
    void receiver.run()
    await bench.settle()
    const stopped = receiver.shutdown()
    arrived.resolve()
    expect(await stopped).toBe(true)
    expect(begun).toBe(0)
    expect(bench.eventsOf('message-released')).toHaveLength(4)
    const back = await bench.requests.receive({ max: 10 })
    expect(back.map(({ failures }) => failures)).toEqual([0, 0, 0, 0])
  })

  it('does not block the next run when a call of this one returns late', async () => {
    const bench = aLoop()
    const late = deferred<Message[]>()
    const away = override(bench.requests, { receive: () => late.promise })
    let mailbox = away
    const switched = new Proxy(away, { get: (_, key) => Reflect.get(mailbox, key) as unknown })
    const gate = deferred()
    let done = 0
    const handleMessage = async ({ message }: HeldMessage): Promise<void> => {
      await gate.promise
      await message.acknowledge()
      done += 1
    }
    const receiver = aReceiver(bench, { mailbox: switched, handleMessage })
    void receiver.run()
    const stopped = receiver.shutdown({ timeoutMs: 0 })
    await bench.clock.advance(1000)
    expect(await stopped).toBe(false)
    mailbox = override(bench.requests, {})
    void receiver.run()
    for (let n = 0; n < 3; n++) await bench.requests.send({ n })
    await bench.settle()
    late.resolve([])
    await bench.settle()
    gate.resolve()
    await bench.settle()
    expect(done).toBe(3)
  })

  it('called twice ends once, and the shorter time counts', async () => {
    const bench = aLoop()
    const work = slowWork(false)
    const receiver = aReceiver(bench, { handleMessage: work.handleMessage })
    void receiver.run()
    await bench.requests.send({})
    await bench.settle()
    const patient = receiver.shutdown({ timeoutMs: 60_000 })
    const hasty = receiver.shutdown({ timeoutMs: 0 })
    await bench.clock.advance(1000)
    expect(await hasty).toBe(false)
    expect(await patient).toBe(false)
    expect(receiver.running).toBe(false)
  })

  it('called concurrently many times leaves the receiver able to run', async () => {
    const bench = aLoop()
    const receiver = aReceiver(bench, { concurrency: 3 })
    for (let round = 0; round < 30; round++) {
      await bench.requests.send({ round })
      const run = receiver.run()
      if (round % 2 === 0) await bench.settle()
      const stopped = await Promise.all(Array.from({ length: 10 }, () => receiver.shutdown()))
      expect(stopped).toEqual(Array(10).fill(true))
      await run
      expect(receiver.running).toBe(false)
    }
    await receiver.run({ maxIterations: 20, waitSeconds: 0 })
    expect(await bench.requests.approximateCount()).toBe(0)
    expect(bench.clock.pending()).toBe(0)
  })
})
