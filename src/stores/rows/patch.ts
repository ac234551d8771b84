import type { HistoryEntry, Patch } from '../../letter/letter.ts'
import { inHistory } from '../../letter/history.ts'
import { categories, categoryCode, policyCode, priorityCode, stateCode, states } from './codes.ts'
import type { PackedLetter } from './form.ts'
import { factsOf, type Origin, type Rest } from './pack.ts'
import { restOf } from './rest.ts'
import { rowOf, type Row } from './row.ts'

type Columns = { [K in keyof Patch]?: (row: Row, value: NonNullable<Patch[K]> | null) => void }

/** Fields that have their own column. Null removes an optional field. */
const columns: Columns = {
  state: (row, value) => (row.state = stateCode(value!)),
  priority: (row, value) => (row.priority = priorityCode(value!)),
  category: (row, value) => (row.category = categoryCode(value!)),
  fingerprint: (row, value) => (row.fingerprint = value!),
  retries: (row, value) => (row.retries = value!),
  backoffMs: (row, value) => (row.backoffMs = value!),
  reason: (row, value) => (row.reason = value),
  retryAt: (row, value) => (row.retryAt = value),
  settledAt: (row, value) => (row.settledAt = value),
  expiresAt: (row, value) => (row.expiresAt = value),
  lease: (row, value) => {
    row.worker = value?.worker ?? null
    row.leasedUntil = value?.expiresAt ?? null
  },
}

/**
 * The row with the new values. Fields without a column are merged into `rest`, which few changes
 * touch.
 */
export function patched(row: Row, set: Patch): Row {
  const next = { ...row }
  const others: Record<string, unknown> = {}
  let touched = false
  for (const [field, value] of Object.entries(set)) {
    if (value === undefined || field === 'updatedAt') continue
    const column = columns[field as keyof Patch] as ((row: Row, value: unknown) => void) | undefined
    if (column) column(next, value)
    else {
      others[field] = value
      touched = true
    }
  }
  return touched ? merged(next, others) : next
}

/**
 * A `rest` that cannot be read stays as it is: there is nothing to merge with, and it may yet be
 * recovered.
 */
function merged(row: Row, others: Patch): Row {
  const old = restOf(row)
  if (!old) return row
  if (others.policy) row.policy = policyCode(others.policy.kind)
  if (others.tags) row.tagged = others.tags.length > 0 ? 1 : 0
  const { payload: facts, ...rest } = old as Rest & Record<string, unknown>
  for (const [field, value] of Object.entries(others)) {
    if (field === 'payload') continue
    if (value === null) delete rest[field]
    else rest[field] = value
  }
  const payload = others.payload ? factsOf(others.payload) : facts
  // The payload comes first, so that the JSON shows without parsing whether there was an edit: see
  // `isEdited`.
  row.rest = JSON.stringify(payload ? { payload, ...rest } : rest)
  return row
}

/**
 * An open letter once the same thing was captured again, and the line for its history: see `occur`
 * in `letter/moves.ts`, which this mirrors on rows.
 */
export function occurred(holder: Row, packed: PackedLetter): { row: Row; entry: HistoryEntry } {
  const newer = rowOf(packed[0])
  const newerRest = JSON.parse(newer.rest) as Rest
  const origin = JSON.parse(packed[2]) as Origin
  const { failure = origin.firstFailure, severity, recoverability } = newerRest
  const row: Row = {
    ...holder,
    category: newer.category,
    fingerprint: newer.fingerprint,
    version: holder.version + 1,
    updatedAt: newer.deadLetteredAt,
  }
  const rest = restOf(holder)
  if (rest) {
    rest.occurrences += 1
    row.rest = JSON.stringify({ ...rest, failure, severity, recoverability })
  }
  const state = states[holder.state]!
  const entry: HistoryEntry = {
    at: newer.deadLetteredAt,
    actor: origin.entry?.actor ?? 'capture',
    action: 'occur',
    from: state,
    to: state,
    failure: inHistory({ failure, category: categories[newer.category]! }),
  }
  return { row, entry }
}
