import { toMs, toTimestamp } from '../../letter/time.ts'
import { resolved, retrying } from '../rows/codes.ts'
import type { StoreContext } from './context.ts'
import { findEntry, type Entry } from './letters.ts'
import { moveLetter, moveOf } from './move.ts'
import { applyCode, type Methods } from './protocol.ts'
import { idOf } from './schema.ts'
import type { SentChange, SentGroup } from './transfer.ts'
import { releaseDependents } from './waits.ts'

/** Writes the changes whose guard holds. Returns the code of each result, group after group. */
export function apply(context: StoreContext, groups: readonly SentGroup[]): number[] {
  const done: string[] = []
  const codes: number[] = []
  for (const group of groups) {
    const move = moveOf(group)
    for (const change of group.changes) {
      const entry = findEntry(context, change[0])
      const isAllowed = entry !== undefined && meetsGuard(entry, group, change)
      if (isAllowed && moveLetter(context, entry, move, change) === resolved) done.push(change[0])
      codes.push(isAllowed ? applyCode.written : entry ? applyCode.conflict : applyCode.missing)
    }
  }
  releaseDependents(context, done)
  return codes
}

function meetsGuard(entry: Entry, { guard }: SentGroup, [, expected, worker]: SentChange): boolean {
  if (guard === 'version') return entry.version === expected
  const isOwner = worker === null || entry.worker === worker
  return entry.state === retrying && entry.epoch === expected && isOwner
}

/** A lease holds past its end, as long as nobody claimed the letter again. */
const extend = `UPDATE letters SET leased_until = max(leased_until, ?), due_at = max(due_at, ?)
  WHERE id = ${idOf('?')} AND state = 1 AND epoch = ? AND worker = coalesce(?, worker)`

export function renew(
  { db, nowMs }: StoreContext,
  { leases, leaseMs }: Methods['renew']['request'],
): boolean[] {
  const end = leaseEnd(nowMs, leaseMs)
  return leases.map(
    ({ id, epoch, worker }) => db.run(extend, end, end, id, epoch, worker ?? null) > 0,
  )
}

/** The end of a lease. Timestamps have a last one. */
export function leaseEnd(nowMs: number, leaseMs: number): number {
  return toMs(toTimestamp(nowMs + leaseMs))
}
