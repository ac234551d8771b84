import type { Meter } from '@opentelemetry/api'
import { describe, expect, it } from 'vitest'
import { mailboxDestination } from '../../src/loops/destination.ts'
import { DLQConsumer, type DLQConsumerOptions } from '../../src/loops/dlq-consumer.ts'
import { dlqHealth } from '../../src/loops/dlq-health.ts'
import { alertHandler } from '../../src/loops/handlers/alert.ts'
import { replayHandler } from '../../src/loops/handlers/replay.ts'
import { logLoop, type LoopLogger } from '../../src/loops/log.ts'
import { LoopGroup } from '../../src/loops/loop-group.ts'
import { MainLoop, type MainLoopOptions } from '../../src/loops/main-loop.ts'
import { metricsOf } from '../../src/loops/metrics.ts'
import type { LoopEvent } from '../../src/loops/events.ts'
import { otelMetrics } from '../../src/observers/metrics/otel-metrics.ts'
import { memoryMailbox } from '../../src/mailboxes/memory/memory.ts'
import { aQueue, deferred } from '../a-queue.ts'
import { aDeadMessage } from '../loops/a-dead-message.ts'
import { aLoop, faulty, type LoopBench } from '../loops/a-loop.ts'
import { aServer } from '../server/a-server.ts'
import { clause, row } from './rows.ts'
import { after, recordReceives, away, fails, runLoop, type Request } from './run-loop.ts'

describe(row('M10'), () => {
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

  describe(clause('M10', 'LoopGroup: loops together'), () => {
    it('runs a loop and the consumer of its dead letters', async () => {
      const bench = aLoop()
      const { group: together, main, consumer } = group(bench, {}, fails)
      const run = together.run()
      await bench.requests.send({})
      await bench.settle()
      expect(bench.eventsOf('dead-letter-handled')).toMatchObject([{ action: 'alerted' }])
      expect([main.running, consumer.running]).toEqual([true, true])
      expect(await together.shutdown()).toBe(true)
      await run
      expect([main.running, consumer.running, together.running]).toEqual([false, false, false])
    })
  })

  it(clause('M10', 'health port (/health/live, /health/ready)'), async () => {
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

  it(clause('M10', 'watchdog'), async () => {
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
    expect(bench.eventsOf('loop-stalled')).toMatchObject([{ loop: 'requests' }])
  })

  it(clause('M10', 'signals'), async () => {
    const bench = aLoop()
    const { group: together, main } = group(bench, { signals: ['SIGUSR2'] })
    const run = together.run()
    await bench.settle()
    process.kill(process.pid, 'SIGUSR2')
    await run
    expect(main.running).toBe(false)
  })

  it(clause('M10', "one loop's crash is surfaced"), async () => {
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
    expect(bench.eventsOf('loop-crashed')).toMatchObject([{ loop: 'crashing' }])
    expect(consumer.running).toBe(false)
  })

  it(clause('M10', 'shutdown reaches all'), async () => {
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

  describe(clause('M10', 'LoopGroup: loops together'), () => {
    it('each loop keeps its own visibility', async () => {
      const bench = aLoop()
      const { mailbox: dlq, visibilities } = recordReceives(bench.dlq)
      const { group: together } = group({ ...bench, dlq })
      const run = together.run()
      await bench.settle()
      await together.shutdown()
      await run
      expect(visibilities).toEqual([60])
    })
  })
})

describe(row('M11'), () => {
  /**
   * The metrics since the last call, as name and value, without gauges, which are reported on a
   * schedule.
   */
  const takeMetrics = (bench: LoopBench): [string, number][] =>
    bench.events
      .splice(0)
      .flatMap(metricsOf)
      .filter(({ kind }) => kind !== 'gauge')
      .map(({ name, value }) => [name, value])
  const consume = (bench: LoopBench, handler: DLQConsumerOptions['handler']): DLQConsumer => {
    const { dlq: mailbox, clock, onEvent } = bench
    const consumer = new DLQConsumer({ mailbox, clock, onEvent, handler })
    void consumer.run()
    return consumer
  }

  it(clause('M11', "metrics: the seed's seven names, emitted at the transition"), async () => {
    const bench = aLoop()
    let handled = 0
    runLoop(bench, { dlq: { to: bench.dlq, policy: after(1) } })
    await bench.requests.send({ n: 1 })
    await bench.requests.send({ n: 2 })
    await bench.settle()
    expect(takeMetrics(bench)).toEqual([
      ['dlq.messages.sent', 1],
      ['dlq.messages.sent', 1],
    ])
    await bench.clock.advance(90_000)
    consume(bench, () => ({ action: handled++ === 0 ? 'replayed' : 'discarded' }))
    await bench.settle()
    const depths = bench.events.flatMap(metricsOf).filter(({ name }) => name === 'dlq.queue.depth')
    expect(depths.length).toBeGreaterThan(0)
    expect(takeMetrics(bench)).toEqual([
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

  describe(clause('M11', 'exported (Prometheus, OpenTelemetry)'), () => {
    const dotted = [
      'dlq.messages.sent',
      'dlq.messages.processed',
      'dlq.messages.replayed',
      'dlq.messages.discarded',
      'dlq.queue.depth',
      'dlq.message.age_seconds',
      'dlq.processing.duration_ms',
    ]

    /** A loop with two dead messages: one is replayed, one discarded. */
    const handleTwo = async (onEvent: (event: LoopEvent) => void): Promise<void> => {
      const bench = aLoop()
      runLoop(bench, { onEvent, dlq: { to: bench.dlq, policy: after(1) } })
      await bench.requests.send({ n: 1 })
      await bench.requests.send({ n: 2 })
      await bench.settle()
      let handled = 0
      const { dlq: mailbox, clock } = bench
      const handler = (): { action: string } => ({
        action: handled++ === 0 ? 'replayed' : 'discarded',
      })
      void new DLQConsumer({ mailbox, clock, onEvent, handler } as DLQConsumerOptions).run()
      await bench.settle()
    }

    it('to Prometheus by the server, for loops and for letters', async () => {
      const server = await aServer()
      const { dlq, metrics } = server
      dlq.on('*', metrics.observe)
      await handleTwo((event) => metrics.record(metricsOf(event)))
      const { id } = await dlq.enqueue({ type: 'mail', payload: 1 }, new Error('x'))
      await dlq.resolve(id)
      await dlq.enqueue({ type: 'mail', payload: 1 }, new Error('x'))
      const client = await server.client()
      const text = await client.scrapeMetrics()
      for (const name of [
        'dlq_messages_sent_total',
        'dlq_messages_processed_total',
        'dlq_messages_replayed_total',
        'dlq_messages_discarded_total',
        'dlq_queue_depth',
        'dlq_message_age_seconds_count',
        'dlq_processing_duration_seconds_count',
      ])
        expect(text).toMatch(new RegExp(`^${name}\\{.*\\} [0-9]`, 'm'))
      expect(text).toMatch(/^dlq_messages_sent_total\{source="requests",.*\} 2$/m)
      expect(text).toMatch(/^dlq_messages_processed_total\{dlq="letters of mail",.*\} 1$/m)
      expect(text).toMatch(/^dlq_queue_depth\{dlq="letters of mail"\} 1$/m)
      await server.close()
    })

    it('to OpenTelemetry under the same names', async () => {
      const recorded: string[] = []
      const instrument = (name: string) => {
        const record = (): unknown => recorded.push(name)
        return { add: record, record }
      }
      const meter = {
        createCounter: instrument,
        createGauge: instrument,
        createHistogram: instrument,
      } as unknown as Meter
      const record = otelMetrics(meter)
      await handleTwo((event) => record(metricsOf(event)))
      expect(dotted.filter((name) => !recorded.includes(name))).toEqual([])
    })
  })

  it(clause('M11', 'also when dead messages are kept as letters'), async () => {
    const { dlq, clock, events } = await aQueue()
    const bench = aLoop()
    const to = dlq.deadLetters()
    runLoop(bench, { clock, dlq: { to, policy: after(1) } })
    await bench.requests.send({ n: 1 })
    await bench.requests.send({ n: 2 })
    await clock.advance(0)
    expect(takeMetrics(bench)).toEqual([
      ['dlq.messages.sent', 1],
      ['dlq.messages.sent', 1],
    ])
    const [first, second] = (await dlq.find()).items
    await clock.advance(90_000)
    events.splice(0)
    await dlq.resolve(first!.id)
    await dlq.remove(second!.id)
    const metrics = events.flatMap(metricsOf)
    const names = metrics.map(({ name, tags }) => [name, tags['source']])
    expect(names).toEqual(
      expect.arrayContaining([
        ['dlq.messages.processed', 'requests'],
        ['dlq.messages.discarded', 'requests'],
        ['dlq.message.age_seconds', 'requests'],
      ]),
    )
    expect(metrics.find(({ name }) => name === 'dlq.message.age_seconds')?.value).toBe(90)
    await dlq.close()
  })

  describe(clause('M11', 'depth and age are reported without traffic'), () => {
    const gauges = (bench: LoopBench): [string, number][] =>
      bench.events
        .splice(0)
        .flatMap(metricsOf)
        .filter(({ kind }) => kind === 'gauge')
        .map(({ name, value }) => [name, value])

    it('by the consumer of a mailbox, while a message waits in it', async () => {
      const bench = aLoop()
      await mailboxDestination(bench.dlq).keep(aDeadMessage({}), undefined)
      // Another consumer has the message: this consumer handles nothing.
      await bench.dlq.receive({ visibilitySeconds: 43_200 })
      consume(bench, () => {})
      await bench.clock.advance(600_000)
      const reported = gauges(bench)
      expect(reported).toContainEqual(['dlq.queue.depth', 1])
      const ages = reported.filter(([name]) => name === 'dlq.queue.oldest_age_seconds')
      expect(ages.at(-1)?.[1]).toBeGreaterThanOrEqual(540)
      expect(ages.length).toBeGreaterThanOrEqual(10)
    })

    it('by the loop that stores letters', async () => {
      const { dlq, clock } = await aQueue()
      const bench = aLoop()
      runLoop(bench, { clock, dlq: { to: dlq.deadLetters(), policy: after(1) } })
      await bench.requests.send({})
      await clock.advance(0)
      gauges(bench)
      await clock.advance(600_000)
      const reported = gauges(bench)
      expect(reported).toContainEqual(['dlq.queue.depth', 1])
      const ages = reported.filter(([name]) => name === 'dlq.queue.oldest_age_seconds')
      expect(ages.at(-1)?.[1]).toBeGreaterThanOrEqual(540)
      await dlq.close()
    })
  })

  it(clause('M11', 'the alert handler counts dlq.messages by source and error type'), async () => {
    const bench = aLoop()
    runLoop(bench, { dlq: { to: bench.dlq, policy: after(1) } })
    await bench.requests.send({ n: 1 })
    await bench.requests.send({ n: 2 })
    await bench.settle()
    consume(bench, alertHandler({ notify: () => {} }))
    await bench.settle()
    const counted = bench.events.flatMap(metricsOf).filter(({ name }) => name === 'dlq.messages')
    const counter = {
      name: 'dlq.messages',
      kind: 'counter',
      value: 1,
      tags: { source: 'requests', errorType: 'TypeError' },
    }
    expect(counted).toEqual([counter, counter])
  })

  it(clause('M11', "structured logs with the seed's fields"), async () => {
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
    runLoop(bench, { onEvent, dlq: { to: bench.dlq, policy: after(1) } })
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

describe(row('M12'), () => {
  describe(clause('M12', 'health check with DLQ depth and threshold'), () => {
    it('degraded from the threshold on', async () => {
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
  })

  describe(clause('M12', 'health check with DLQ depth and threshold'), () => {
    it('degraded by the age of the oldest letter, however few there are', async () => {
      const { dlq, clock } = aLoop()
      await dlq.send('old')
      await clock.advance(7_200_000)
      const health = await dlqHealth(dlq, { clock, oldestAgeSeconds: 3600 })
      expect(health).toMatchObject({
        status: 'degraded',
        dlq: { depth: 1, oldestAgeSeconds: 7200 },
      })
    })
  })

  it(clause('M12', 'degraded, not an exception, when the backend is down'), async () => {
    const { dlq } = aLoop()
    const broken = faulty(dlq)
    for (const fault of [away(), new Error('socket hang up')]) {
      broken.faults.approximateCount = fault
      expect(await dlqHealth(broken.mailbox)).toMatchObject({
        status: 'degraded',
        dlq: { name: 'requests-dlq' },
        problems: [expect.stringContaining('cannot be inspected')],
      })
    }
    await dlq.close()
    expect(await dlqHealth(dlq)).toMatchObject({ status: 'degraded' })
  })
})
