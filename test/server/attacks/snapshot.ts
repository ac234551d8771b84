import type { AuditEntry } from '../../../src/letter/audit.ts'
import { states } from '../../../src/letter/letter.ts'
import type { Store } from '../../../src/store.ts'

/**
 * Kinds of records that are left out: those that change without a request, and the position of the
 * audit log, which moves with each entry.
 */
const excludedKinds = new Set(['audit', 'audit-position', 'sample', 'worker'])

/**
 * Everything in a store that an attack must not change: letters with their versions, actions in the
 * audit log, and records. The time of the last use of a token is meant to change.
 */
export async function snapshotOf(store: Store): Promise<string[]> {
  const { items } = await store.find({ state: [...states], limit: 1000 })
  const letters = items.map(({ id, version, state }) => `letter ${id} ${version} ${state}`)
  const kinds = (await store.records.kinds()).filter((kind) => !excludedKinds.has(kind))
  const records = await Promise.all(
    kinds.map(async (kind) =>
      (await store.records.list(kind)).map(({ id, version }) =>
        kind === 'token' ? `token ${id}` : `${kind} ${id} ${version}`,
      ),
    ),
  )
  return [...letters, ...(await auditedActions(store)), ...records.flat()].sort()
}

/**
 * Entries of actions that are done or have no outcome. The log is meant to grow by denied calls and
 * by actions that failed, with their entries before the action.
 */
async function auditedActions(store: Store): Promise<string[]> {
  const batches = await store.records.list('audit')
  const entries = batches.flatMap(
    ({ value }) => (value as unknown as { entries: AuditEntry[] }).entries,
  )
  const refused = entries.filter(({ outcome }) => outcome === 'denied' || outcome === 'failed')
  const refusedStarts = new Set(refused.map(({ startSeq }) => startSeq))
  return entries
    .filter((entry) => !refused.includes(entry) && !refusedStarts.has(entry.seq))
    .map(({ id, action, what, outcome }) => `audit ${id} ${action} ${what.id} ${outcome}`)
}
