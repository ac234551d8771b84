import { describe, expect, it } from 'vitest'
import { DLQConsumer } from '../../src/loops/dlq-consumer.ts'
import { dlqHealth } from '../../src/loops/dlq-health.ts'
import { alertHandler } from '../../src/loops/handlers/alert.ts'
import { replayHandler } from '../../src/loops/handlers/replay.ts'
import { logLoop, type LoopLogger } from '../../src/loops/log.ts'
import { LoopGroup } from '../../src/loops/loop-group.ts'
import { MainLoop, type MainLoopOptions } from '../../src/loops/main-loop.ts'
import { metricsOf } from '../../src/loops/metrics.ts'
import { memoryMailbox } from '../../src/mailboxes/memory/memory.ts'
import { deferred } from '../a-queue.ts'
import { aLoop, faulty, type LoopBench } from '../loops/a-loop.ts'
import { quote } from './rows.ts'
import { after, asking, away, fails, running, type Request } from './running.ts'

describe(quote('M10'), () => {
  const group = (
    bench: LoopBench,
    options: Partial<ConstructorParameters<typeof LoopGroup>[0]> = {},
    process: NonNullable<MainLoopOptions<Request, unknown>['process']> = () => 1,
  ): { group: LoopGroup; main: MainLoop<Request>; consumer: DLQConsumer } => {
    const dlq = { to: bench.dlq, policy: after(1) }
    const main = new MainLoop<Request>({ ...bench.parts, process, dlq })
    const { clock, onEvent } = bench
    const consumer = new DLQConsumer({
      mailbox: bench.dlq,
      clock,
      onEvent,
      visibilitySeconds: 60,
      handler: alertHandler({ notify: () => {} }),
    })
    const loops = [main, consumer]
    return {
      main,
      consumer,
      group: new LoopGroup({ loops, clock, onEvent, signals: [], ...options }),
    }
  }
  const ask = async (port: number | undefined, path: string): Promise<[number, string]> => {
    const response = await fetch(`http://127.0.0.1:${port}${path}`)
    const { status } = (await response.json()) as { status: string }
    return [response.status, status]
  }

  it('runs a loop and the consumer of its dead letters together, until a shutdown that reaches both', async () => {
    const bench = aLoop()
    const { group: together, main, consumer } = group(bench, {}, fails)
    const run = together.run()
    await bench.requests.send({})
    await bench.settle()
    expect(bench.heard('dead-letter-handled')).toMatchObject([{ action: 'alerted' }])
    expect([main.running, consumer.running]).toEqual([true, true])
    expect(await together.shutdown()).toBe(true)
    await run
    expect([main.running, consumer.running, together.running]).toEqual([false, false, false])
  })

  it('answers on its health port: live, ready or not as things are, and nothing else', async () => {
    const bench = aLoop()
    const source = faulty(bench.requests)
    const parts = { ...bench, parts: { ...bench.parts, requests: source.mailbox } }
    const { group: together } = group(parts, { healthPort: 0 })
    const run = together.run()
    while (together.healthPort === undefined) await bench.settle()
    await bench.settle()
    const port = together.healthPort
    expect(await ask(port, '/health/live')).toEqual([200, 'healthy'])
    expect(await ask(port, '/health/ready')).toEqual([200, 'healthy'])
    expect(await ask(port, '/health')).toEqual([404, 'not found'])
    source.faults.receive = away()
    await bench.clock.advance(25_000)
    expect(await ask(port, '/health/ready')).toEqual([503, 'unhealthy'])
    expect(await ask(port, '/health/live')).toEqual([200, 'healthy'])
    delete source.faults.receive
    await bench.clock.advance(60_000)
    expect(await ask(port, '/health/ready')).toEqual([200, 'healthy'])
    await together.shutdown()
    await run
    await expect(ask(port, '/health/live')).rejects.toThrow()
  })

  it('a loop that no longer beats is named, its work aborted, and the group ends with that error', async () => {
    const bench = aLoop()
    const { group: together } = group(
      bench,
      { watchdogMs: 60_000 },
      (_request, { signal }) =>
        new Promise((_, reject) => signal.addEventListener('abort', () => reject(new Error('x')))),
    )
    const broke = expect(together.run()).rejects.toThrow('the loop requests has not beaten')
    await bench.requests.send({})
    await bench.clock.advance(120_000)
    await broke
    expect(bench.heard('loop-stalled')).toMatchObject([{ loop: 'requests' }])
  })

  it('a signal stops it', async () => {
    const bench = aLoop()
    const { group: together, main } = group(bench, { signals: ['SIGUSR2'] })
    const run = together.run()
    await bench.settle()
    process.kill(process.pid, 'SIGUSR2')
    await run
    expect(main.running).toBe(false)
  })

  it('the crash of one loop is told at once, stops the others, and is what the run rejects with', async () => {
    const bench = aLoop()
    const { consumer } = group(bench)
    const crash = deferred<never>()
    const loop = {
      name: 'crashing',
      running: true,
      heartbeat: consumer.heartbeat,
      run: () => crash.promise,
      shutdown: async () => true,
    }
    const { clock, onEvent } = bench
    const run = new LoopGroup({ loops: [consumer, loop], clock, onEvent, signals: [] }).run()
    const broke = expect(run).rejects.toThrow('a bug')
    await bench.settle()
    crash.reject(new Error('a bug'))
    await broke
    expect(bench.heard('loop-crashed')).toMatchObject([{ loop: 'crashing' }])
    expect(consumer.running).toBe(false)
  })

  it('shutdown waits for what is under way, signals all although one is slow, and then can run again', async () => {
    const bench = aLoop()
    const gate = deferred()
    const { group: together, consumer } = group(bench, {}, () => gate.promise)
    const run = together.run()
    await bench.requests.send({})
    await bench.settle()
    const stopping = together.shutdown()
    await bench.settle()
    expect([consumer.running, together.running]).toEqual([false, true])
    gate.resolve()
    expect(await stopping).toBe(true)
    await run
    expect(await bench.requests.approximateCount()).toBe(0)
    const again = together.run()
    await bench.settle()
    expect(consumer.running).toBe(true)
    await together.shutdown()
    await again
  })

  it('each loop keeps its own visibility', async () => {
    const bench = aLoop()
    const { mailbox: dlq, asked } = asking(bench.dlq)
    const { group: together } = group({ ...bench, dlq })
    const run = together.run()
    await bench.settle()
    await together.shutdown()
    await run
    expect(asked).toEqual([60])
  })
})

describe(quote('M11'), () => {
  it('all seven metrics are told when it happens, by their names', async () => {
    const bench = aLoop()
    let handled = 0
    running(bench, { dlq: { to: bench.dlq, policy: after(1) } })
    const told = (): [string, number][] =>
      bench.events
        .splice(0)
        .flatMap(metricsOf)
        .map(({ name, value }) => [name, value])
    await bench.requests.send({ n: 1 })
    await bench.requests.send({ n: 2 })
    await bench.settle()
    expect(told()).toEqual([
      ['dlq.messages.sent', 1],
      ['dlq.messages.sent', 1],
    ])
    await bench.clock.advance(90_000)
    void new DLQConsumer({
      mailbox: bench.dlq,
      clock: bench.clock,
      onEvent: bench.onEvent,
      handler: () => ({ action: handled++ === 0 ? 'replayed' : 'discarded' }),
    }).run()
    await bench.settle()
    const all = told()
    const ofQueue = ([name]: [string, number]): boolean => name.startsWith('dlq.queue.')
    expect(all.filter(ofQueue)).toEqual([
      ['dlq.queue.depth', 2],
      ['dlq.queue.oldest_age_seconds', 90],
    ])
    expect(all.filter((one) => !ofQueue(one))).toEqual([
      ['dlq.messages.processed', 1],
      ['dlq.messages.replayed', 1],
      ['dlq.message.age_seconds', 90],
      ['dlq.processing.duration_ms', 0],
      ['dlq.messages.processed', 1],
      ['dlq.messages.discarded', 1],
      ['dlq.message.age_seconds', 90],
      ['dlq.processing.duration_ms', 0],
    ])
  })

  it('a dead letter and its handling are logged with the fields of the design, and nothing of the body', async () => {
    const bench = aLoop()
    const lines: Record<string, unknown>[] = []
    const at =
      (level: string) =>
      (fields: object, message: string): void =>
        void lines.push({ level, message, ...fields })
    const logger: LoopLogger = {
      debug: at('debug'),
      info: at('info'),
      warn: at('warn'),
      error: at('error'),
    }
    const onEvent = logLoop(logger)
    running(bench, { onEvent, dlq: { to: bench.dlq, policy: after(1) } })
    const id = await bench.requests.send({ requestId: 'r-1', secret: 'hidden-in-the-body' })
    await bench.clock.advance(30_000)
    const handler = replayHandler({ source: memoryMailbox({ name: 'requests' }) })
    void new DLQConsumer({ mailbox: bench.dlq, clock: bench.clock, onEvent, handler }).run()
    await bench.settle()
    expect(lines.filter(({ level }) => level === 'warn')).toEqual([
      {
        level: 'warn',
        message: 'Message dead-lettered',
        event: 'dead-lettered',
        messageId: id,
        requestId: 'r-1',
        sourceMailbox: 'requests',
        deliveryCount: 1,
        errorType: 'TypeError',
        errorMessage: 'no such order',
        destination: 'requests-dlq',
      },
    ])
    expect(lines.filter(({ level }) => level === 'info')).toMatchObject([
      {
        message: 'Processing dead letter',
        messageId: id,
        requestId: 'r-1',
        ageSeconds: 30,
        action: 'replayed',
      },
    ])
    expect(JSON.stringify(lines)).not.toContain('hidden-in-the-body')
  })
})

describe(quote('M12'), () => {
  it('says the depth and its threshold, and is degraded from the threshold on', async () => {
    const { dlq, clock } = aLoop()
    for (let n = 0; n < 99; n++) await dlq.send(n)
    expect(await dlqHealth(dlq, { clock })).toMatchObject({
      status: 'healthy',
      dlq: { name: 'requests-dlq', depth: 99, threshold: 100 },
    })
    await dlq.send(99)
    expect(await dlqHealth(dlq, { clock })).toMatchObject({
      status: 'degraded',
      dlq: { depth: 100, threshold: 100 },
      problems: [expect.stringContaining('100')],
    })
    expect(await dlqHealth(dlq, { clock, threshold: 200 })).toMatchObject({ status: 'healthy' })
  })

  it('one old letter is a reason too, however few there are', async () => {
    const { dlq, clock } = aLoop()
    await dlq.send('old')
    await clock.advance(7_200_000)
    const health = await dlqHealth(dlq, { clock, oldestAgeSeconds: 3600 })
    expect(health).toMatchObject({ status: 'degraded', dlq: { depth: 1, oldestAgeSeconds: 7200 } })
  })

  it('a broker that is away means degraded with the reason, and no exception', async () => {
    const { dlq } = aLoop()
    const broken = faulty(dlq)
    for (const fault of [away(), new Error('socket hang up')]) {
      broken.faults.approximateCount = fault
      expect(await dlqHealth(broken.mailbox)).toMatchObject({
        status: 'degraded',
        dlq: { name: 'requests-dlq' },
        problems: [expect.stringContaining('cannot be looked at')],
      })
    }
    await dlq.close()
    expect(await dlqHealth(dlq)).toMatchObject({ status: 'degraded' })
  })
})
