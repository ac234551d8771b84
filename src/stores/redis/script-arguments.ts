import { RedriveError } from '../../errors.ts'
import { actionCode, categoryCode, policyCode, priorityCode, stateCode } from '../rows/codes.ts'
import { factsOf } from '../rows/pack.ts'
import type { DeadLetter, Patch } from '../../letter/letter.ts'
import { inHistory } from '../../letter/history.ts'
import { countsOf, type Change } from '../../letter/moves.ts'
import { toText, type Argument, type Reply } from '../../backends/redis/connection.ts'
import type { AddResult, ApplyResult, Capacity, LeaseRef } from '../../store.ts'
import { col } from './columns.ts'
import {
  historyOf,
  packedOf,
  sourceOf,
  tagCells,
  withChecksum,
  type Cell,
  type Packed,
} from './packing.ts'

/** The arguments of a letter for the script `add`. */
export function addArguments(letter: DeadLetter, capacity: Capacity | undefined): Argument[] {
  const packed = packedOf(letter)
  return [packed.row, packed.rest, packed.origin, packed.bytes, extrasOf(letter, packed, capacity)]
}

function extrasOf(letter: DeadLetter, packed: Packed, capacity: Capacity | undefined): string {
  if (packed.extras === null && !capacity) return ''
  const { dedupeKey, dependsOn } = packed.extras ?? {}
  return JSON.stringify({
    ...historyOf(packed),
    ...sourceOf(packed),
    ...(dependsOn ? { d: dependsOn } : {}),
    ...(capacity ? { c: [limitOf(capacity), capacity.overflow === 'reject' ? 0 : 1] } : {}),
    ...(dedupeKey === undefined ? {} : { o: occurrenceOf(letter) }),
  })
}

/** Checked before it is sent: a script that fails halfway would leave other letters uncounted. */
function limitOf({ maxItems }: Capacity): number {
  if (Number.isNaN(maxItems))
    throw new RedriveError('INVALID_INPUT', 'maxItems must be a number, got NaN')
  return Math.min(maxItems, most)
}

/**
 * The fields that an occurrence changes in the letter that holds the dedupe key, and its history
 * entry: see `occur` in `letter/moves.ts`.
 */
function occurrenceOf(letter: DeadLetter): { f: string; s: string; r: string; h: string } {
  const { failure, category, severity, recoverability } = letter
  const entry = {
    at: letter.deadLetteredAt,
    actor: letter.history[0]?.actor ?? 'capture',
    action: 'occur',
    failure: inHistory({ failure, category }),
  }
  return {
    f: JSON.stringify(failure),
    s: JSON.stringify(severity),
    r: JSON.stringify(recoverability),
    // The script appends the state of the letter, and the brace.
    h: JSON.stringify(entry).slice(0, -1),
  }
}

/**
 * The result for a letter; `overfull` if so many letters must be evicted first that it takes
 * several steps.
 */
export type Added = AddResult | { kind: 'overfull'; excess: number }

export function addedOf(reply: Reply): Added {
  const [kind, first, second] = reply as [Buffer, (Buffer | number)?, number?]
  switch (kind.toString()) {
    case 'a':
      return first === 0 ? { kind: 'added' } : { kind: 'added', evicted: first as number }
    case 'i':
      return { kind: 'duplicate', of: toText(first), by: 'id', occurrences: second! }
    case 'k':
      return { kind: 'duplicate', of: toText(first), by: 'dedupeKey', occurrences: second! }
    case 'm':
      return { kind: 'overfull', excess: first as number }
    default:
      return { kind: 'full' }
  }
}

type Columns = { [K in keyof Patch]?: (value: NonNullable<Patch[K]> | null) => [number, Cell][] }

/** Fields with a column. Null removes an optional field. */
const columns: Columns = {
  state: (value) => [[col.state, stateCode(value!)]],
  priority: (value) => [[col.priority, priorityCode(value!)]],
  category: (value) => [[col.category, categoryCode(value!)]],
  fingerprint: (value) => [[col.fingerprint, value!.toWellFormed()]],
  retries: (value) => [[col.retries, value!]],
  backoffMs: (value) => [[col.backoffMs, String(value!)]],
  reason: (value) => [[col.reason, value ?? false]],
  retryAt: (value) => [[col.retryAt, value ?? false]],
  settledAt: (value) => [[col.settledAt, value ?? false]],
  expiresAt: (value) => [[col.expiresAt, value ?? false]],
  lease: (value) => [
    [col.worker, value?.worker.toWellFormed() ?? false],
    [col.leasedUntil, value?.expiresAt ?? false],
  ],
}

/** Fields of the rest from which a column is derived. */
const followers: Columns = {
  policy: (value) => [[col.policy, policyCode(value!.kind)]],
  tags: (value) => [[col.tags, tagCells(value!)]],
  archivedFrom: (value) => [[col.done, value === 'resolved' ? 1 : 0]],
}

/** The arguments of a change for the script `apply`. */
export function applyArguments(change: Change): Argument[] {
  const cells: (number | Cell)[] = []
  const rest: (string | false)[] = []
  for (const [field, value] of Object.entries(change.set)) {
    if (value === undefined || field === 'updatedAt') continue
    const own = Object.hasOwn(columns, field)
    const write = (own ? columns : followers)[field as keyof Patch] as
      | ((value: unknown) => [number, Cell][])
      | undefined
    for (const [at, cell] of write?.(value) ?? []) cells.push(at, cell)
    if (!own) rest.push(field, value === null ? false : restValue(field, value))
  }
  const { guard, entry, id } = change
  const held = 'version' in guard ? { v: guard.version } : { e: guard.epoch, ...workerOf(guard) }
  const said = { i: id, ...held, c: cells, x: rest, h: JSON.stringify(entry), t: entry.at }
  const { payload } = change.set
  return [
    JSON.stringify({ ...said, a: countsOf(change).map(actionCode) }),
    payload ? withChecksum(payload.bytes) : '',
  ]
}

function workerOf({ worker }: { worker?: string }): { w?: string } {
  return worker === undefined ? {} : { w: worker.toWellFormed() }
}

function restValue(field: string, value: unknown): string {
  return JSON.stringify(field === 'payload' ? factsOf(value as DeadLetter['payload']) : value)
}

export function appliedOf(reply: Reply): ApplyResult {
  const letter = toText(reply)
  return letter === 'w' ? 'written' : letter === 'c' ? 'conflict' : 'missing'
}

/** The arguments of a lease for the script `renew`. */
export function renewArguments({ id, epoch, worker }: LeaseRef, leaseMs: number): Argument[] {
  // A given name gets a prefix, since a name may be empty.
  return [numberText(leaseMs), id, String(epoch), worker === undefined ? '' : `=${worker}`]
}

/** An upper bound for durations and limits. */
const most = 1e15

/** A number for a script. */
export function numberText(ms: number): string {
  return String(Math.min(ms, most))
}
