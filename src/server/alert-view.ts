import type { Scope } from '../api/permissions.ts'
import type { Alert } from '../policy/alert-rule.ts'
import { mayReadContent } from './view.ts'
import { redactAny, type Viewer } from './viewer.ts'

/** Whether an alert is in a scope. An alert is about the letters of all tenants of a queue. */
export function isAlertInScope({ queue }: Alert, { queues, tenants }: Scope): boolean {
  return (
    tenants === undefined &&
    (queues === undefined || (queue !== undefined && queues.includes(queue)))
  )
}

/** An alert as a caller may see it. The title of a group comes from error messages. */
export function viewAlert({ title, ...alert }: Alert, viewer: Viewer): Alert {
  if (title === undefined || !mayReadContent(viewer)) return alert
  return { ...alert, title: redactAny(title, viewer) }
}
