import { crc32 } from 'node:zlib'
import type { Patch, Payload } from '../../letter/letter.ts'
import type { Change } from '../../letter/moves.ts'
import { toTimestamp } from '../../letter/time.ts'
import type { ApplyResult } from '../../store.ts'
import type { Books } from './books.ts'
import { actionCode, categoryCode, policyCode, priorityCode, retrying, stateCode } from './codes.ts'
import { factsOf, type Rest } from './pack.ts'
import type { Verbs } from './protocol.ts'
import { entryById, restOf, type Entry } from './reading.ts'
import type { Row } from './row.ts'
import { remember, rewrite } from './writing.ts'

export function apply(books: Books, changes: readonly Change[]): ApplyResult[] {
  return changes.map((change) => applyOne(books, change))
}

function applyOne(books: Books, change: Change): ApplyResult {
  const entry = entryById(books, change.id)
  if (!entry) return 'missing'
  const { guard } = change
  const holds = 'epoch' in guard ? isLeased(entry, guard) : entry.row.version === guard.version
  if (!holds) return 'conflict'
  const next = patched(entry.row, change.set)
  next.version += 1
  next.updatedAt = change.entry.at
  remember(books, entry.seq, next, change.entry)
  if (change.set.payload) keepEdit(books, entry.seq, change.set.payload)
  rewrite(books, entry, next)
  books.counters.total(entry.queue, actionCode(change.action), next)
  return 'written'
}

/** Leased under this epoch, even past the end of the lease as long as nobody took over. */
function isLeased({ row }: Entry, { epoch, worker }: { epoch: number; worker?: string }): boolean {
  return (
    row.state === retrying && row.epoch === epoch && (worker === undefined || row.worker === worker)
  )
}

export function renew(books: Books, { leases, leaseMs }: Verbs['renew']['ask']): boolean[] {
  const end = toTimestamp(books.nowMs + leaseMs)
  return leases.map((lease) => {
    const entry = entryById(books, lease.id)
    if (!entry || !isLeased(entry, lease) || entry.row.leasedUntil === null) return false
    if (end > entry.row.leasedUntil) rewrite(books, entry, { ...entry.row, leasedUntil: end })
    return true
  })
}

function keepEdit({ db }: Books, seq: number, { bytes }: Payload): void {
  db.run('INSERT OR REPLACE INTO edits VALUES (?, ?, ?)', seq, crc32(bytes), bytes)
}

type Columns = { [K in keyof Patch]?: (row: Row, value: NonNullable<Patch[K]> | null) => void }

/** Fields that have a column of their own. Null takes an optional field away. */
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

/** The row with the new values. Fields without a column are merged into `rest`, which few changes touch. */
function patched(row: Row, set: Patch): Row {
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

/** A `rest` that cannot be read stays as it is: there is nothing to merge with, and it may yet be recovered. */
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
  // The payload comes first, so that whoever reads the text knows without parsing it whether there was an edit.
  row.rest = JSON.stringify(payload ? { payload, ...rest } : rest)
  return row
}
