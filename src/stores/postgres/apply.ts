import { crc32 } from 'node:zlib'
import { countsOf, type Change } from '../../letter/moves.ts'
import type { ApplyResult, LeaseRef } from '../../store.ts'
import { actionCode, retrying } from '../rows/codes.ts'
import { patched } from '../rows/patch.ts'
import { isoOf, nowMs, wholeMs, type StoreContext } from './context.ts'
import type { Transaction } from '../../backends/postgres/transaction.ts'
import { lockLanes, lockMissing } from './locks.ts'
import { entryColumns, entryOf, type Entry } from './rows.ts'
import { toText } from './text.ts'
import { findDependents } from './waits.ts'
import { WriteSet } from './write-set.ts'

export const lockLetters = `SELECT ${entryColumns('l')} FROM @letters l WHERE l.id = ANY($1::text[]) ORDER BY l.id FOR UPDATE`

export interface Applied {
  results: ApplyResult[]
  shouldWake: Promise<boolean>
}

/** Writes the changes whose guard holds, in one transaction, one by one and in the given order. */
export async function applyIn(
  context: StoreContext,
  tx: Transaction,
  changes: readonly Change[],
  slot: number,
): Promise<Applied> {
  const ids = [...new Set(changes.map(({ id }) => toText(id)))]
  const resolving = changes.flatMap(({ id, set }) => (set.state === 'resolved' ? [toText(id)] : []))
  if (resolving.length > 0) void lockMissing(tx, context.connection, 'resolve')
  lockLanes(tx, context.connection, ids)
  const locked = tx.rows(lockLetters, [ids])
  const waiting = findDependents(tx, resolving)
  const entries = new Map<string, Entry>()
  for (const cells of await locked) {
    const entry = entryOf(cells)
    entries.set(entry.row.id, entry)
  }
  const writes = new WriteSet()
  const edits = new Map<string, Uint8Array>()
  const results = changes.map((change) => applyOne(writes, entries, edits, change))
  keepEdits(tx, edits)
  const moved = changes.flatMap(({ id, set }) => (set.priority ? [entries.get(id)] : []))
  await context.queues.ranges(
    moved.flatMap((entry) => (entry ? [{ queue: entry.queue, priority: entry.row.priority }] : [])),
    tx,
  )
  const { shouldWake } = await writes.flush(context, tx, slot, await waiting)
  return { results, shouldWake }
}

function applyOne(
  writes: WriteSet,
  entries: Map<string, Entry>,
  edits: Map<string, Uint8Array>,
  change: Change,
): ApplyResult {
  const entry = entries.get(change.id)
  if (!entry) return 'missing'
  const { guard, set } = change
  const holds = 'epoch' in guard ? isLeased(entry, guard) : entry.row.version === guard.version
  if (!holds) return 'conflict'
  const next = patched(entry.row, set)
  next.version += 1
  next.updatedAt = change.entry.at
  writes.remember(next, change.entry)
  const size = set.payload?.bytes.byteLength ?? entry.size
  writes.rewrite(entry, next, size)
  for (const action of countsOf(change)) writes.deltas.total(entry.queue, actionCode(action), next)
  if (set.payload) edits.set(change.id, set.payload.bytes)
  entry.row = next
  entry.size = size
  return 'written'
}

/**
 * Whether the letter is leased under this epoch; also after the lease expired, as long as no other
 * worker claimed it.
 */
function isLeased({ row }: Entry, { epoch, worker }: { epoch: number; worker?: string }): boolean {
  return (
    row.state === retrying && row.epoch === epoch && (worker === undefined || row.worker === worker)
  )
}

const keepEdit = `INSERT INTO @edits VALUES ($1, $2, $3)
  ON CONFLICT (id) DO UPDATE SET bytes_crc = excluded.bytes_crc, bytes = excluded.bytes`

/** Sent one by one: edits are few, and a single payload is sent as binary. */
export function keepEdits(tx: Transaction, edits: ReadonlyMap<string, Uint8Array>): void {
  for (const [id, bytes] of edits) void tx.rows(keepEdit, [toText(id), crc32(bytes), bytes])
}

/** A lease to renew, and its new length. */
export interface Renewal extends LeaseRef {
  leaseMs: number
}

const renew = `WITH t AS MATERIALIZED (SELECT ${nowMs('$5')} AS ms),
  refs AS MATERIALIZED (SELECT * FROM unnest($1::text[], $2::bigint[], $3::text[], $4::bigint[]) WITH ORDINALITY
    AS r(id, epoch, worker, lease_ms, n)),
  held AS MATERIALIZED (SELECT l.id, l.epoch, l.worker FROM @letters l
    WHERE l.id = ANY($1::text[]) AND l.state = 1 AND l.leased_until IS NOT NULL ORDER BY l.id FOR UPDATE),
  good AS MATERIALIZED (SELECT r.n, r.id, t.ms + r.lease_ms AS until FROM t, refs r JOIN held h
    ON h.id = r.id AND h.epoch = r.epoch AND (r.worker IS NULL OR r.worker = h.worker)),
  moved AS (UPDATE @letters l SET due_at = g.until, leased_until = ${isoOf('g.until')}
    FROM (SELECT id, max(until) AS until FROM good GROUP BY id) g WHERE l.id = g.id AND l.due_at < g.until)
  SELECT n::int FROM good`

/** Extends leases that still hold, and never shortens them, in one statement. */
export async function renewIn(
  context: StoreContext,
  tx: Transaction,
  renewals: readonly Renewal[],
): Promise<boolean[]> {
  const rows = await tx.rows(renew, [
    renewals.map(({ id }) => toText(id)),
    renewals.map(({ epoch }) => epoch),
    renewals.map(({ worker }) => (worker === undefined ? null : toText(worker))),
    renewals.map(({ leaseMs }) => wholeMs(leaseMs)),
    context.now(),
  ])
  const good = new Set(rows.map(([n]) => n))
  return renewals.map((_, at) => good.has(at + 1))
}
