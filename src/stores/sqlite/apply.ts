import { crc32 } from 'node:zlib'
import { countsOf, type Change } from '../../letter/moves.ts'
import { toTimestamp } from '../../letter/time.ts'
import type { ApplyResult } from '../../store.ts'
import type { StoreContext } from './context.ts'
import { actionCode, retrying } from '../rows/codes.ts'
import { patched } from '../rows/patch.ts'
import type { Methods } from './protocol.ts'
import { entryById, type Entry } from './reading.ts'
import { remember, rewrite } from './writing.ts'

export function apply(context: StoreContext, changes: readonly Change[]): ApplyResult[] {
  return changes.map((change) => applyOne(context, change))
}

function applyOne(context: StoreContext, change: Change): ApplyResult {
  const entry = entryById(context, change.id)
  if (!entry) return 'missing'
  const { guard } = change
  const holds = 'epoch' in guard ? isLeased(entry, guard) : entry.row.version === guard.version
  if (!holds) return 'conflict'
  const next = patched(entry.row, change.set)
  next.version += 1
  next.updatedAt = change.entry.at
  remember(context, entry.seq, next, change.entry)
  if (change.set.payload) keepEdit(context, entry.seq, change.set.payload.bytes)
  rewrite(context, entry, next)
  for (const action of countsOf(change))
    context.counters.total(entry.queue, actionCode(action), next)
  return 'written'
}

/** Leased under this epoch, even past the end of the lease as long as nobody claimed it again. */
function isLeased({ row }: Entry, { epoch, worker }: { epoch: number; worker?: string }): boolean {
  return (
    row.state === retrying && row.epoch === epoch && (worker === undefined || row.worker === worker)
  )
}

export function renew(
  context: StoreContext,
  { leases, leaseMs }: Methods['renew']['request'],
): boolean[] {
  const end = toTimestamp(context.nowMs + leaseMs)
  return leases.map((lease) => {
    const entry = entryById(context, lease.id)
    if (!entry || !isLeased(entry, lease) || entry.row.leasedUntil === null) return false
    if (end > entry.row.leasedUntil) rewrite(context, entry, { ...entry.row, leasedUntil: end })
    return true
  })
}

/** Stores the bytes of the newest edit. The captured bytes stay. */
export function keepEdit({ db }: StoreContext, seq: number, bytes: Uint8Array): void {
  db.run('INSERT OR REPLACE INTO edits VALUES (?, ?, ?)', seq, crc32(bytes), bytes)
}
