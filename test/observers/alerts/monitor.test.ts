import { afterEach, describe, expect, it } from 'vitest'
import {
  listChange,
  maxEvents,
  maxUnsentAgeMs,
  readChanges,
} from '../../../src/observers/alerts/events.ts'
import { readMeasures } from '../../../src/observers/alerts/measures.ts'
import { toTimestamp } from '../../../src/letter/time.ts'
import type { RedriveEvent } from '../../../src/observer.ts'
import type { Measures } from '../../../src/policy/alert-measures.ts'
import { immediate } from '../../../src/policy/backoff.ts'
import type { Records, Store } from '../../../src/store.ts'
import { memoryStore } from '../../../src/stores/memory/memory.ts'
import { fakeClock, type FakeClock } from '../../../src/testing/fake-clock.ts'
import { aQueue, deferred, forbidden } from '../../a-queue.ts'
import { openSqliteBench } from '../../stores/sqlite/sqlite-bench.ts'
import { aWatcher, copyRecords, everyMs, measures, rule, measured } from './a-watcher.ts'

const cleanups: (() => Promise<void>)[] = []
afterEach(async () => {
  measured.exhausted = 0
  for (const clean of cleanups.splice(0)) await clean()
})

/** Two handles on the same letters, like those of two processes. */
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
    const { check, changes, monitor, events } = aWatcher(store, clock)
    await check()
    expect(await monitor.raised()).toEqual([])
    for (measured.exhausted of [3, 4]) await check()
    expect(await monitor.raised()).toEqual([
      expect.objectContaining({ name: 'some-exhausted', value: 3, severity: 'critical' }),
    ])
    measured.exhausted = 0
    for (let again = 0; again < 2; again++) await check()
    expect(changes()).toEqual(['+some-exhausted', '-some-exhausted'])
    expect(events).toHaveLength(2)
    expect(await monitor.raised()).toEqual([])
  })

  it('does not repeat an alert after a restart, and lists the raised ones', async () => {
    const clock = fakeClock()
    const [store, again] = await open(clock)
    measured.exhausted = 1
    await aWatcher(store, clock).check()
    const restarted = aWatcher(again, clock)
    expect(await restarted.monitor.raised()).toHaveLength(1)
    await restarted.check()
    expect(restarted.events).toEqual([])
    measured.exhausted = 0
    await restarted.check()
    expect(restarted.changes()).toEqual(['-some-exhausted'])
  })

  it('emits each change from exactly one of several processes', async () => {
    const clock = fakeClock()
    const [one, two] = await open(clock)
    const watchers = [one, two, one, two].map((store) => aWatcher(store, clock))
    const expected: string[] = []
    for (measured.exhausted of [1, 0, 5, 5, 0, 0, 7]) {
      const before = watchers.flatMap(({ changes }) => changes()).length
      await Promise.all(watchers.map(({ check }) => check()))
      const raisedAlerts = await watchers[0]!.monitor.raised()
      expect(raisedAlerts).toHaveLength(measured.exhausted > 0 ? 1 : 0)
      if (watchers.flatMap(({ changes }) => changes()).length > before)
        expected.push(measured.exhausted > 0 ? '+' : '-')
    }
    expect(expected).toEqual(['+', '-', '+', '-', '+'])
    expect(watchers.flatMap(({ changes }) => changes())).toHaveLength(5)
    expect(watchers.flatMap(({ events }) => events)).toHaveLength(5)
  })

  it('shares the start of a condition among processes', async () => {
    const clock = fakeClock()
    const [one, two] = await open(clock)
    const rules = [{ ...rule, forMs: 100_000 }]
    const [first, second] = [one, two].map((store) => aWatcher(store, clock, { rules }))
    measured.exhausted = 1
    await first!.check()
    await clock.advance(100_000)
    await second!.check()
    expect(first!.changes()).toEqual([])
    expect(second!.changes()).toEqual(['+some-exhausted'])
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
    const { check, changes } = aWatcher(store, clock, { rules: [{ ...rule, forMs: 100_000 }] })
    measured.exhausted = 1
    const rightMs = clock.now()
    clock.set(rightMs + 24 * 3_600_000)
    await check()
    clock.set(rightMs)
    await check()
    await clock.advance(100_000)
    await check()
    expect(changes()).toEqual(['+some-exhausted'])
  })

  it('checks at once and then every interval, never twice at a time, and finishes the last check on stop', async () => {
    const { clock, store } = await setUp()
    const pendingMeasures: ReturnType<typeof deferred<Measures>>[] = []
    const { monitor } = aWatcher(store, clock, {
      measure: () => {
        pendingMeasures.push(deferred<Measures>())
        return pendingMeasures.at(-1)!.promise
      },
    })
    monitor.start()
    monitor.start()
    await clock.advance(10 * everyMs)
    expect(pendingMeasures).toHaveLength(1)
    pendingMeasures[0]!.resolve(measures(0))
    await clock.advance(everyMs - 1)
    expect(pendingMeasures).toHaveLength(1)
    await clock.advance(1)
    expect(pendingMeasures).toHaveLength(2)
    let stopped = false
    const stopping = Promise.all([monitor.stop(), monitor.stop()]).then(() => (stopped = true))
    await clock.advance(everyMs)
    expect(stopped).toBe(false)
    pendingMeasures[1]!.resolve(measures(0))
    await stopping
    expect(clock.pending()).toBe(0)
  })

  it('starts the next check after the one in progress when it is restarted', async () => {
    const { clock, store } = await setUp()
    const gate = deferred<Measures>()
    let checks = 0
    const measure = (): Promise<Measures> => {
      checks += 1
      return gate.promise
    }
    const { monitor } = aWatcher(store, clock, { measure })
    monitor.start()
    const stopping = monitor.stop()
    monitor.start()
    await clock.advance(everyMs)
    expect(checks).toBe(1)
    gate.resolve(measures(0))
    await stopping
    await clock.advance(everyMs - 1)
    expect(checks).toBe(2)
    await monitor.stop()
  })

  it('emits errors while the store is unreachable, and neither clears nor repeats raised alerts', async () => {
    const { clock, store } = await setUp()
    let unreachable = false
    const records: Records = {
      ...copyRecords(store.records),
      list: async (...list) => {
        if (unreachable) throw new Error('store is unreachable')
        return store.records.list(...list)
      },
    }
    const { monitor, changes, events } = aWatcher({ records }, clock)
    measured.exhausted = 1
    monitor.start()
    await clock.advance(0)
    unreachable = true
    measured.exhausted = 0
    await clock.advance(2 * everyMs)
    expect(events.filter(({ type }) => type === 'error')).toHaveLength(2)
    expect(await monitor.raised()).toHaveLength(1)
    unreachable = false
    measured.exhausted = 1
    await clock.advance(2 * everyMs)
    expect(changes()).toEqual(['+some-exhausted'])
    await monitor.stop()
  })

  it('emits an error when measuring fails, and continues', async () => {
    const { clock, store } = await setUp()
    let fails = true
    const { monitor, changes, events } = aWatcher(store, clock, {
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
    expect(changes()).toEqual(['+some-exhausted'])
    await monitor.stop()
  })

  it.each([
    ['took effect', true],
    ['did not take effect', false],
  ])(
    'emits an alert once when the connection is lost during a write that %s',
    async (_, carriedOut) => {
      const { clock, store } = await setUp()
      let breaks = true
      const records: Records = {
        ...copyRecords(store.records),
        put: async (...put) => {
          if (breaks && !carriedOut) throw new Error('connection lost')
          const result = await store.records.put(...put)
          if (breaks) throw new Error('connection lost')
          return result
        },
      }
      const { check, changes } = aWatcher({ records }, clock)
      const other = aWatcher(store, clock)
      measured.exhausted = 1
      await check()
      expect(changes()).toEqual([])
      breaks = false
      if (carriedOut) await other.check()
      for (let again = 0; again < 3; again++) await check()
      await other.check()
      expect([...changes(), ...other.changes()]).toEqual(['+some-exhausted'])
    },
  )

  it('treats an unreadable record as no raised alert', async () => {
    const { clock, store } = await setUp()
    await store.records.put('alert', rule.name, { alert: 'yes' })
    const { check, changes, monitor } = aWatcher(store, clock)
    expect(await monitor.raised()).toEqual([])
    measured.exhausted = 1
    await check()
    expect(changes()).toEqual(['+some-exhausted'])
  })

  it('reads all raised alerts, page by page', async () => {
    const { clock, store } = await setUp()
    const rules = Array.from({ length: 250 }, (_, index) => ({ ...rule, name: `rule-${index}` }))
    const { check, changes, monitor } = aWatcher(store, clock, { rules })
    measured.exhausted = 1
    for (let again = 0; again < 2; again++) await check()
    expect(changes()).toHaveLength(250)
    expect(await monitor.raised()).toHaveLength(250)
  })

  it('removes old changes without any target, but none that can still be sent', async () => {
    const { clock, store } = await setUp()
    const { check } = aWatcher(store, clock)
    const ids = async (): Promise<string[]> =>
      (await readChanges(store.records)).map(({ id }) => id)
    const alert = { name: 'a', severity: 'warning', metric: 'exhausted', value: 1 } as const
    const at = toTimestamp(clock.now())
    const detail = { summary: 'a', raisedAt: at }
    const list = (id: string): Promise<void> =>
      listChange(store.records, { id, at, state: 'raised', alert: { ...alert, ...detail } })
    for (let n = 0; n < maxEvents + 3; n++) await list(String(n).padStart(4, '0'))
    await check()
    expect(await ids()).toHaveLength(maxEvents + 3)
    await clock.advance(maxUnsentAgeMs + 1)
    await aWatcher(store, clock).check()
    expect((await ids()).toReversed()[0]).toBe('0003')
    expect(await ids()).toHaveLength(maxEvents)
    await clock.advance(30 * 86_400_000)
    await aWatcher(store, clock).check()
    expect(await ids()).toEqual([])
  })

  it('raises on exhausted letters of a real queue', async () => {
    const { dlq, store, clock } = await aQueue({ backoff: immediate(), maxRetries: 0 })
    const { changes, check } = aWatcher(store, clock, {
      measure: () => readMeasures(store, Infinity),
    })
    await check()
    const { id } = await dlq.enqueue({ type: 'orders' }, forbidden())
    await dlq.retry(id)
    dlq.handle('orders', () => {
      throw new Error('connect ECONNREFUSED')
    })
    dlq.start()
    await clock.advance(1000)
    expect((await dlq.get(id))!.state).toBe('exhausted')
    await check()
    await dlq.resolve(id)
    await check()
    expect(changes()).toEqual(['+some-exhausted', '-some-exhausted'])
    await dlq.close()
  })
})

describe('AlertMonitor with breakers', () => {
  const breakerEvent = (
    state: 'open' | 'half-open' | 'closed',
    kind: 'queue' | 'dependency' = 'queue',
  ): RedriveEvent => ({ type: 'breaker', kind, name: 'mail', state })

  it('raises when a breaker is open at a check, and clears when it has closed', async () => {
    const clock = fakeClock()
    const { monitor, hub, changes } = aWatcher(memoryStore({ clock }), clock)
    monitor.start()
    await clock.advance(0)
    hub.emit(breakerEvent('open'))
    hub.emit(breakerEvent('closed'))
    await clock.advance(everyMs)
    expect(changes()).toEqual([])
    hub.emit(breakerEvent('open'))
    expect(changes()).toEqual([])
    await clock.advance(everyMs)
    hub.emit(breakerEvent('half-open'))
    await clock.advance(everyMs)
    hub.emit(breakerEvent('open'))
    await clock.advance(everyMs)
    expect(changes()).toEqual(['+breaker-open:mail'])
    expect(await monitor.raised()).toMatchObject([{ queue: 'mail', metric: 'breaker-open' }])
    hub.emit(breakerEvent('closed'))
    await clock.advance(3 * everyMs)
    expect(changes()).toEqual(['+breaker-open:mail', '-breaker-open:mail'])
    await monitor.stop()
  })

  it('does not miss a breaker that changes while the monitor is stopped', async () => {
    const clock = fakeClock()
    const { hub, check, changes } = aWatcher(memoryStore({ clock }), clock)
    hub.emit(breakerEvent('open'))
    await check()
    expect(changes()).toEqual(['+breaker-open:mail'])
    hub.emit(breakerEvent('closed'))
    await check()
    expect(changes()).toEqual(['+breaker-open:mail', '-breaker-open:mail'])
  })

  it('does not miss a breaker that closes during a check', async () => {
    const clock = fakeClock()
    const gate = deferred()
    let checks = 0
    const { monitor, hub, changes } = aWatcher(memoryStore({ clock }), clock, {
      measure: async () => {
        if (++checks === 2) await gate.promise
        return measures(0)
      },
    })
    monitor.start()
    await clock.advance(0)
    hub.emit(breakerEvent('open', 'dependency'))
    await clock.advance(everyMs)
    hub.emit(breakerEvent('closed', 'dependency'))
    gate.resolve()
    await clock.advance(2 * everyMs)
    expect(changes()).toEqual(['+breaker-open:dependency:mail', '-breaker-open:dependency:mail'])
    await monitor.stop()
  })

  it('clears the alerts of a dead process and of a removed rule after a while', async () => {
    const clock = fakeClock()
    const store = memoryStore({ clock })
    const dying = aWatcher(store, clock)
    measured.exhausted = 1
    dying.monitor.start()
    dying.hub.emit(breakerEvent('open'))
    await clock.advance(everyMs)
    expect(dying.changes()).toEqual(['+some-exhausted', '+breaker-open:mail'])
    await dying.monitor.stop()

    const { monitor, changes, events } = aWatcher(store, clock, { rules: [] })
    monitor.start()
    await clock.advance(2 * everyMs)
    expect(changes()).toEqual([])
    await clock.advance(everyMs)
    expect(changes()).toEqual(['-breaker-open:mail', '-some-exhausted'])
    expect(events[0]).toMatchObject({ alert: { summary: expect.stringContaining('nobody') } })
    await clock.advance(5 * everyMs)
    expect(changes()).toHaveLength(2)
    expect(await monitor.raised()).toEqual([])
    await monitor.stop()
  })

  it('does not count the time in which checks failed', async () => {
    const clock = fakeClock()
    const store = memoryStore({ clock })
    measured.exhausted = 1
    await aWatcher(store, clock).check()
    let fails = false
    const { monitor, changes } = aWatcher(store, clock, {
      rules: [],
      measure: async () => {
        if (fails) throw new Error('store is unreachable')
        return measures(1)
      },
    })
    monitor.start()
    await clock.advance(2 * everyMs)
    fails = true
    await clock.advance(10 * everyMs)
    fails = false
    await clock.advance(3 * everyMs)
    expect(changes()).toEqual([])
    await clock.advance(everyMs)
    expect(changes()).toEqual(['-some-exhausted'])
    await monitor.stop()
  })

  it('keeps alerts that another process still confirms, whatever its interval', async () => {
    const clock = fakeClock()
    const store = memoryStore({ clock })
    const seldom = aWatcher(store, clock, { everyMs: 10 * everyMs })
    const often = aWatcher(store, clock, { rules: [] })
    measured.exhausted = 1
    seldom.monitor.start()
    seldom.hub.emit(breakerEvent('open'))
    often.monitor.start()
    await clock.advance(100 * everyMs)
    expect(often.changes()).toEqual([])
    expect(seldom.changes()).toEqual(['+some-exhausted', '+breaker-open:mail'])
    await Promise.all([seldom.monitor.stop(), often.monitor.stop()])
  })
})
