import { AlertMonitor, type AlertMonitorOptions } from '../../../src/observers/alerts/monitor.ts'
import { ObserverHub, type EventOf, type RedriveEvent } from '../../../src/observer.ts'
import type { AlertRule } from '../../../src/policy/alert-rule.ts'
import type { Measures } from '../../../src/policy/alert-measures.ts'
import type { Records, Store } from '../../../src/store.ts'
import type { FakeClock } from '../../../src/testing/fake-clock.ts'

export const everyMs = 60_000
export const rule: AlertRule = {
  name: 'some-exhausted',
  when: { metric: 'exhausted', above: 0 },
  severity: 'critical',
}

export const measures = (exhausted: number): Measures => ({
  all: { exhausted, parked: 0, pending: 0, resolved: 0, failed: 0, captured: 0 },
  queues: new Map(),
})

/** A process with an alert monitor, its own hub, and the events on it. */
export interface Watcher {
  monitor: AlertMonitor
  hub: ObserverHub
  events: RedriveEvent[]
  /** `+name` and `-name`, in order. */
  changes: () => string[]
  /** Runs one check to its end. */
  check: () => Promise<void>
}

/** The measures of all watchers of a test. */
export const measured = { exhausted: 0 }

export function aWatcher(
  store: Pick<Store, 'records'>,
  clock: FakeClock,
  options: Partial<AlertMonitorOptions> = {},
): Watcher {
  const hub = new ObserverHub()
  const events: RedriveEvent[] = []
  hub.on('*', (event) => events.push(event))
  const measure = async (): Promise<Measures> => measures(measured.exhausted)
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
    changes: () =>
      events
        .filter((event): event is EventOf<'alert'> => event.type === 'alert')
        .map(({ state, alert }) => (state === 'raised' ? '+' : '-') + alert.name),
    check: async () => {
      monitor.start()
      await monitor.stop()
    },
  }
}

/** The same records as a plain object, so that a test can override methods. */
export function copyRecords(records: Records): Records {
  return {
    get: (...args) => records.get(...args),
    put: (...args) => records.put(...args),
    list: (...args) => records.list(...args),
    remove: (...args) => records.remove(...args),
    kinds: () => records.kinds(),
  }
}
