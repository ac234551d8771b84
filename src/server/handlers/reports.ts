import type { reportEndpoints } from '../../api/endpoints/reports.ts'
import { withoutUndefined } from '../../check/keys.ts'
import { alertNotFound } from '../../observers/alerts/alerts.ts'
import type { Alert } from '../../policy/alert-rule.ts'
import { isAlertInScope, viewAlert } from '../alert-view.ts'
import { boundFilter } from '../bounds.ts'
import { rethrowAsInput } from '../problems.ts'
import { viewSummary } from '../view.ts'
import { checkTextProbe, redactAny } from '../viewer.ts'
import type { Handlers } from './handler.ts'

export const reportHandlers: Handlers<keyof typeof reportEndpoints> = {
  async listAlerts(_, { dlq, caller }) {
    const alerts = await dlq.alerts()
    return alerts
      .filter((alert) => isAlertInScope(alert, caller.scope))
      .map((one) => viewAlert(one, caller))
  },

  async listAlertHistory({ limit }, { dlq, caller }) {
    const changes = await dlq.alertHistory()
    return changes
      .filter(({ alert }) => isAlertInScope(alert, caller.scope))
      .slice(0, limit)
      .map((change) => ({ ...change, alert: viewAlert(change.alert, caller) }))
  },

  async listAlertDeliveries({ limit }, { dlq, caller }) {
    const view = (alert: Alert): Alert => viewAlert(alert, caller)
    const deliveries = await dlq.alertDeliveries(limit)
    return deliveries.map((delivery) => ({
      ...delivery,
      changes: delivery.changes.map((change) => ({ ...change, alert: view(change.alert) })),
      stillRaised: delivery.stillRaised.map(view),
    }))
  },

  async acknowledgeAlert({ name, note }, { dlq, caller }) {
    const alerts = await dlq.alerts()
    // An alert outside the scope looks as if it did not exist.
    if (!alerts.some((alert) => alert.name === name && isAlertInScope(alert, caller.scope)))
      throw alertNotFound(name)
    return viewAlert(await dlq.acknowledgeAlert(name, caller.name, note), caller)
  },

  testAlertTarget: ({ target }, { dlq }) => dlq.testAlertTarget(target),

  async getHealth(_, { dlq, caller }) {
    const health = await dlq.health()
    return { ...health, alerts: health.alerts.map((alert) => viewAlert(alert, caller)) }
  },

  getMetrics: (_, { dlq }) => dlq.metrics(),

  getMetricsSince: ({ since }, { dlq }) => dlq.metrics({ since }),

  scrapeMetrics: (_, { metrics }) => metrics.text(),

  async backtest({ filter = {}, ...change }, { dlq, caller }) {
    const bounded = boundFilter(withoutUndefined(filter), caller)
    // A rule that matches messages would tell what they contain.
    if (change.rules) checkTextProbe('rules', bounded, caller)
    return redactAny(await dlq.backtest(change, bounded), caller)
  },

  async searchLetters({ words, payload, limit, ...filter }, { dlq, caller }) {
    const among = boundFilter(withoutUndefined(filter), caller)
    const isEncrypted = 'countKeys' in dlq.store
    checkTextProbe('words', among, caller, ({ atCapture, redactStored }) =>
      payload ? !redactStored && !(atCapture && isEncrypted) : !atCapture,
    )
    const options = withoutUndefined({ payload, limit, among })
    const letters = await dlq.search(words, options).catch(rethrowAsInput)
    return letters.map((letter) => viewSummary(letter, caller))
  },
}
