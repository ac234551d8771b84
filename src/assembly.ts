import { hostname } from 'node:os'
import { Admin } from './admin/admin.ts'
import { removeOrphanedEdits } from './admin/edits.ts'
import { Capturer } from './capture/capture.ts'
import type { Clock } from './clock/clock.ts'
import { capacityOf, type OpenedStore } from './connect/open.ts'
import type { ObserverHub } from './observer.ts'
import { readMeasures } from './observers/alerts/measures.ts'
import { AlertMonitor } from './observers/alerts/monitor.ts'
import { ownOf, type Settings } from './options/options.ts'
import { Policies } from './options/per-queue.ts'
import type { Rule } from './policy/classify.ts'
import { Redelivery } from './redelivery/redelivery.ts'
import { Sweeper } from './redelivery/sweep/sweeper.ts'
import { WorkerRegistry } from './redelivery/worker-registry.ts'
import type { Capacity } from './store.ts'
import { ReplayRoutes } from './targets/replay-routes.ts'

/** The parts of a dead letter queue. */
export interface Parts {
  store: OpenedStore
  settings: Settings
  policies: Policies
  capacity: Capacity | undefined
  hub: ObserverHub
  capturer: Capturer
  /** What a capture outside of the capturer needs. */
  capture: { capturer: Capturer; hub: ObserverHub; clock: Clock; rules: readonly Rule[] }
  redelivery: Redelivery
  sweeper: Sweeper
  alerts: AlertMonitor | undefined
  admin: Admin
  routes: ReplayRoutes
}

/** Creates the parts and connects them. Starts nothing. */
export function assemble(
  store: OpenedStore,
  settings: Settings,
  clock: Clock,
  hub: ObserverHub,
  workerName?: string,
): Parts {
  const { rules: classifierRules, backoffs, sweepMs, maxPayloadBytes } = settings
  const worker = workerName ?? `${hostname()}-${process.pid}-${clock.id().slice(-8)}`
  const policies = new Policies(settings)
  const capacity = capacityOf(settings)
  const policyFor = (queue: string): Settings => policies.of(queue)
  const shared = { store, clock, hub, classifierRules, backoffs, limitsFor: policyFor }
  const capturer = new Capturer({
    ...shared,
    maxPayloadBytes,
    capacity,
    enabled: settings.capture,
    app: { host: hostname(), pid: process.pid, ...settings.app },
    rulesFor: policyFor,
  })
  const registry = new WorkerRegistry({ store, clock, worker, sweepMs })
  const redelivery = new Redelivery({
    ...settings,
    ...shared,
    worker,
    registry,
    timeoutMsFor: (queue) => policies.of(queue).timeoutMs,
    queueFlow: policyFor,
    dependencyFlow: (dependency) => ownOf(settings.dependencies, dependency) ?? {},
  })
  const sweeper = new Sweeper({
    ...shared,
    registry,
    sweepMs,
    retentionFor: (queue) => policies.of(queue).retention,
    chores: [removeOrphanedEdits()],
  })
  const routes = new ReplayRoutes({ ...settings, clock })
  const admin = new Admin({
    ...shared,
    maxPayloadBytes,
    pollMs: settings.pollMs,
    publish: (letter, to) => routes.publish(letter, to),
  })
  return {
    store,
    settings,
    policies,
    capacity,
    hub,
    capturer,
    capture: { capturer, hub, clock, rules: classifierRules },
    redelivery,
    sweeper,
    alerts: alertMonitor(store, settings, clock, hub),
    admin,
    routes,
  }
}

function alertMonitor(
  store: OpenedStore,
  { alerts, alertEveryMs, maxItems }: Settings,
  clock: Clock,
  hub: ObserverHub,
): AlertMonitor | undefined {
  if (!alerts) return undefined
  const measure = (): ReturnType<typeof readMeasures> => readMeasures(store, maxItems)
  return new AlertMonitor({ store, clock, hub, rules: alerts, everyMs: alertEveryMs, measure })
}
