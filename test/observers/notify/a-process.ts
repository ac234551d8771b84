import { afterFile } from '../../after-file.ts'
import { Alerts } from '../../../src/observers/alerts/alerts.ts'
import { AlertMonitor } from '../../../src/observers/alerts/monitor.ts'
import { Outbox } from '../../../src/observers/notify/outbox.ts'
import type {
  Notification,
  SendResult,
  Target,
  TargetOptions,
} from '../../../src/observers/notify/target.ts'
import { ObserverHub, type RedriveEvent } from '../../../src/observer.ts'
import type { AlertRule } from '../../../src/policy/alert-rule.ts'
import type { Measures } from '../../../src/policy/alert-measures.ts'
import type { Records } from '../../../src/store.ts'
import { fakeClock, type FakeClock } from '../../../src/testing/fake-clock.ts'
import type { eachStore } from '../../each-store.ts'

export const everyMs = 60_000
export const rule = (name: string, severity: AlertRule['severity'] = 'warning'): AlertRule => ({
  name,
  when: { metric: 'exhausted', above: 0 },
  queue: name,
  severity,
})

/** A target that records what it gets. */
export interface Recorder {
  target: Target
  received: Notification[]
  /** `+name`, `-name` and `=name` (reminder) in order; digests in brackets. */
  changes: () => string[]
}

/** A target that answers with these results, then accepts everything. */
export function aRecorder(options: TargetOptions = {}, results: SendResult[] = []): Recorder {
  const received: Notification[] = []
  const send = async (notification: Notification): Promise<SendResult> => {
    received.push(notification)
    return results.shift() ?? { sent: true, answer: 'ok' }
  }
  const signs = { raised: '+', cleared: '-', reminder: '=' }
  const changes = (): string[] =>
    received.map(({ kind, changes: all, stillRaised }) => {
      const parts = all.map(({ state, alert }) => signs[state] + alert.name)
      if (kind === 'alert') return parts.join()
      return `[${[...parts, ...stillRaised.map(({ name }) => `still ${name}`)].join(' ')}]`
    })
  return { target: { kind: 'webhook', ...options, send }, received, changes }
}

export interface World {
  clock: FakeClock
  /** The records of the store, by two connections if the store allows them. */
  connections: Records[]
  /** Queues with exhausted letters. */
  exhausted: Set<string>
}

/** A store without alerts. It is closed after the test file. */
export async function aWorld(open: (typeof eachStore)[number][1]): Promise<World> {
  const clock = fakeClock()
  const { store, another, close } = await open(clock)
  afterFile(close)
  await store.open()
  const stores = another ? [store, await another()] : [store]
  return { clock, connections: stores.map(({ records }) => records), exhausted: new Set() }
}

export interface Process {
  events: RedriveEvent[]
  alerts: Alerts
  /** Evaluates the rules once and sends what is due. */
  round: () => Promise<void>
  /** Sends what is due. */
  send: () => Promise<void>
}

let processes = 0

/** A process on the store of a world. Processes use its connections in turn. */
export function aProcess(
  { clock, connections, exhausted }: World,
  targets: Record<string, Target>,
  rules: AlertRule[] = [rule('a'), rule('b'), rule('c', 'critical')],
): Process {
  const hub = new ObserverHub()
  const events: RedriveEvent[] = []
  hub.on('*', (event) => events.push(event))
  const none = { exhausted: 0, parked: 0, pending: 0, resolved: 0, failed: 0, captured: 0 }
  const measure = async (): Promise<Measures> => ({
    all: none,
    queues: new Map([...exhausted].map((queue) => [queue, { ...none, exhausted: 1 }])),
  })
  const store = { records: connections[processes++ % connections.length]! }
  const outbox = new Outbox({ store, clock, hub, targets, everyMs, baseUrl: 'https://r.example' })
  const monitor = new AlertMonitor({ store, clock, hub, rules, everyMs, measure })
  const once = async (part: { start(): void; stop(): Promise<void> }): Promise<void> => {
    part.start()
    await part.stop()
  }
  const send = (): Promise<void> => once(outbox)
  const round = async (): Promise<void> => {
    await once(monitor)
    await send()
  }
  return { events, alerts: new Alerts({ store, clock, targets }), round, send }
}
