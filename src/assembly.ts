import { hostname } from 'node:os'
import { Admin } from './admin/admin.ts'
import { AuditLog } from './admin/audit/audit-log.ts'
import { removeOrphanedEdits } from './admin/edits.ts'
import { PausedQueues } from './admin/paused-queues.ts'
import { Bulk, type BulkOptions } from './bulk/bulk.ts'
import { removeOldActions } from './bulk/cleanup.ts'
import { canEdit } from './bulk/edit.ts'
import { BulkRecords } from './bulk/records.ts'
import { BulkRunner, type BulkRunnerOptions } from './bulk/runner.ts'
import { Capturer } from './capture/capture.ts'
import type { Clock } from './clock/clock.ts'
import { capacityOf, type OpenedStore } from './connect/open.ts'
import { Groups } from './groups/groups.ts'
import { GroupRecords } from './groups/records.ts'
import { removeOldGroups } from './groups/remove-old.ts'
import { GroupTracker } from './groups/tracker.ts'
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
  pausedQueues: PausedQueues
  redelivery: Redelivery
  sweeper: Sweeper
  alerts: AlertMonitor | undefined
  admin: Admin
  audit: AuditLog
  bulk: Bulk
  bulkRunner: BulkRunner
  groups: Groups
  groupTracker: GroupTracker
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
  const { rules: classifierRules, fingerprints, backoffs, sweepMs, maxPayloadBytes } = settings
  const worker = workerName ?? `${hostname()}-${process.pid}-${clock.id().slice(-8)}`
  const policies = new Policies(settings)
  const capacity = capacityOf(settings)
  const policyFor = (queue: string): Settings => policies.of(queue)
  const limitsFor = policyFor
  const shared = { store, clock, hub, classifierRules, fingerprints, backoffs, limitsFor }
  const groupRecords = new GroupRecords(store)
  const groupTracker = new GroupTracker({ records: groupRecords, clock, hub })
  const capturer = new Capturer({
    ...shared,
    maxPayloadBytes,
    capacity,
    enabled: settings.capture,
    app: { host: hostname(), pid: process.pid, ...settings.app },
    rulesFor: policyFor,
    onStored: (letter) => groupTracker.add(letter),
  })
  const registry = new WorkerRegistry({ store, clock, worker, sweepMs })
  const pausedQueues = new PausedQueues({
    ...shared,
    pollMs: settings.pollMs,
    onChange: () => redelivery.wake(),
  })
  const redelivery = new Redelivery({
    ...settings,
    ...shared,
    worker,
    registry,
    pausedQueues: () => pausedQueues.names(),
    timeoutMsFor: (queue) => policies.of(queue).timeoutMs,
    queueFlow: policyFor,
    dependencyFlow: (dependency) => ownOf(settings.dependencies, dependency) ?? {},
  })
  const sweeper = new Sweeper({
    ...shared,
    registry,
    sweepMs,
    retentionFor: (queue) => policies.of(queue).retention,
    pausedQueues: () => pausedQueues.names(),
    chores: [removeOrphanedEdits(), removeOldActions(), removeOldGroups()],
  })
  const routes = new ReplayRoutes({ ...settings, clock, repairRulesFor: policyFor })
  const audit = new AuditLog({ store, clock, hub })
  const admin = new Admin({
    ...shared,
    audit,
    repairRulesFor: policyFor,
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
    pausedQueues,
    redelivery,
    sweeper,
    alerts: alertMonitor(store, settings, clock, hub),
    admin,
    audit,
    ...bulkParts({ ...settings, ...shared, worker, repairRulesFor: policyFor }, routes, admin),
    groups: new Groups({ ...shared, records: groupRecords, tracker: groupTracker }),
    groupTracker,
    routes,
  }
}

type BulkPartsOptions = Omit<BulkOptions, 'onActive' | 'editedValues'> &
  Omit<BulkRunnerOptions, 'records' | 'publish' | 'canRun' | 'prepareEdit'>

/** The planning and the running of bulk actions. */
function bulkParts(
  options: BulkPartsOptions,
  routes: ReplayRoutes,
  admin: Admin,
): Pick<Parts, 'bulk' | 'bulkRunner'> {
  const bulkRunner = new BulkRunner({
    ...options,
    records: new BulkRecords(options.store),
    publish: (letter, to) => routes.publish(letter, to),
    prepareEdit: (letter, edit, mover) => admin.prepareEdit(letter, edit, mover),
    canRun: ({ action, input }) => (action === 'replay' ? routes.hasAny : canEdit(options, input)),
  })
  const bulk = new Bulk({
    ...options,
    editedValues: (letter, edit) => admin.editedValues(letter, edit),
    onActive: () => bulkRunner.wake(),
  })
  return { bulkRunner, bulk }
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
