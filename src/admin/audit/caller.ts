import { AsyncLocalStorage } from 'node:async_hooks'
import type { AuditVia } from '../../letter/audit.ts'

/** Who acts, and how the action reached the queue. */
export interface AuditCaller {
  via: AuditVia
  /** For actions that name nobody. Default: operator. */
  actor?: string
}

const current = new AsyncLocalStorage<AuditCaller>()

/** Calls `fn`. The audit log records its actions as those of this caller. */
export function actAs<T>(caller: AuditCaller, fn: () => T): T {
  return current.run(caller, fn)
}

export function currentCaller(): AuditCaller {
  return current.getStore() ?? { via: 'library' }
}
