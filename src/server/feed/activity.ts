import type { FeedEvent } from '../../api/schemas/feed.ts'
import type { Scope } from '../../api/permissions.ts'
import type { BulkAction } from '../../letter/bulk-action.ts'
import type { Alert } from '../../policy/alert-rule.ts'
import type { DeadLetterQueue } from '../../queue/queue.ts'
import { isAlertInScope, viewAlert } from '../alert-view.ts'
import { isFilterInScope } from '../bounds.ts'
import { viewBulkAction } from '../bulk-view.ts'
import type { Viewer } from '../viewer.ts'

/** Something that happened, as it looks to a caller, and who may know about it. */
export interface Happening {
  isIn: (scope: Scope) => boolean
  eventFor: (caller: Viewer) => FeedEvent
}

/** The bulk actions that run and the alerts that are raised, and what has changed in them. */
export class Activity {
  readonly #dlq: DeadLetterQueue
  #actions = new Map<string, BulkAction>()
  #alerts = new Map<string, Alert>()

  constructor(dlq: DeadLetterQueue) {
    this.#dlq = dlq
  }

  /** Reads the current state. Returns what has changed since the last read. */
  async read(): Promise<Happening[]> {
    const active = await this.#dlq.activeBulkActions()
    const activeIds = new Set(active.map(({ id }) => id))
    const endedIds = [...this.#actions.keys()].filter((id) => !activeIds.has(id))
    const ended = await this.#dlq.bulkActionsById(endedIds)
    const alerts = await this.#dlq.alerts()
    const changed = [...active, ...ended].filter((one) =>
      hasChanged(this.#actions.get(one.id), one),
    )
    const raised = alerts.filter((one) => this.#alerts.get(one.name)?.raisedAt !== one.raisedAt)
    const names = new Set(alerts.map(({ name }) => name))
    const cleared = [...this.#alerts.values()].filter(({ name }) => !names.has(name))
    this.#actions = new Map(active.map((one) => [one.id, one]))
    this.#alerts = new Map(alerts.map((one) => [one.name, one]))
    return [
      ...changed.map(ofAction),
      ...cleared.map((alert) => ofAlert(alert, 'cleared')),
      ...raised.map((alert) => ofAlert(alert, 'raised')),
    ]
  }

  /** All of the current state. */
  current(): Happening[] {
    return [
      ...[...this.#actions.values()].map(ofAction),
      ...[...this.#alerts.values()].map((alert) => ofAlert(alert, 'raised')),
    ]
  }
}

function hasChanged(before: BulkAction | undefined, after: BulkAction): boolean {
  const factsOf = ({ state, progress, problem }: BulkAction): string =>
    JSON.stringify([state, progress, problem])
  return before === undefined || factsOf(before) !== factsOf(after)
}

function ofAction(action: BulkAction): Happening {
  return {
    isIn: (scope) => isFilterInScope(scope, action.filter),
    eventFor: (caller) => ({ type: 'bulk-action', action: progressOf(action, caller) }),
  }
}

function progressOf(
  all: BulkAction,
  caller: Viewer,
): Extract<FeedEvent, { type: 'bulk-action' }>['action'] {
  const view = viewBulkAction(all, caller)
  const { id, action, state, by, count, progress } = view
  const { startedAt, endedAt, stopReason, problem, hidden } = view
  return {
    id,
    action,
    state,
    by,
    count,
    progress,
    ...(startedAt === undefined ? {} : { startedAt }),
    ...(endedAt === undefined ? {} : { endedAt }),
    ...(stopReason === undefined ? {} : { stopReason }),
    ...(problem === undefined ? {} : { problem }),
    ...(hidden === undefined ? {} : { hidden }),
  }
}

/** Alerts are about whole queues, so that callers with tenants do not get them. */
function ofAlert(alert: Alert, state: 'raised' | 'cleared'): Happening {
  return {
    isIn: (scope) => isAlertInScope(alert, scope),
    eventFor: (caller) => ({ type: 'alert', state, alert: viewAlert(alert, caller) }),
  }
}
