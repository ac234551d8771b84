import { afterEach, describe, expect, it } from 'vitest'
import type { LoopEvent } from '../../src/loops/events.ts'
import { MainLoop, type MainLoopOptions } from '../../src/loops/main-loop.ts'
import type { Mailbox } from '../../src/mailbox.ts'
import { natsMailbox } from '../../src/mailboxes/nats/nats.ts'
import { redisMailbox } from '../../src/mailboxes/redis/redis.ts'
import { fixed } from '../../src/policy/backoff.ts'
import { DLQPolicy } from '../../src/policy/dlq-policy.ts'
import { refused } from '../a-queue.ts'
import { natsPlace } from '../servers/broker-places.ts'
import { redisPlace } from '../servers/places.ts'
import { backend } from '../servers/servers.ts'
import { aLoop, type LoopBench } from './a-loop.ts'
import { waitFor } from '../wait-for.ts'

interface Order {
  n: number
}

const hourMs = 3_600_000
const minuteMs = 60_000

/** A loop on messages numbered from 0, whose work records its runs and may throw. */
async function aLoopOn(
  messages: number,
  work: (order: Order) => void,
  options: Partial<MainLoopOptions<Order, unknown>> = {},
) {
  const bench: LoopBench = aLoop()
  for (let n = 0; n < messages; n++) await bench.requests.send({ n })
  const runs: { n: number; atMs: number }[] = []
  const loop = new MainLoop<Order>({
    ...bench.parts,
    concurrency: 10,
    dlq: { to: bench.dlq },
    process: (order) => {
      runs.push({ n: order.n, atMs: bench.clock.mono() })
      work(order)
    },
    ...options,
  })
  void loop.run()
  const counts = async (): Promise<{ left: number; dead: number; done: number }> => ({
    left: await bench.requests.approximateCount(),
    dead: await bench.dlq.approximateCount(),
    done: bench.eventsOf('message-done').length,
  })
  const breaker = (): string[] => bench.eventsOf('loop-breaker').map(({ state }) => state)
  return { ...bench, loop, runs, counts, breaker }
}

describe('the breaker of a loop', () => {
  it('lets no message of an outage be dead-lettered, and all be processed afterwards', async () => {
    let isUp = false
    const bench = await aLoopOn(1000, () => {
      if (!isUp) throw refused()
    })
    const { clock, counts, runs, eventsOf } = bench
    await clock.advance(2 * hourMs)
    expect(await counts()).toEqual({ left: 1000, dead: 0, done: 0 })
    // The messages that opened the breaker and those in flight then, and one probe in 5 minutes.
    expect(runs.length).toBeLessThan(60)
    expect(eventsOf('message-failed').every(({ deliveries }) => deliveries === 1)).toBe(true)
    isUp = true
    await clock.advance(10 * minuteMs)
    expect(await counts()).toEqual({ left: 0, dead: 0, done: 1000 })
    expect(bench.breaker().at(-1)).toBe('closed')
    expect(new Set(eventsOf('message-done').map(({ messageId }) => messageId)).size).toBe(1000)
  })

  it('tries one message at a time, after pauses that grow', async () => {
    const bench = await aLoopOn(100, () => {
      throw refused()
    })
    const openedMs = bench.clock.mono()
    await bench.settle()
    expect(bench.breaker()).toEqual(['open'])
    const before = bench.runs.length
    await bench.clock.advance(30 * minuteMs)
    const probes = bench.runs.slice(before).map(({ atMs }) => Math.round((atMs - openedMs) / 1000))
    expect(probes.slice(0, 7)).toEqual([30, 90, 210, 450, 750, 1050, 1350])
    const others = new Set(bench.runs.slice(before).map(({ n }) => n))
    expect(others.size).toBeGreaterThan(3)
  })

  it('resumes only after several probes have succeeded', async () => {
    let up = 0
    const bench = await aLoopOn(100, () => {
      if (up-- <= 0) throw refused()
    })
    await bench.settle()
    up = 2
    await bench.clock.advance(30_000)
    expect(bench.breaker()).toEqual(['open', 'half-open', 'open'])
    expect(bench.eventsOf('message-done')).toHaveLength(2)
    up = Infinity
    await bench.clock.advance(20 * minuteMs)
    expect(bench.breaker()).toEqual(['open', 'half-open', 'open', 'half-open', 'closed'])
    expect(await bench.counts()).toEqual({ left: 0, dead: 0, done: 100 })
  })

  it('is reported by an event, by the problems of the loop, and by its heartbeat', async () => {
    const bench = await aLoopOn(100, () => {
      throw refused()
    })
    await bench.settle()
    const until = new Date(bench.clock.now() + 30_000).toISOString()
    const cause = 'Error: connect ECONNREFUSED 127.0.0.1:443'
    expect(bench.eventsOf('loop-breaker')).toEqual([
      { type: 'loop-breaker', mailbox: 'requests', state: 'open', until, cause },
    ])
    expect(bench.loop.problems()).toEqual([
      `the breaker of requests is open: ${cause}; the next try is at ${until}`,
    ])
    for (let seconds = 0; seconds < 100; seconds++) {
      await bench.clock.advance(1000)
      expect(bench.loop.heartbeat.elapsedMs()).toBeLessThanOrEqual(1000)
    }
    expect(bench.eventsOf('message-deferred')[0]).toMatchObject({ during: 'process' })
  })

  it('does not keep the loop from stopping and from running again', async () => {
    let isUp = false
    const bench = await aLoopOn(100, () => {
      if (!isUp) throw refused()
    })
    await bench.settle()
    expect(bench.breaker()).toEqual(['open'])
    expect(await bench.loop.shutdown()).toBe(true)
    isUp = true
    void bench.loop.run()
    await bench.clock.advance(10 * minuteMs)
    expect(await bench.counts()).toEqual({ left: 0, dead: 0, done: 100 })
  })

  it('forgets a probe that never ended when the loop runs again', async () => {
    let work: () => Promise<void> | void = () => {
      throw refused()
    }
    const bench = aLoop()
    for (let n = 0; n < 100; n++) await bench.requests.send({ n })
    const loop = new MainLoop({ ...bench.parts, concurrency: 10, process: () => work() })
    void loop.run()
    await bench.settle()
    work = () => new Promise(() => {})
    await bench.clock.advance(30_000)
    expect(bench.eventsOf('loop-breaker').at(-1)).toMatchObject({ state: 'half-open' })
    const stopped = loop.shutdown({ timeoutMs: 1000 })
    await bench.clock.advance(2000)
    expect(await stopped).toBe(false)
    work = () => {}
    void loop.run()
    await bench.clock.advance(10 * minuteMs)
    expect(bench.eventsOf('message-done')).toHaveLength(100)
  })

  it('dead-letters a lone message whose probes keep failing with an unknown error', async () => {
    const bench = await aLoopOn(30, ({ n }) => {
      if (n < 100) throw new Error('odd')
    })
    await bench.settle()
    expect(bench.breaker()).toEqual(['open'])
    await bench.requests.purge()
    await bench.requests.send({ n: 50 })
    await bench.clock.advance(2 * hourMs)
    expect(await bench.counts()).toEqual({ left: 0, dead: 1, done: 0 })
    expect(bench.runs.filter(({ n }) => n === 50)).toHaveLength(5)
    await bench.requests.send({ n: 100 })
    await bench.clock.advance(hourMs)
    expect(await bench.counts()).toEqual({ left: 0, dead: 1, done: 1 })
  })

  it('dead-letters none of many messages that fail with an unknown error in an outage', async () => {
    const bench = await aLoopOn(200, () => {
      throw new Error('odd')
    })
    await bench.clock.advance(24 * hourMs)
    expect(await bench.counts()).toEqual({ left: 200, dead: 0, done: 0 })
  })

  it('never dead-letters a lone message of an outage that the classifier knows', async () => {
    const bench = await aLoopOn(30, () => {
      throw refused()
    })
    await bench.settle()
    await bench.requests.purge()
    await bench.requests.send({ n: 50 })
    await bench.clock.advance(24 * hourMs)
    expect(await bench.counts()).toEqual({ left: 1, dead: 0, done: 0 })
  })

  const invalid = (): Error => Object.assign(new Error('Unprocessable'), { status: 422 })
  const poison: [string, (order: Order) => void, number][] = [
    [
      'fail with several causes',
      ({ n }) => {
        const causes = [TypeError, RangeError, SyntaxError, URIError]
        throw new causes[n % 4]!(`cause ${'abcd'[n % 4]}`)
      },
      200,
    ],
    [
      'are invalid',
      () => {
        throw invalid()
      },
      200,
    ],
    [
      'fail with one cause among others that succeed',
      ({ n }) => {
        if (n % 4 === 0) throw new Error('odd')
      },
      50,
    ],
  ]
  it.each(poison)('stays closed for messages that %s', async (_what, work, dead) => {
    const bench = await aLoopOn(200, work)
    await bench.clock.advance(hourMs)
    expect(await bench.counts()).toEqual({ left: 0, dead, done: 200 - dead })
    expect(bench.breaker()).toEqual([])
    for (const { deliveries } of bench.eventsOf('dead-lettered')) expect(deliveries).toBe(5)
  })

  it('stays closed for fewer messages than it needs, which are dead-lettered', async () => {
    const bench = await aLoopOn(19, () => {
      throw refused()
    })
    await bench.clock.advance(hourMs)
    expect(await bench.counts()).toEqual({ left: 0, dead: 19, done: 0 })
    expect(bench.breaker()).toEqual([])
  })

  it('stays closed for errors that the policy dead-letters at once', async () => {
    const policy = new DLQPolicy({ includeErrors: ['ECONNREFUSED'] })
    const bench = aLoop()
    for (let n = 0; n < 50; n++) await bench.requests.send({ n })
    const process = (): never => {
      throw refused()
    }
    void new MainLoop({ ...bench.parts, process, dlq: { to: bench.dlq, policy } }).run()
    await bench.settle()
    expect(bench.eventsOf('dead-lettered')).toHaveLength(50)
    expect(bench.eventsOf('loop-breaker')).toEqual([])
  })

  it('is off with breaker: false', async () => {
    const work = (): never => {
      throw refused()
    }
    const bench = await aLoopOn(100, work, { breaker: false })
    await bench.clock.advance(hourMs)
    expect(await bench.counts()).toEqual({ left: 0, dead: 100, done: 0 })
  })

  it('is off where a failure is answered at once', async () => {
    const bench = aLoop()
    for (let n = 0; n < 100; n++) await bench.requests.send({ n }, { replyTo: 'replies' })
    const process = (): never => {
      throw refused()
    }
    const options = { process, withoutPolicy: 'reply-and-ack', concurrency: 10 } as const
    void new MainLoop({ ...bench.parts, ...options }).run()
    await bench.settle()
    expect(await bench.replies.approximateCount()).toBe(100)
  })

  it.each<[unknown, string]>([
    [true, 'breaker must be false, or an object'],
    [{ failure: 3 }, 'failure'],
    [{ patienceMs: 3 }, 'patienceMs'],
    [{ failures: 0 }, 'breaker.failures must be from 1 to 1000'],
    [{ failures: 1.5 }, 'breaker.failures must be a whole number'],
    [{ share: 2 }, 'breaker.share must be from 0.01 to 1'],
    [{ openMs: 0 }, 'breaker.openMs must be'],
    [{ maxOpenMs: -1 }, 'breaker.maxOpenMs must be'],
    [{ probes: 0 }, 'breaker.probes must be'],
    [{ successes: '3' }, 'breaker.successes must be'],
  ])('rejects the setting %j', (breaker, message) => {
    const { parts } = aLoop()
    const options = { ...parts, process: () => 1, breaker: breaker as false }
    expect(() => new MainLoop(options)).toThrow(message)
  })
})

interface Broker {
  missing: string | undefined
  open: (name: string) => Mailbox
  clear: () => Promise<unknown>
}

function onRedis(): Broker {
  const { url, missing } = backend('redis')
  const place = redisPlace(url)
  return {
    missing,
    open: (name) => redisMailbox({ url, prefix: place.name, name }),
    clear: () => place.clear(),
  }
}

/** It does not count failures separately from deliveries. */
function onNats(): Broker {
  const { url, missing } = backend('nats')
  const place = natsPlace(url)
  return {
    missing,
    open: (name) => natsMailbox({ url, prefix: place.name, name }),
    clear: () => place.clear(),
  }
}

describe.each<[string, Broker]>([
  ['Redis', onRedis()],
  ['NATS', onNats()],
])('the breaker of a loop on %s', (_name, { missing, open, clear }) => {
  const opened: Mailbox[] = []
  afterEach(async () => {
    await Promise.all(opened.splice(0).map((mailbox) => mailbox.close()))
    if (!missing) await clear()
  })

  it.skipIf(missing)('lets no message of an outage exceed its deliveries', async () => {
    const [requests, dead] = [open('orders'), open('orders-dead')]
    opened.push(requests, dead)
    await Promise.all(opened.map((mailbox) => mailbox.open()))
    const messages = 12
    for (let n = 0; n < messages; n++) await requests.send({ n })
    const events: LoopEvent[] = []
    const count = (type: LoopEvent['type']): number =>
      events.filter((event) => event.type === type).length
    let isUp = false
    const loop = new MainLoop({
      requests,
      concurrency: 4,
      waitSeconds: 1,
      backoff: fixed(500),
      breaker: { failures: 3, openMs: 10, maxOpenMs: 20, successes: 2 },
      dlq: { to: dead, policy: new DLQPolicy({ maxDeliveryCount: 3 }) },
      process: () => {
        if (!isUp) throw refused()
      },
      onEvent: (event) => void events.push(event),
    })
    const ended = loop.run()
    // More probes than all messages have deliveries.
    const many = 3 * messages
    const patient = { timeout: 50_000, interval: 10 }
    await waitFor(() => expect(count('message-deferred')).toBeGreaterThan(many), patient)
    isUp = true
    await waitFor(() => expect(count('message-done')).toBe(messages), patient)
    expect(count('dead-lettered')).toBe(0)
    await loop.shutdown()
    await ended
    expect(await requests.approximateCount()).toBe(0)
    expect(await dead.approximateCount()).toBe(0)
  })
})
