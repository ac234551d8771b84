import { once } from 'node:events'
import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { DeadLetterRouter } from '../../src/loops/dead-lettering.ts'
import { readDeadMessage, type DeadMessage } from '../../src/loops/dead-message.ts'
import type { Destination } from '../../src/loops/destination.ts'
import { createEmit } from '../../src/loops/events.ts'
import { EvalLoop } from '../../src/loops/eval-loop.ts'
import { MainLoop } from '../../src/loops/main-loop.ts'
import type { Mailbox, Message, ReceiveOptions } from '../../src/mailbox.ts'
import { memoryMailbox } from '../../src/mailboxes/memory/memory.ts'
import { natsMailbox } from '../../src/mailboxes/nats/nats.ts'
import { sqliteMailbox } from '../../src/mailboxes/sqlite/sqlite.ts'
import { fixed, immediate } from '../../src/policy/backoff.ts'
import { DLQPolicy, type DLQPolicyOptions } from '../../src/policy/dlq-policy.ts'
import { aQueue } from '../a-queue.ts'
import { aFolder } from '../folders.ts'
import { spawn } from '../processes.ts'
import { natsPlace } from '../servers/broker-places.ts'
import { backend, freshName } from '../servers/servers.ts'
import { aLoop, type LoopBench } from './a-loop.ts'

class RateLimitError extends Error {}

describe('the destination of dead letters', () => {
  it('depends on the error if there is a route', async () => {
    const bench = aLoop()
    const bugs = memoryMailbox({ name: 'bugs', clock: bench.clock })
    const loop = new MainLoop<{ n: number }>({
      ...bench.parts,
      process: ({ n }) => {
        throw n === 1 ? new TypeError('bug') : new Error('other')
      },
      dlq: {
        to: bench.dlq,
        policy: new DLQPolicy({ maxDeliveryCount: 1 }),
        route: (error) => (error instanceof TypeError ? bugs : undefined),
      },
    })
    void loop.run()
    await bench.requests.send({ n: 1 })
    await bench.requests.send({ n: 2 })
    await bench.settle()
    expect(bench.eventsOf('dead-lettered').map(({ destination }) => destination)).toEqual([
      'bugs',
      'requests-dlq',
    ])
    expect(await bugs.approximateCount()).toBe(1)
    expect(await bench.dlq.approximateCount()).toBe(1)
  })

  it.each([
    ['throws', (): never => fail()],
    ['leads back to the source', undefined],
  ])('is the default when a route %s', async (_, route) => {
    const bench = aLoop()
    const router = new DeadLetterRouter(
      { to: bench.dlq, route: route ?? (() => bench.requests) },
      bench.requests,
      createEmit(bench),
    )
    await bench.requests.send({})
    const [message] = await bench.requests.receive()
    expect(router.destinationFor(new Error('x'), message!).mailbox).toBe(bench.dlq)
    expect(bench.eventsOf('error')).toMatchObject([{ during: 'route of requests' }])
  })

  it('is never the mailbox that they came from', () => {
    const { requests, clock } = aLoop()
    const process = (): number => 1
    const twin = memoryMailbox({ name: 'requests', clock })
    for (const to of [requests, twin])
      expect(() => new MainLoop({ requests, process, dlq: { to } })).toThrow(
        'requests cannot store its own dead letters: use another mailbox, such as requests-dlq',
      )
  })

  it('may be a mailbox with the same name at another broker', () => {
    const { requests, clock } = aLoop()
    const inner = memoryMailbox({ name: 'requests', clock })
    const elsewhere = Object.create(inner, {
      powers: { value: { ...inner.powers, kind: 'redis' } },
      name: { value: 'requests' },
    }) as typeof inner
    expect(() => new MainLoop({ requests, process: () => 1, dlq: { to: elsewhere } })).not.toThrow()
  })
})

describe('a message that stopping workers released', () => {
  it('runs in the end, however often it was released', async () => {
    const bench = aLoop()
    const policy = new DLQPolicy({ maxDeliveryCount: 2 })
    const parts = { ...bench.parts, dlq: { to: bench.dlq, policy } }
    await bench.requests.send({ order: 1 })
    for (let stopped = 0; stopped < 10; stopped++) {
      const loop = new MainLoop({
        ...parts,
        process: (_, { signal }) =>
          new Promise((_resolve, reject) => {
            signal.addEventListener('abort', () => reject(signal.reason))
          }),
      })
      const running = loop.run()
      await bench.settle()
      const stopping = loop.shutdown({ timeoutMs: 1000 })
      await bench.clock.advance(1000)
      await Promise.all([stopping, running])
    }
    expect(bench.eventsOf('message-released')).toHaveLength(10)
    const attempts: number[] = []
    const loop = new MainLoop({
      ...parts,
      process: (_, { attempt }) => void attempts.push(attempt),
    })
    const running = loop.run()
    await bench.settle()
    await loop.shutdown()
    await running
    expect(attempts).toEqual([1])
    expect(bench.eventsOf('dead-lettered')).toEqual([])
    expect(await bench.requests.approximateCount()).toBe(0)
  })

  it('is dead-lettered once it has killed its workers too often', async () => {
    const bench = aLoop()
    const policy = new DLQPolicy({ maxDeliveryCount: 2 })
    await bench.requests.send({ order: 1 })
    for (let ended = 0; ended < 2; ended++) {
      const [released] = await bench.requests.receive()
      await released!.nack({ failed: false })
      await bench.requests.receive()
      await bench.clock.advance(30_000)
    }
    const loop = new MainLoop({ ...bench.parts, process: () => 1, dlq: { to: bench.dlq, policy } })
    const running = loop.run()
    await bench.settle()
    await loop.shutdown()
    await running
    expect(bench.eventsOf('dead-lettered')).toMatchObject([{ errorType: 'MaxDeliveriesExceeded' }])
  })
})

/** A mailbox of a broker that counts deliveries only, as NATS and SQS do. */
function countingDeliveriesOnly(inner: Mailbox): Mailbox {
  const bound = (target: object, key: PropertyKey): unknown => {
    const value: unknown = Reflect.get(target, key)
    return typeof value === 'function' ? (value.bind(target) as unknown) : value
  }
  const forgetful = (message: Message): Message =>
    new Proxy(message, {
      get: (target, key) => (key === 'failures' ? target.deliveries - 1 : bound(target, key)),
    })
  return new Proxy(inner, {
    get: (target, key) => {
      if (key === 'powers') return { ...target.powers, remembers: false }
      if (key !== 'receive') return bound(target, key)
      return async (options: ReceiveOptions) => (await target.receive(options)).map(forgetful)
    },
  })
}

describe('a message that kills its worker, where some errors are excluded', () => {
  const policyWith = (options: DLQPolicyOptions = {}): DLQPolicy =>
    new DLQPolicy({ maxDeliveryCount: 3, excludeErrors: [RateLimitError], ...options })

  /** Receives without settling, like a worker that dies. */
  const dies = async ({ clock }: LoopBench, requests: Mailbox): Promise<void> => {
    await requests.receive({ visibilitySeconds: 1 })
    await clock.advance(1000)
  }

  /** A loop that is rate limited this often, and then succeeds. */
  const limited = (bench: LoopBench, requests: Mailbox, times: number): { runs: number } => {
    const counted = { runs: 0 }
    void new MainLoop({
      ...bench.parts,
      requests,
      backoff: immediate(),
      dlq: { to: bench.dlq, policy: policyWith() },
      process: () => {
        if (counted.runs++ < times) throw new RateLimitError('slow down')
      },
    }).run()
    return counted
  }

  const brokers: [string, (mailbox: Mailbox) => Mailbox][] = [
    ['counts failures', (mailbox) => mailbox],
    ['counts deliveries only', countingDeliveriesOnly],
  ]

  it.each(brokers)(
    'is dead-lettered after maxDeliveryCount deliveries, on a broker that %s',
    async (_, broker) => {
      const bench = aLoop()
      const requests = broker(bench.requests)
      await requests.send({})
      for (let deaths = 0; deaths < 3; deaths++) await dies(bench, requests)
      const counted = limited(bench, requests, 0)
      await bench.settle()
      expect(counted.runs).toBe(0)
      expect(bench.eventsOf('dead-lettered')).toMatchObject([
        {
          errorType: 'MaxDeliveriesExceeded',
          errorMessage: expect.stringContaining('of 3 deliveries, 3 ended without a known failure'),
        },
      ])
    },
  )

  it.each(brokers)(
    'is not confused with one that only met excluded errors, on a broker that %s',
    async (_, broker) => {
      const bench = aLoop()
      const requests = broker(bench.requests)
      await requests.send({})
      const counted = limited(bench, requests, 20)
      await bench.clock.advance(1000)
      expect(counted.runs).toBe(21)
      expect(bench.eventsOf('message-done')).toHaveLength(1)
      expect(bench.eventsOf('dead-lettered')).toEqual([])
    },
  )

  it('counts failures of other processes as crashes, on a broker that counts deliveries only', async () => {
    const bench = aLoop()
    const requests = countingDeliveriesOnly(bench.requests)
    await requests.send({})
    for (let failed = 0; failed < 3; failed++) {
      const [message] = await requests.receive()
      await message!.nack()
    }
    const counted = limited(bench, requests, 0)
    await bench.settle()
    expect(counted.runs).toBe(0)
    expect(bench.eventsOf('dead-lettered')).toMatchObject([{ errorType: 'MaxDeliveriesExceeded' }])
  })

  const folder = aFolder('ends')

  /**
   * Starts workers until one dead-letters the message. Returns how often it ran, and the outcomes.
   */
  const startWorkers = async (
    { url, prefix = '' }: { url: string; prefix?: string },
    limitedRuns: number,
  ): Promise<string[]> => {
    const runs = join(folder, freshName())
    await writeFile(runs, '')
    const worker = join(import.meta.dirname, 'ends-its-worker.ts')
    for (let starts = 0; starts < 8; starts++) {
      const args = [worker, url, prefix, runs, String(limitedRuns)]
      const child = spawn(process.execPath, args, { stdio: 'inherit' })
      const [code] = (await once(child, 'exit')) as [number | null]
      if (code === 0) break
    }
    return (await readFile(runs, 'utf8')).split('\n').slice(0, -1)
  }

  it('kills at most maxDeliveryCount processes, in addition to its excluded failures', async () => {
    const path = join(folder, 'mail.db')
    const requests = sqliteMailbox({ path, name: 'requests' })
    const dlq = sqliteMailbox({ path, name: 'requests-dlq' })
    await requests.open()
    await dlq.open()
    try {
      await requests.send({ poison: true })
      const runs = await startWorkers({ url: path }, 4)
      expect(runs.filter((run) => run === 'ended').length).toBeLessThanOrEqual(3)
      const [message] = await dlq.receive()
      expect(readDeadMessage(message!, dlq.name).lastErrorType).toBe('MaxDeliveriesExceeded')
      expect(await requests.approximateCount()).toBe(0)
    } finally {
      await requests.close()
      await dlq.close()
    }
  }, 120_000)

  const { url, missing } = backend('nats')
  it.skipIf(missing)(
    'kills maxDeliveryCount processes on NATS, which counts deliveries only',
    async () => {
      const place = natsPlace(url)
      const mailbox = (name: string): Mailbox => natsMailbox({ url, prefix: place.name, name })
      const requests = mailbox('requests')
      const dlq = mailbox('requests-dlq')
      await requests.open()
      await dlq.open()
      try {
        await requests.send({ poison: true })
        expect(await startWorkers({ url, prefix: place.name }, 0)).toEqual([
          'ended',
          'ended',
          'ended',
        ])
        expect(await requests.approximateCount()).toBe(0)
        expect(await dlq.approximateCount()).toBe(1)
      } finally {
        await requests.close()
        await dlq.close()
        await place.clear()
      }
    },
    120_000,
  )
})

describe('dlq of a loop', () => {
  const fails = (): never => {
    throw new Error('no such order')
  }

  it('may be a policy with its mailbox', async () => {
    const bench = aLoop()
    const dlq = new DLQPolicy({ mailbox: bench.dlq, maxDeliveryCount: 1 })
    const loop = new MainLoop({ ...bench.parts, process: fails, dlq })
    expect(loop.flow.to).toEqual([bench.dlq])
    void loop.run()
    await bench.requests.send({})
    await bench.settle()
    expect(await bench.dlq.approximateCount()).toBe(1)
    expect(await bench.requests.approximateCount()).toBe(0)
  })

  it('may be a policy with letters of a queue, also in an EvalLoop', async () => {
    const bench = aLoop()
    const { dlq: queue } = await aQueue()
    const dlq = new DLQPolicy({ mailbox: queue.deadLetters(), maxDeliveryCount: 1 })
    void new EvalLoop({
      ...bench.parts,
      dlq,
      loop: { process: fails },
      evaluator: () => true,
    }).run()
    await bench.requests.send({ sample: { id: 's-1', input: 1 } })
    await bench.settle()
    expect((await queue.stats()).queues).toEqual({ requests: 1 })
    await queue.close()
  })

  it('may be an object whose policy has the mailbox, with a route', async () => {
    const bench = aLoop()
    const bugs = memoryMailbox({ name: 'bugs', clock: bench.clock })
    const policy = new DLQPolicy({ mailbox: bench.dlq, maxDeliveryCount: 1 })
    const router = new DeadLetterRouter({ policy, route: () => bugs }, bench.requests, () => {})
    expect(router.destination.mailbox).toBe(bench.dlq)
  })

  const bothShapes = /new DLQPolicy\(\{ mailbox: .*\{ to: deadLetters, policy: new DLQPolicy/
  it.each<[string, (bench: LoopBench) => unknown, RegExp]>([
    ['a policy without a mailbox', () => new DLQPolicy(), bothShapes],
    ['an empty object', () => ({}), bothShapes],
    ['a policy without a mailbox in an object', () => ({ policy: new DLQPolicy() }), bothShapes],
    ['a mailbox', ({ dlq }) => dlq, bothShapes],
    ['a URL', () => 'redis://secret@localhost#dead', bothShapes],
    ['null', () => null, bothShapes],
    ['a URL as destination', () => ({ to: 'redis://secret@localhost#dead' }), /dlq option to must/],
    [
      'a promise as destination',
      ({ dlq }) => ({ to: Promise.resolve(dlq) }),
      /a promise \(await it\)/,
    ],
    [
      'options instead of a policy',
      ({ dlq }) => ({ to: dlq, policy: { maxDeliveryCount: 3 } }),
      /dlq option policy must be a DLQPolicy: new DLQPolicy/,
    ],
    ['a route that is a mailbox', ({ dlq }) => ({ to: dlq, route: dlq }), /dlq option route must/],
    ['the wrong name for its destination', ({ dlq }) => ({ mailbox: dlq }), /did you mean "to"\?/],
    [
      'two places',
      ({ dlq, replies }) => ({ to: dlq, policy: new DLQPolicy({ mailbox: replies }) }),
      /dlq\.to is requests-dlq, but the mailbox of its policy is replies/,
    ],
  ])('is rejected when it is %s', (_, given, message) => {
    const bench = aLoop()
    const options = { ...bench.parts, process: fails, dlq: given(bench) as DLQPolicy }
    const error = refusal(() => new MainLoop(options))
    expect(error).toMatchObject({ code: 'INVALID_CONFIG', message: expect.stringMatching(message) })
    expect(String(error)).not.toContain('secret')
  })
})

describe('a policy that classifies', () => {
  const deadAt = async (failure: Error, options: DLQPolicyOptions): Promise<number[]> => {
    const bench = aLoop()
    void new MainLoop({
      ...bench.parts,
      backoff: immediate(),
      process: () => {
        throw failure
      },
      dlq: new DLQPolicy({ mailbox: bench.dlq, maxDeliveryCount: 3, ...options }),
    }).run()
    await bench.requests.send({})
    await bench.clock.advance(1000)
    return bench.eventsOf('dead-lettered').map(({ deliveries }) => deliveries)
  }
  const forbidden = Object.assign(new Error('Forbidden'), { status: 403 })
  const refused = Object.assign(new Error('connect ECONNREFUSED'), { code: 'ECONNREFUSED' })

  it('dead-letters a permanent failure at its first delivery, and a transient one at the threshold', async () => {
    expect(await deadAt(forbidden, { classify: true })).toEqual([1])
    expect(await deadAt(refused, { classify: true })).toEqual([3])
  })

  it('classifies only if asked to', async () => {
    expect(await deadAt(forbidden, {})).toEqual([3])
  })
})

describe('a policy that throws at receive', () => {
  it('counts as the default threshold', async () => {
    const bench = aLoop()
    class Broken extends DLQPolicy {
      override overDelivered(): boolean {
        throw new Error('oops')
      }
    }
    const policy = new Broken({ maxDeliveryCount: 1 })
    const router = new DeadLetterRouter(
      { to: bench.dlq, policy },
      bench.requests,
      createEmit(bench),
    )
    await bench.requests.send({})
    const [message] = await bench.requests.receive()
    expect(router.overDelivered(router.unexplained(message!, 0))).toBe(false)
    await bench.clock.advance(30_000)
    const [again] = await bench.requests.receive()
    expect(router.overDelivered(router.unexplained(again!, 0))).toBe(true)
    expect(bench.eventsOf('error')).toHaveLength(2)
  })
})

describe('an unreachable dead letter queue', () => {
  it('preserves the true error and the history of a message', async () => {
    const bench = aLoop()
    const kept: DeadMessage[] = []
    let away = true
    const to: Destination = {
      name: 'letters',
      keep: async (dead) => {
        if (away) throw new Error('away')
        kept.push(dead)
      },
    }
    const policy = new DLQPolicy({ maxDeliveryCount: 2 })
    const loop = new MainLoop({
      ...bench.parts,
      process: () => Promise.reject(new Error('card declined')),
      backoff: fixed(1000),
      dlq: { to, policy },
    })
    await bench.requests.send({ order: 1 })
    const running = loop.run()
    await bench.clock.advance(10_000)
    away = false
    await bench.clock.advance(10_000)
    await loop.shutdown()
    await running
    expect(kept).toMatchObject([{ lastError: 'card declined' }])
    expect(kept[0]!.hopeless ?? false).toBe(false)
    const moments = kept[0]!.history.map(({ at }) => at)
    expect(new Set(moments).size).toBe(moments.length)
  })
})

function refusal(make: () => unknown): unknown {
  try {
    make()
  } catch (error) {
    return error
  }
  return undefined
}

function fail(): never {
  throw new Error('no route')
}
