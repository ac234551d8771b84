import { describe, expect, it } from 'vitest'
import { DLQConsumer } from '../../src/loops/dlq-consumer.ts'
import { dlqHealth } from '../../src/loops/dlq-health.ts'
import { Heartbeat } from '../../src/loops/heartbeat.ts'
import { LoopGroup, type LoopGroupOptions } from '../../src/loops/loop-group.ts'
import { MainLoop } from '../../src/loops/main-loop.ts'
import type { Runnable } from '../../src/loops/runnable.ts'
import { memoryMailbox } from '../../src/mailboxes/memory/memory.ts'
import { RedriveError } from '../../src/errors.ts'
import { DLQPolicy } from '../../src/policy/dlq-policy.ts'
import { fakeClock, type FakeClock } from '../../src/testing/fake-clock.ts'
import { deferred } from '../a-queue.ts'
import { aLoop, faulty, type LoopBench } from './a-loop.ts'

interface Scripted extends Runnable {
  runs: number
  stops: number
  crash: (error: unknown) => void
}

/** A loop controlled by the test. `deaf`: it does not end at shutdown. */
function scripted(clock: FakeClock, name: string, deaf = false): Scripted {
  let end = deferred()
  const loop = {
    name,
    runs: 0,
    stops: 0,
    heartbeat: new Heartbeat(clock),
    running: false,
    run: async (): Promise<void> => {
      loop.runs++
      loop.running = true
      end = deferred()
      try {
        await end.promise
      } finally {
        loop.running = false
      }
    },
    shutdown: async (): Promise<boolean> => {
      loop.stops++
      if (deaf) await new Promise(() => {})
      end.resolve()
      return true
    },
    crash: (error: unknown) => end.reject(error),
  }
  return loop
}

function aGroup(
  bench: Pick<LoopBench, 'clock' | 'onEvent'>,
  loops: Runnable[],
  options: Partial<LoopGroupOptions> = {},
): LoopGroup {
  const { clock, onEvent } = bench
  return new LoopGroup({ loops, clock, onEvent, signals: [], ...options })
}

describe('LoopGroup', () => {
  it('runs a request loop and the consumer of its dead letters', async () => {
    const bench = aLoop()
    const alerts: string[] = []
    const main = new MainLoop({
      ...bench.parts,
      process: () => {
        throw new Error('x')
      },
      dlq: { to: bench.dlq, policy: new DLQPolicy({ maxDeliveryCount: 1 }) },
    })
    const consumer = new DLQConsumer({
      clock: bench.clock,
      mailbox: bench.dlq,
      handler: ({ messageId }) => void alerts.push(messageId),
    })
    const group = aGroup(bench, [main, consumer])
    const run = group.run()
    const id = await bench.requests.send({})
    await bench.settle()
    expect(alerts).toEqual([id])
    expect(group.running).toBe(true)
    expect(await group.shutdown()).toBe(true)
    await run
    expect([main.running, consumer.running, group.running]).toEqual([false, false, false])
  })

  it('ends when all loops have ended by themselves', async () => {
    const bench = aLoop()
    const main = new MainLoop({ ...bench.parts, process: () => 1 })
    const run = aGroup(bench, [main]).run()
    await bench.settle()
    await bench.requests.close()
    await expect(run).resolves.toBeUndefined()
  })

  it('reports a crash at once, stops the other loops, and rejects with the error', async () => {
    const bench = aLoop()
    const [one, two, three] = ['one', 'two', 'three'].map((name) => scripted(bench.clock, name))
    const run = aGroup(bench, [one!, two!, three!]).run()
    const broke = expect(run).rejects.toThrow('boom')
    await bench.settle()
    three!.crash(new Error('boom'))
    await broke
    expect(bench.eventsOf('loop-crashed')).toMatchObject([{ loop: 'three' }])
    expect([one!.stops, two!.stops]).toEqual([1, 1])
  })

  it('restarts a crashed loop with growing delays, and gives up in the end', async () => {
    const bench = aLoop()
    const good = scripted(bench.clock, 'good')
    const bad = scripted(bench.clock, 'bad')
    const group = aGroup(bench, [good, bad], { restart: { attempts: 2 } })
    const broke = expect(group.run()).rejects.toThrow('boom')
    await bench.settle()
    bad.crash(new Error('boom'))
    await bench.settle()
    await bench.clock.advance(999)
    expect(bad.runs).toBe(1)
    await bench.clock.advance(1)
    expect(bad.runs).toBe(2)
    bad.crash(new Error('boom'))
    await bench.settle()
    await bench.clock.advance(2000)
    expect(bad.runs).toBe(3)
    expect(good.runs).toBe(1)
    bad.crash(new Error('boom'))
    await broke
    expect(bench.eventsOf('loop-crashed').map(({ restartMs }) => restartMs)).toEqual([
      1000,
      2000,
      undefined,
    ])
  })

  it('forgets the crashes of a loop that has run long enough', async () => {
    const bench = aLoop()
    const bad = scripted(bench.clock, 'bad')
    const group = aGroup(bench, [bad], { restart: { attempts: 1, forgetMs: 60_000 } })
    const run = group.run()
    for (let crash = 0; crash < 4; crash++) {
      await bench.clock.advance(60_000)
      bad.crash(new Error('boom'))
      await bench.clock.advance(1000)
    }
    expect(bad.runs).toBe(5)
    await group.shutdown()
    await run
  })

  it('does not restart a crashed loop once the group stops', async () => {
    const bench = aLoop()
    const bad = scripted(bench.clock, 'bad')
    const group = aGroup(bench, [bad], { restart: { attempts: 5 } })
    const run = group.run()
    await bench.settle()
    bad.crash(new Error('boom'))
    await bench.settle()
    expect(await group.shutdown()).toBe(true)
    await run
    expect([bad.runs, bad.stops]).toEqual([1, 0])
  })

  it('signals all loops before it waits for any, and is not blocked by one that does not end', async () => {
    const bench = aLoop()
    const deaf = scripted(bench.clock, 'deaf', true)
    const good = scripted(bench.clock, 'good')
    const group = aGroup(bench, [deaf, good], { shutdownTimeoutMs: 5000 })
    const run = group.run()
    await bench.settle()
    const stopped = group.shutdown()
    await bench.settle()
    expect([deaf.stops, good.stops]).toEqual([1, 1])
    expect(good.running).toBe(false)
    await bench.clock.advance(7000)
    expect(await stopped).toBe(false)
    await run
  })

  it('ends the next run at once after a shutdown before it', async () => {
    const bench = aLoop()
    const loop = scripted(bench.clock, 'one')
    const group = aGroup(bench, [loop])
    expect(await group.shutdown()).toBe(true)
    await group.run()
    expect(loop.runs).toBe(0)
  })

  it('stops on a signal, and then ignores signals', async () => {
    const bench = aLoop()
    const loop = scripted(bench.clock, 'one')
    const before = process.listenerCount('SIGUSR2')
    const run = aGroup(bench, [loop], { signals: ['SIGUSR2'] }).run()
    await bench.settle()
    process.kill(process.pid, 'SIGUSR2')
    await run
    expect(loop.stops).toBe(1)
    expect(process.listenerCount('SIGUSR2')).toBe(before)
  })

  it('leaves each loop its own visibility', async () => {
    const bench = aLoop()
    const gate = deferred()
    const main = new MainLoop({ ...bench.parts, visibilitySeconds: 7, process: () => gate.promise })
    const group = aGroup(bench, [main])
    const run = group.run()
    await bench.requests.send({})
    await bench.clock.advance(6999)
    expect(await bench.requests.receive()).toEqual([])
    await bench.clock.advance(1)
    expect(await bench.requests.receive()).toHaveLength(1)
    gate.resolve()
    await bench.settle()
    await group.shutdown()
    await run
  })

  it('starts no loop when its health port is in use', async () => {
    const bench = aLoop()
    const first = aGroup(bench, [scripted(bench.clock, 'one')], { healthPort: 0 })
    const run = first.run()
    while (first.healthPort === undefined) await bench.settle()
    const loop = scripted(bench.clock, 'two')
    const second = aGroup(bench, [loop], { healthPort: first.healthPort })
    await expect(second.run()).rejects.toThrow('EADDRINUSE')
    expect([loop.runs, second.running]).toEqual([0, false])
    await first.shutdown()
    await run
  })

  it.each([
    ['watchdogMs', { watchdogMs: Number.NaN }],
    ['watchdogMs', { watchdogMs: 0 }],
    ['shutdownTimeoutMs', { shutdownTimeoutMs: Number.NaN }],
    ['shutdownTimeoutMs', { shutdownTimeoutMs: -1 }],
    ['restart.attempts', { restart: { attempts: Number.NaN } }],
    ['restart.baseMs', { restart: { attempts: 1, baseMs: Number.NaN } }],
    ['restart.maxMs', { restart: { attempts: 1, maxMs: -1 } }],
    ['restart.forgetMs', { restart: { attempts: 1, forgetMs: Number.NaN } }],
  ])('rejects a %s by which it would stop or restart loops forever: %j', (name, options) => {
    const bench = aLoop()
    const loop = scripted(bench.clock, 'a')
    expect(() => aGroup(bench, [loop], options)).toThrow(
      expect.objectContaining({
        code: 'INVALID_INPUT',
        message: expect.stringContaining(name) as string,
      }) as Error,
    )
  })

  it('rejects a cycle of dead letters', () => {
    const bench = aLoop()
    const process = (): number => 1
    const there = new MainLoop({ ...bench.parts, process, dlq: { to: bench.dlq } })
    const back = new MainLoop({
      clock: bench.clock,
      requests: bench.dlq,
      process,
      dlq: { to: bench.requests },
    })
    expect(() => aGroup(bench, [there, back])).toThrow('break the cycle')
    const third = memoryMailbox({ name: 'third', clock: bench.clock })
    const on = new MainLoop({ requests: bench.dlq, process, dlq: { to: third } })
    expect(() => aGroup(bench, [there, on])).not.toThrow()
  })
})

describe('the health of a LoopGroup', () => {
  it('is ready while all loops run, beat and receive, and gives the reason otherwise', async () => {
    const bench = aLoop()
    const source = faulty(bench.requests)
    const main = new MainLoop({ ...bench.parts, requests: source.mailbox, process: () => 1 })
    const other = scripted(bench.clock, 'other')
    const group = aGroup(bench, [main, other], { healthPort: 0 })
    const run = group.run()
    await bench.settle()
    const ask = async (): Promise<[number, unknown]> => {
      const response = await fetch(`http://127.0.0.1:${group.healthPort}/health/ready`)
      return [response.status, await response.json()]
    }
    while (group.healthPort === undefined) await bench.settle()
    expect(await ask()).toEqual([200, { status: 'healthy', reasons: [] }])

    source.faults.receive = new RedriveError('MAILBOX_UNAVAILABLE', 'away')
    await bench.clock.advance(25_000)
    expect(await ask()).toEqual([
      503,
      {
        status: 'unhealthy',
        reasons: ['cannot receive from requests: MAILBOX_UNAVAILABLE'],
      },
    ])
    delete source.faults.receive
    await bench.clock.advance(60_000)
    expect((await ask())[0]).toBe(200)

    await bench.clock.advance(720_000)
    expect(await ask()).toMatchObject([503, { reasons: ['other has not beaten for 805000 ms'] }])
    await group.shutdown()
    await run
    expect(group.healthPort).toBeUndefined()
  })

  it('reports a deep dead letter queue and stays ready', async () => {
    const bench = aLoop()
    const loop = scripted(bench.clock, 'one')
    for (let n = 0; n < 3; n++) await bench.dlq.send({ n })
    const checks = [() => dlqHealth(bench.dlq, { threshold: 3, clock: bench.clock })]
    const group = aGroup(bench, [loop], { checks })
    const run = group.run()
    await bench.settle()
    expect(await group.readiness()).toMatchObject({
      ready: true,
      body: { status: 'degraded', checks: [{ dlq: { depth: 3 } }] },
    })
    await group.shutdown()
    await run
  })

  it('survives checks that throw or hang', async () => {
    const bench = aLoop()
    const breaks = (): never => {
      throw new Error('secret')
    }
    const hangs = (): Promise<never> => new Promise(() => {})
    const checks = [breaks, () => Promise.reject(new Error('secret')), hangs]
    const group = aGroup(bench, [new MainLoop({ ...bench.parts, process: () => 1 })], { checks })
    const run = group.run()
    await bench.settle()
    const readiness = group.readiness()
    await bench.clock.advance(2000)
    expect(await readiness).toEqual({
      ready: true,
      body: {
        status: 'degraded',
        reasons: [],
        checks: [
          { status: 'degraded', problems: ['a check failed'] },
          { status: 'degraded', problems: ['a check failed'] },
          { status: 'degraded', problems: ['a check has not answered within 2000 ms'] },
        ],
      },
    })
    expect(bench.eventsOf('error')).toHaveLength(2)
    await group.shutdown()
    await run
  })
})

describe('the watchdog of a LoopGroup', () => {
  it('aborts the work of a loop that no longer beats, stops the group and rejects', async () => {
    const clock = fakeClock()
    const bench = { ...aLoop(), clock }
    const requests = memoryMailbox({ name: 'requests', clock })
    let aborted = false
    const main = new MainLoop({
      requests,
      clock,
      visibilitySeconds: 3600,
      process: (_, { signal }) =>
        new Promise((_resolve, reject) =>
          signal.addEventListener('abort', () => {
            aborted = true
            reject(new Error('aborted'))
          }),
        ),
    })
    const group = aGroup(bench, [main], { watchdogMs: 60_000, shutdownTimeoutMs: 10_000 })
    const broke = expect(group.run()).rejects.toThrow('the loop requests has not beaten for')
    await requests.send({})
    await clock.advance(80_000)
    expect(bench.eventsOf('loop-stalled')).toMatchObject([{ loop: 'requests' }])
    await clock.advance(10_000)
    await broke
    expect(aborted).toBe(true)
    const [message] = await requests.receive()
    expect(message).toMatchObject({ failures: 0 })
  })
})
