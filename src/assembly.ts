import { hostname } from 'node:os'
import { Admin, type AdminOptions } from './admin/admin.ts'
import { AuditLog } from './admin/audit/audit-log.ts'
import { removeUnusedEdit, removeEditOf, removeOrphanedEdits } from './admin/edits.ts'
import { PausedQueues } from './admin/paused-queues.ts'
import { confirmReplays } from './admin/replay-confirmation.ts'
import { findUndo } from './admin/undo.ts'
import { Bulk, type BulkOptions } from './bulk/bulk.ts'
import { removeOldActions } from './bulk/cleanup.ts'
import { canEdit, type EditContext } from './bulk/edit.ts'
import { BulkRecords } from './bulk/records.ts'
import { BulkRunner, type BulkRunnerOptions } from './bulk/runner.ts'
import { Capturer } from './capture/capture.ts'
import { Subjects } from './capture/subjects.ts'
import type { Clock } from './clock/clock.ts'
import { capacityOf, type OpenedStore } from './connect/open.ts'
import { fixChecks } from './groups/fix-check.ts'
import { Groups } from './groups/groups.ts'
import { measureGroups } from './groups/measure-groups.ts'
import { GroupRecords } from './groups/records.ts'
import { removeOldGroups } from './groups/remove-old.ts'
import { GroupTracker } from './groups/tracker.ts'
import type { ObserverHub } from './observer.ts'
import { Alerts } from './observers/alerts/alerts.ts'
import { addPendingAges, readMeasures } from './observers/alerts/measures.ts'
import { AlertMonitor, type AlertMonitorOptions } from './observers/alerts/monitor.ts'
import { Outbox } from './observers/notify/outbox.ts'
import { createEventRedactor } from './observers/redact-event.ts'
import { ownOf, type Settings } from './options/options.ts'
import { Policies } from './options/per-queue.ts'
import { isAboutGroups } from './policy/alerts.ts'
import type { Rule } from './policy/classify.ts'
import type { Redaction } from './policy/redaction/redaction.ts'
import { Heartbeats } from './redelivery/heartbeats.ts'
import { createReport, type AboutProcess } from './redelivery/process-report.ts'
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
  subjects: Subjects
  /** What a capture outside of the capturer needs. */
  capture: { capturer: Capturer; hub: ObserverHub; clock: Clock; rules: readonly Rule[] }
  pausedQueues: PausedQueues
  redelivery: Redelivery
  sweeper: Sweeper
  heartbeats: Heartbeats
  /** What this process reports about itself. `describeProcess` and `reportLoops` change it. */
  about: AboutProcess
  alertMonitor: AlertMonitor | undefined
  alerts: Alerts
  outbox: Outbox
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
  const worker = workerName ?? createWorkerName(clock)
  const policies = new Policies(settings)
  const capacity = capacityOf(settings)
  const policyFor = (queue: string): Settings => policies.of(queue)
  const redactionFor = (queue: string): Redaction | undefined => policies.redaction(queue)
  const subjects = new Subjects(store)
  hub.setRedaction(createEventRedactor(policies))
  const groupRecords = new GroupRecords(store)
  const app = { host: hostname(), pid: process.pid, ...settings.app }
  const groupTracker = new GroupTracker({ records: groupRecords, clock, hub, app })
  const onFailedRun: AdminOptions['onFailedRun'] = (letter, change) =>
    groupTracker.addRun(letter, change)
  const rules = { classifierRules, fingerprints, backoffs, limitsFor: policyFor }
  const shared = { store, clock, hub, ...rules, redactionFor, onFailedRun }
  const capturer = new Capturer({
    ...shared,
    maxPayloadBytes,
    capacity,
    subjects,
    enabled: settings.capture,
    app,
    rulesFor: policyFor,
    onStored: (letter) => groupTracker.add(letter),
  })
  const about: AboutProcess = { kind: 'program', loops: [] }
  const { redeliver } = settings
  const slots = redeliver ? settings.maxConcurrent : 0
  const report = createReport(about, slots, clock, () => redelivery)
  const registry = new WorkerRegistry({ store, clock, worker, sweepMs, redeliver, report })
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
    chores: [confirmReplays, removeOrphanedEdits(), removeOldActions(), removeOldGroups()],
  })
  return {
    store,
    settings,
    policies,
    capacity,
    hub,
    capturer,
    subjects,
    capture: { capturer, hub, clock, rules: classifierRules },
    pausedQueues,
    redelivery,
    sweeper,
    heartbeats: new Heartbeats({ clock, hub, registry, sweepMs }),
    about,
    ...alertParts({ store, settings, policies, clock, hub, groupRecords }),
    ...actionParts({ ...shared, settings, policies, groupRecords, worker }),
    groups: new Groups({ ...shared, records: groupRecords, tracker: groupTracker }),
    groupTracker,
  }
}

function createWorkerName(clock: Clock): string {
  return `${hostname()}-${process.pid}-${clock.id().slice(-8)}`
}

type ActionPartsOptions = Omit<
  AdminOptions,
  'audit' | 'repairRulesFor' | 'createFixCheck' | 'maxPayloadBytes' | 'pollMs' | 'publish'
> & {
  settings: Settings
  policies: Policies
  groupRecords: GroupRecords
  worker: string
}

/** The actions of people, on one letter and on many. */
function actionParts({
  settings,
  policies,
  groupRecords,
  worker,
  ...shared
}: ActionPartsOptions): Pick<Parts, 'admin' | 'audit' | 'bulk' | 'bulkRunner' | 'routes'> {
  const { store, clock, hub } = shared
  const policyFor = (queue: string): Settings => policies.of(queue)
  const audit = new AuditLog({ store, clock, hub, redact: (text) => policies.redactStored(text) })
  const createFixCheck = fixChecks(groupRecords, settings.app.version, policyFor)
  const repair = { repairRulesFor: policyFor, createFixCheck }
  const routes = new ReplayRoutes({ ...settings, ...repair, clock })
  const admin = new Admin({
    ...shared,
    ...repair,
    audit,
    maxPayloadBytes: settings.maxPayloadBytes,
    pollMs: settings.pollMs,
    publish: (letter, to) => routes.publish(letter, to),
  })
  const bulk = bulkParts({ ...settings, ...shared, ...repair, worker }, routes, admin)
  return { admin, audit, routes, ...bulk }
}

type BulkPartsOptions = Omit<BulkOptions, 'onActive' | 'editedValues' | 'findUndo'> &
  Omit<
    BulkRunnerOptions,
    | 'records'
    | 'publish'
    | 'canRun'
    | 'prepareEdit'
    | 'prepareReplays'
    | 'removeUnusedEdit'
    | 'findUndo'
    | 'removeSavedEdit'
  >

/** The planning and the running of bulk actions. */
function bulkParts(
  options: BulkPartsOptions,
  routes: ReplayRoutes,
  admin: Admin,
): Pick<Parts, 'bulk' | 'bulkRunner'> {
  const { store } = options
  const undo: Pick<EditContext, 'findUndo' | 'removeSavedEdit'> = {
    findUndo: (letter, editedVersion) => findUndo(store, letter, editedVersion),
    removeSavedEdit: (id, editedVersion) => removeEditOf(store, id, editedVersion),
  }
  const bulkRunner = new BulkRunner({
    ...options,
    ...undo,
    records: new BulkRecords(store),
    publish: (letter, to) => routes.publish(letter, to),
    prepareEdit: (letter, edit, mover) => admin.prepareEdit(letter, edit, mover),
    removeUnusedEdit: (letter) => removeUnusedEdit(store, letter),
    prepareReplays: (published) => admin.prepareReplays(published),
    canRun: ({ action, input }) => (action === 'replay' ? routes.hasAny : canEdit(options, input)),
  })
  const bulk = new Bulk({
    ...options,
    ...undo,
    editedValues: (letter, edit) => admin.editedValues(letter, edit),
    onActive: () => bulkRunner.wake(),
  })
  return { bulkRunner, bulk }
}

interface AlertPartsOptions {
  store: OpenedStore
  settings: Settings
  policies: Policies
  clock: Clock
  hub: ObserverHub
  groupRecords: GroupRecords
}

/** The evaluation of alert rules, and the notifications. */
function alertParts({
  store,
  settings,
  policies,
  clock,
  hub,
  groupRecords,
}: AlertPartsOptions): Pick<Parts, 'alertMonitor' | 'alerts' | 'outbox'> {
  const { alerts: rules, alertEveryMs: everyMs, maxItems, notify: targets, baseUrl } = settings
  const outbox = new Outbox({ store, clock, hub, targets, everyMs, baseUrl })
  const alerts = new Alerts({ store, clock, targets, baseUrl })
  if (!rules) return { alertMonitor: undefined, alerts, outbox }
  const measure: AlertMonitorOptions['measure'] = async (alerted) => {
    const measures = await readMeasures(store, maxItems)
    await addPendingAges(measures, store, rules, clock.now())
    if (!rules.some(({ when }) => isAboutGroups(when)) && alerted.length === 0) return measures
    const groups = await measureGroups(store, groupRecords, alerted, clock.now())
    // Titles come from error messages, and leave the process with notifications.
    for (const group of groups.values())
      for (const queue of group.queues)
        group.title = policies.redaction(queue)?.text(group.title) ?? group.title
    return { ...measures, groups }
  }
  const onChange = (): void => outbox.wake()
  const alertMonitor = new AlertMonitor({ store, clock, hub, rules, everyMs, measure, onChange })
  return { alertMonitor, alerts, outbox }
}
