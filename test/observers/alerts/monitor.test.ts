import { afterEach, describe, expect, it } from 'vitest'
import { readMeasures } from '../../../src/observers/alerts/measures.ts'
import type { RedriveEvent } from '../../../src/observer.ts'
import type { Measures } from '../../../src/policy/alerts.ts'
import { immediate } from '../../../src/policy/backoff.ts'
import type { Records, Store } from '../../../src/store.ts'
import { memoryStore } from '../../../src/stores/memory/memory.ts'
import { fakeClock, type FakeClock } from '../../../src/testing/fake-clock.ts'
import { aQueue, deferred, forbidden } from '../../a-queue.ts'
import { openSqliteBench } from '../../stores/sqlite/sqlite-bench.ts'
import { aWatcher, bound, everyMs, measures, rule, world } from './a-watcher.ts'

const cleanups: (() => Promise<void>)[] = []
afterEach(async () => {
  world.exhausted = 0
  for (const clean of cleanups.splice(0)) await clean()
})

/** Two stores on the same letters, as two processes have them. */
const stores: [string, (clock: FakeClock) => Promise<[Store, Store]>][] = [
  [
    'memory',
    async (clock) => {
      const store = memoryStore({ clock })
      await store.open()
      return [store, store]
    },
  ],
  [
    'sqlite',
    async (clock) => {
      const bench = await openSqliteBench(clock)
      cleanups.push(() => bench.close())
      return [bench.store, await bench.another!()]
    },
  ],
]

describe.each(stores)('AlertMonitor on %s', (_, open) => {
  it('emits one event when a rule is crossed and one when it clears', async () => {
    const clock = fakeClock()
    const [store] = await open(clock)
    const { look, told, monitor, events } = aWatcher(store, clock)
    await look()
    expect(await monitor.raised()).toEqual([])
    for (world.exhausted of [3, 4]) await look()
    expect(await monitor.raised()).toEqual([
      expect.objectContaining({ name: 'some-exhausted', value: 3, severity: 'critical' }),
    ])
    world.exhausted = 0
    for (let again = 0; again < 2; again++) await look()
    expect(told()).toEqual(['+some-exhausted', '-some-exhausted'])
    expect(events).toHaveLength(2)
    expect(await monitor.raised()).toEqual([])
  })

  it('does not repeat an alert after a restart, and lists the raised ones', async () => {
    const clock = fakeClock()
    const [store, again] = await open(clock)
    world.exhausted = 1
    await aWatcher(store, clock).look()
    const restarted = aWatcher(again, clock)
    expect(await restarted.monitor.raised()).toHaveLength(1)
    await restarted.look()
    expect(restarted.events).toEqual([])
    world.exhausted = 0
    await restarted.look()
    expect(restarted.told()).toEqual(['-some-exhausted'])
  })

  it('emits each change from exactly one of several processes', async () => {
    const clock = fakeClock()
    const [one, two] = await open(clock)
    const watchers = [one, two, one, two].map((store) => aWatcher(store, clock))
    const expected: string[] = []
    for (world.exhausted of [1, 0, 5, 5, 0, 0, 7]) {
      const before = watchers.flatMap(({ told }) => told()).length
      await Promise.all(watchers.map(({ look }) => look()))
      const standing = await watchers[0]!.monitor.raised()
      expect(standing).toHaveLength(world.exhausted > 0 ? 1 : 0)
      if (watchers.flatMap(({ told }) => told()).length > before)
        expected.push(world.exhausted > 0 ? '+' : '-')
    }
    expect(expected).toEqual(['+', '-', '+', '-', '+'])
    expect(watchers.flatMap(({ told }) => told())).toHaveLength(5)
    expect(watchers.flatMap(({ events }) => events)).toHaveLength(5)
  })

  it('shares the start of a condition among processes', async () => {
    const clock = fakeClock()
    const [one, two] = await open(clock)
    const rules = [{ ...rule, forMs: 100_000 }]
    const [first, second] = [one, two].map((store) => aWatcher(store, clock, { rules }))
    world.exhausted = 1
    await first!.look()
    await clock.advance(100_000)
    await second!.look()
    expect(first!.told()).toEqual([])
    expect(second!.told()).toEqual(['+some-exhausted'])
  })
})

describe('AlertMonitor', () => {
  const setUp = async (): Promise<{ clock: FakeClock; store: Store }> => {
    const clock = fakeClock()
    const store = memoryStore({ clock })
    await store.open()
    return { clock, store }
  }

  it('raises in time although the clock was ahead at the start of the condition', async () => {
    const { clock, store } = await setUp()
    const { look, told } = aWatcher(store, clock, { rules: [{ ...rule, forMs: 100_000 }] })
    world.exhausted = 1
    const rightMs = clock.now()
    clock.set(rightMs + 24 * 3_600_000)
    await look()
    clock.set(rightMs)
    await look()
    await clock.advance(100_000)
    await look()
    expect(told()).toEqual(['+some-exhausted'])
  })

  it('checks at once and then every interval, never twice at a time, and finishes the last check on stop', async () => {
    const { clock, store } = await setUp()
    const gates: ReturnType<typeof deferred<Measures>>[] = []
    const { monitor } = aWatcher(store, clock, {
      measure: () => {
        gates.push(deferred<Measures>())
        return gates.at(-1)!.promise
      },
    })
    monitor.start()
    monitor.start()
    await clock.advance(10 * everyMs)
    expect(gates).toHaveLength(1)
    gates[0]!.resolve(measures(0))
    await clock.advance(everyMs - 1)
    expect(gates).toHaveLength(1)
    await clock.advance(1)
    expect(gates).toHaveLength(2)
    let stopped = false
    const stopping = Promise.all([monitor.stop(), monitor.stop()]).then(() => (stopped = true))
    await clock.advance(everyMs)
    expect(stopped).toBe(false)
    gates[1]!.resolve(measures(0))
    await stopping
    expect(clock.pending()).toBe(0)
  })

  it('starts the next check after the one in progress when it is restarted', async () => {
    const { clock, store } = await setUp()
    const gate = deferred<Measures>()
    let looks = 0
    const measure = (): Promise<Measures> => {
      looks += 1
      return gate.promise
    }
    const { monitor } = aWatcher(store, clock, { measure })
    monitor.start()
    const stopping = monitor.stop()
    monitor.start()
    await clock.advance(everyMs)
    expect(looks).toBe(1)
    gate.resolve(measures(0))
    await stopping
    await clock.advance(everyMs - 1)
    expect(looks).toBe(2)
    await monitor.stop()
  })

  it('emits errors while the store is unreachable, and neither clears nor repeats raised alerts', async () => {
    const { clock, store } = await setUp()
    let away = false
    const records: Records = {
      ...bound(store.records),
      list: async (...list) => {
        if (away) throw new Error('store is away')
        return store.records.list(...list)
      },
    }
    const { monitor, told, events } = aWatcher({ records }, clock)
    world.exhausted = 1
    monitor.start()
    await clock.advance(0)
    away = true
    world.exhausted = 0
    await clock.advance(2 * everyMs)
    expect(events.filter(({ type }) => type === 'error')).toHaveLength(2)
    expect(await monitor.raised()).toHaveLength(1)
    away = false
    world.exhausted = 1
    await clock.advance(2 * everyMs)
    expect(told()).toEqual(['+some-exhausted'])
    await monitor.stop()
  })

  it('emits an error when measuring fails, and continues', async () => {
    const { clock, store } = await setUp()
    let fails = true
    const { monitor, told, events } = aWatcher(store, clock, {
      measure: async () => {
        if (fails) throw new Error('cannot count')
        return measures(1)
      },
    })
    monitor.start()
    await clock.advance(0)
    expect(events).toEqual([{ type: 'error', during: 'alerts', error: expect.any(Error) }])
    fails = false
    await clock.advance(everyMs)
    expect(told()).toEqual(['+some-exhausted'])
    await monitor.stop()
  })

  it.each([
    ['took effect', true],
    ['did not take effect', false],
  ])('emits an alert once when the connection is lost during a write that %s', async (_, carriedOut) => {
    const { clock, store } = await setUp()
    let breaks = true
    const records: Records = {
      ...bound(store.records),
      put: async (...put) => {
        if (breaks && !carriedOut) throw new Error('connection lost')
        const result = await store.records.put(...put)
        if (breaks) throw new Error('connection lost')
        return result
      },
    }
    const { look, told } = aWatcher({ records }, clock)
    const other = aWatcher(store, clock)
    world.exhausted = 1
    await look()
    expect(told()).toEqual([])
    breaks = false
    if (carriedOut) await other.look()
    for (let again = 0; again < 3; again++) await look()
    await other.look()
    expect([...told(), ...other.told()]).toEqual(['+some-exhausted'])
  })

  it('treats an unreadable record as no raised alert', async () => {
    const { clock, store } = await setUp()
    await store.records.put('alert', rule.name, { alert: 'yes' })
    const { look, told, monitor } = aWatcher(store, clock)
    expect(await monitor.raised()).toEqual([])
    world.exhausted = 1
    await look()
    expect(told()).toEqual(['+some-exhausted'])
  })

  it('reads all raised alerts, page by page', async () => {
    const { clock, store } = await setUp()
    const rules = Array.from({ length: 250 }, (_, index) => ({ ...rule, name: `rule-${index}` }))
    const { look, told, monitor } = aWatcher(store, clock, { rules })
    world.exhausted = 1
    for (let again = 0; again < 2; again++) await look()
    expect(told()).toHaveLength(250)
    expect(await monitor.raised()).toHaveLength(250)
  })

  it('raises on exhausted letters of a real queue', async () => {
    const { dlq, store, clock } = await aQueue({ backoff: immediate(), maxRetries: 0 })
    const { told, look } = aWatcher(store, clock, {
      measure: () => readMeasures(store, Infinity),
    })
    await look()
    const { id } = await dlq.enqueue({ type: 'orders' }, forbidden())
    await dlq.retry(id)
    dlq.handle('orders', () => {
      throw new Error('connect ECONNREFUSED')
    })
    dlq.start()
    await clock.advance(1000)
    expect((await dlq.get(id))!.state).toBe('exhausted')
    await look()
    await dlq.resolve(id)
    await look()
    expect(told()).toEqual(['+some-exhausted', '-some-exhausted'])
    await dlq.close()
  })
})

describe('AlertMonitor with breakers', () => {
  const turned = (
    state: 'open' | 'half-open' | 'closed',
    kind: 'queue' | 'dependency' = 'queue',
  ): RedriveEvent => ({ type: 'breaker', kind, name: 'mail', state })

  it('raises when a breaker is open at a check, and clears when it has closed', async () => {
    const clock = fakeClock()
    const { monitor, hub, told } = aWatcher(memoryStore({ clock }), clock)
    monitor.start()
    await clock.advance(0)
    hub.emit(turned('open'))
    hub.emit(turned('closed'))
    await clock.advance(everyMs)
    expect(told()).toEqual([])
    hub.emit(turned('open'))
    expect(told()).toEqual([])
    await clock.advance(everyMs)
    hub.emit(turned('half-open'))
    await clock.advance(everyMs)
    hub.emit(turned('open'))
    await clock.advance(everyMs)
    expect(told()).toEqual(['+breaker-open:mail'])
    expect(await monitor.raised()).toMatchObject([{ queue: 'mail', metric: 'breaker-open' }])
    hub.emit(turned('closed'))
    await clock.advance(3 * everyMs)
    expect(told()).toEqual(['+breaker-open:mail', '-breaker-open:mail'])
    await monitor.stop()
  })

  it('does not miss a breaker that changes while the monitor is stopped', async () => {
    const clock = fakeClock()
    const { hub, look, told } = aWatcher(memoryStore({ clock }), clock)
    hub.emit(turned('open'))
    await look()
    expect(told()).toEqual(['+breaker-open:mail'])
    hub.emit(turned('closed'))
    await look()
    expect(told()).toEqual(['+breaker-open:mail', '-breaker-open:mail'])
  })

  it('does not miss a breaker that closes during a check', async () => {
    const clock = fakeClock()
    const gate = deferred()
    let looks = 0
    const { monitor, hub, told } = aWatcher(memoryStore({ clock }), clock, {
      measure: async () => {
        if (++looks === 2) await gate.promise
        return measures(0)
      },
    })
    monitor.start()
    await clock.advance(0)
    hub.emit(turned('open', 'dependency'))
    await clock.advance(everyMs)
    hub.emit(turned('closed', 'dependency'))
    gate.resolve()
    await clock.advance(2 * everyMs)
    expect(told()).toEqual(['+breaker-open:dependency:mail', '-breaker-open:dependency:mail'])
    await monitor.stop()
  })

  it('clears the alerts of a dead process and of a removed rule after a while', async () => {
    const clock = fakeClock()
    const store = memoryStore({ clock })
    const dying = aWatcher(store, clock)
    world.exhausted = 1
    dying.monitor.start()
    dying.hub.emit(turned('open'))
    await clock.advance(everyMs)
    expect(dying.told()).toEqual(['+some-exhausted', '+breaker-open:mail'])
    await dying.monitor.stop()

    const { monitor, told, events } = aWatcher(store, clock, { rules: [] })
    monitor.start()
    await clock.advance(2 * everyMs)
    expect(told()).toEqual([])
    await clock.advance(everyMs)
    expect(told()).toEqual(['-breaker-open:mail', '-some-exhausted'])
    expect(events[0]).toMatchObject({ alert: { summary: expect.stringContaining('nobody') } })
    await clock.advance(5 * everyMs)
    expect(told()).toHaveLength(2)
    expect(await monitor.raised()).toEqual([])
    await monitor.stop()
  })

  it('does not count the time in which checks failed', async () => {
    const clock = fakeClock()
    const store = memoryStore({ clock })
    world.exhausted = 1
    await aWatcher(store, clock).look()
    let fails = false
    const { monitor, told } = aWatcher(store, clock, {
      rules: [],
      measure: async () => {
        if (fails) throw new Error('store is away')
        return measures(1)
      },
    })
    monitor.start()
    await clock.advance(2 * everyMs)
    fails = true
    await clock.advance(10 * everyMs)
    fails = false
    await clock.advance(3 * everyMs)
    expect(told()).toEqual([])
    await clock.advance(everyMs)
    expect(told()).toEqual(['-some-exhausted'])
    await monitor.stop()
  })

  it('keeps alerts that another process still confirms, whatever its interval', async () => {
    const clock = fakeClock()
    const store = memoryStore({ clock })
    const seldom = aWatcher(store, clock, { everyMs: 10 * everyMs })
    const often = aWatcher(store, clock, { rules: [] })
    world.exhausted = 1
    seldom.monitor.start()
    seldom.hub.emit(turned('open'))
    often.monitor.start()
    await clock.advance(100 * everyMs)
    expect(often.told()).toEqual([])
    expect(seldom.told()).toEqual(['+some-exhausted', '+breaker-open:mail'])
    await Promise.all([seldom.monitor.stop(), often.monitor.stop()])
  })
})
