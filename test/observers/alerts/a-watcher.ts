import { AlertMonitor, type AlertMonitorOptions } from '../../../src/observers/alerts/monitor.ts'
import { ObserverHub, type EventOf, type RedriveEvent } from '../../../src/observer.ts'
import type { AlertRule, Measures } from '../../../src/policy/alerts.ts'
import type { Records, Store } from '../../../src/store.ts'
import type { FakeClock } from '../../../src/testing/fake-clock.ts'

export const everyMs = 60_000
export const rule: AlertRule = {
  name: 'some-exhausted',
  when: { metric: 'exhausted', above: 0 },
  severity: 'critical',
}

export const measures = (exhausted: number): Measures => ({
  all: { exhausted, parked: 0, pending: 0, resolved: 0, failed: 0 },
  queues: new Map(),
})

/** A process that watches: its own hub, and what is told on it. */
export interface Watcher {
  monitor: AlertMonitor
  hub: ObserverHub
  events: RedriveEvent[]
  /** `+name` and `-name`, in order. */
  told: () => string[]
  /** One look, from beginning to end. */
  look: () => Promise<void>
}

/** What all watchers of a test measure. */
export const world = { exhausted: 0 }

export function aWatcher(
  store: Pick<Store, 'records'>,
  clock: FakeClock,
  options: Partial<AlertMonitorOptions> = {},
): Watcher {
  const hub = new ObserverHub()
  const events: RedriveEvent[] = []
  hub.on('*', (event) => events.push(event))
  const measure = async (): Promise<Measures> => measures(world.exhausted)
  const monitor = new AlertMonitor({
    store,
    clock,
    hub,
    rules: [rule],
    everyMs,
    measure,
    ...options,
  })
  return {
    monitor,
    hub,
    events,
    told: () =>
      events
        .filter((event): event is EventOf<'alert'> => event.type === 'alert')
        .map(({ state, alert }) => (state === 'raised' ? '+' : '-') + alert.name),
    look: async () => {
      monitor.start()
      await monitor.stop()
    },
  }
}

/** The same records, to give some of them another way. */
export function bound(records: Records): Records {
  return {
    get: (...args) => records.get(...args),
    put: (...args) => records.put(...args),
    list: (...args) => records.list(...args),
    remove: (...args) => records.remove(...args),
    kinds: () => records.kinds(),
  }
}
