import type { HistoryEntry } from '../../letter/letter.ts'
import { maxHistory } from '../../letter/history.ts'
import type { AddResult, Capacity } from '../../store.ts'
import { actionCode, archived, isActiveCode, parked, resolved } from '../rows/codes.ts'
import type { PackedLetter } from '../rows/form.ts'
import { keyHash } from '../rows/key-hash.ts'
import { occurred } from '../rows/patch.ts'
import { restOf } from '../rows/rest.ts'
import { rowOf, type Row } from '../rows/row.ts'
import type { StoreContext } from './context.ts'
import { isCapacityNear, makeRoom, findRoom, type Room } from './capacity.ts'
import { erase } from './erase.ts'
import { writeRelated, insertLetters, isResolvedRow, type NewLetter } from './insert.ts'
import type { Transaction } from '../../backends/postgres/transaction.ts'
import { capacityLock, keyLock, laneLock, lock, lockMissing } from './locks.ts'
import { entryColumns, entryOf, type Entry } from './rows.ts'
import { fromText, toText } from './text.ts'
import { StateChanged } from '../../backends/postgres/errors.ts'
import { findDependents, lockForWaiting, readResolved } from './waits.ts'
import { WriteSet } from './write-set.ts'

const capture = actionCode('capture')
const parkAtCapture = actionCode('park-at-capture')
const occurrence = actionCode('occur')
const evict = actionCode('evict')

/** A letter of a call, with the capacity limit of the call. */
export interface AddRequest {
  packed: PackedLetter
  capacity: Capacity | undefined
}

export interface Candidate extends NewLetter {
  capacity: Capacity | undefined
  /** The name of the lock of the dedupe key, which identifies the key. */
  key: string | undefined
}

/** Prepares letters: gives their queues numbers, and registers their ranges for claims. */
export async function candidatesOf(
  context: StoreContext,
  wanted: readonly AddRequest[],
): Promise<Candidate[]> {
  const numbers = await context.queues.numbers(wanted.map(({ packed }) => packed[1]))
  const candidates = wanted.map(({ packed, capacity }) => {
    const queue = numbers.get(packed[1])!
    const row = rowOf(packed[0])
    return candidateOf(packed, queue, row, row.state === archived ? undefined : capacity)
  })
  await context.queues.ranges(
    candidates.map(({ queue, row }) => ({ queue, priority: row.priority })),
  )
  return candidates
}

export function candidateOf(
  packed: PackedLetter,
  queue: number,
  row: Row,
  capacity: Capacity | undefined,
): Candidate {
  const { dedupeKey, tags = [], dependsOn = [], history = [] } = packed[6] ?? {}
  const dedupe = dedupeKey === undefined ? null : keyHash(dedupeKey)
  const key = dedupe ? keyLock(queue, dedupe) : undefined
  const size = packed[4].byteLength
  return {
    packed,
    queue,
    row,
    capacity,
    dedupe,
    key,
    tags,
    later: [...history],
    unmet: dependsOn,
    size,
  }
}

export interface Added {
  results: AddResult[]
  shouldWake: Promise<boolean>
}

/**
 * Adds letters in one transaction. For each letter, in order, checks the id, then the dedupe key,
 * then the capacity.
 */
export async function addIn(
  context: StoreContext,
  tx: Transaction,
  wanted: readonly Candidate[],
  slot: number,
): Promise<Added> {
  // Copies, since a transaction that starts over needs the letters as they were given.
  const candidates = wanted.map((one) => ({ ...one, later: [...one.later] }))
  const room = await takeLocks(context, tx, candidates)
  const needsExactCheck = candidates.some(({ key, capacity }) => key !== undefined || capacity)
  const existing: Existing = needsExactCheck
    ? await findExisting(tx, candidates)
    : { ids: new Map(), holders: new Map() }
  const writes = new WriteSet()
  const { results, fresh } = decide(candidates, existing, room, writes)
  // First, since letters must not wait for an evicted letter.
  erase(tx, writes, room?.evicted ?? [], evict)
  const coming = await resolveDependencies(tx, fresh)
  const inserted = await insertLetters(tx, fresh)
  const known = fresh.filter(({ row }) => !inserted.has(row.id))
  if (known.length > 0 && (needsExactCheck || known.some(({ row }) => coming.has(row.id))))
    throw new StateChanged('a letter was added concurrently')
  const kept = fresh.filter(({ row }) => inserted.has(row.id))
  writeRelated(tx, writes, kept)
  for (const { queue, row } of kept) {
    writes.deltas.total(queue, capture, row)
    if (row.state === parked) writes.deltas.total(queue, parkAtCapture, row)
  }
  if (known.length > 0) await reportDuplicates(tx, candidates, results, inserted)
  const waiting = await findDependents(tx, writes.resolved)
  const { shouldWake } = await writes.flush(context, tx, slot, waiting)
  return { results, shouldWake }
}

async function takeLocks(
  context: StoreContext,
  tx: Transaction,
  candidates: readonly Candidate[],
): Promise<Room | undefined> {
  const { connection } = context
  const unmet = candidates.flatMap((one) => one.unmet)
  const capacities = candidates.flatMap(({ capacity }) => (capacity ? [capacity] : []))
  if (unmet.length > 0) await lockForWaiting(tx, connection, unmet.map(toText))
  if (candidates.some(({ row }) => isResolvedRow(row))) void lockMissing(tx, connection, 'resolve')
  const near = capacities.length > 0 && (await isCapacityNear(tx, capacities))
  const names = candidates.flatMap(({ key, queue, row }) => [
    ...(key === undefined ? [] : [key]),
    ...(row.lane !== null && isActiveCode(row.state) ? [laneLock(queue, toText(row.lane))] : []),
  ])
  if (near) names.push(capacityLock)
  await lock(tx, connection, names)
  return near ? findRoom(tx, capacities) : undefined
}

/**
 * Existing letters: ids with their number of occurrences, and the open letters that hold dedupe
 * keys.
 */
interface Existing {
  ids: Map<string, number>
  holders: Map<string, Entry>
}

const holdersOf = `SELECT k.n::int, h.id FROM unnest($1::int[], $2::bytea[]) WITH ORDINALITY AS k(queue, dedupe, n)
  CROSS JOIN LATERAL (SELECT l.id FROM @letters l
    WHERE l.queue = k.queue AND l.dedupe = k.dedupe AND l.state NOT IN (2, 5) ORDER BY l.id LIMIT 1) AS h`
const lockHolders = `SELECT ${entryColumns('l')} FROM @letters l
  WHERE l.id = ANY($1::text[]) AND l.state NOT IN (2, 5) ORDER BY l.id FOR UPDATE`

async function findExisting(tx: Transaction, candidates: readonly Candidate[]): Promise<Existing> {
  const found = tx.rows('SELECT id, rest FROM @letters WHERE id = ANY($1::text[])', [
    candidates.map(({ row }) => toText(row.id)),
  ])
  const keyed = [...new Map(candidates.map((one) => [one.key, one])).values()].filter(
    ({ key }) => key,
  )
  const holding =
    keyed.length === 0
      ? []
      : await tx.rows(holdersOf, [
          keyed.map(({ queue }) => queue),
          keyed.map(({ dedupe }) => dedupe),
        ])
  const entries = new Map<unknown, Entry>()
  if (holding.length > 0)
    for (const cells of await tx.rows(lockHolders, [holding.map(([, id]) => id)]))
      entries.set(cells[0], entryOf(cells))
  const holders = new Map<string, Entry>()
  for (const [n, id] of holding as [number, string][]) {
    const entry = entries.get(id)
    if (!entry)
      throw new StateChanged('the letter that holds a dedupe key was settled concurrently')
    holders.set(keyed[n - 1]!.key!, entry)
  }
  const ids = new Map<string, number>()
  for (const [id, rest] of (await found) as [string, string][])
    ids.set(fromText(id), restOf({ rest } as Row)?.occurrences ?? 1)
  return { ids, holders }
}

interface Decided {
  results: AddResult[]
  fresh: Candidate[]
}

function decide(
  candidates: readonly Candidate[],
  { ids, holders }: Existing,
  room: Room | undefined,
  writes: WriteSet,
): Decided {
  const fresh: Candidate[] = []
  const newHolders = new Map<string, Candidate>()
  const rows = new Map<string, Row>()
  const occurrences = (id: string): number => {
    const row = rows.get(id)
    return (row && restOf(row)?.occurrences) ?? ids.get(id) ?? 1
  }
  const again = (id: string, by: 'id' | 'dedupeKey'): AddResult => ({
    kind: 'duplicate',
    of: id,
    by,
    occurrences: occurrences(id),
  })
  const one = (candidate: Candidate): AddResult => {
    const { row, key, packed, capacity } = candidate
    if (ids.has(row.id) || rows.has(row.id)) return again(row.id, 'id')
    const entry = key === undefined ? undefined : holders.get(key)
    const holder = entry ?? (key === undefined ? undefined : newHolders.get(key))
    if (holder) {
      const { row: next, entry: line } = occurred(holder.row, packed)
      if (entry) {
        writes.remember(next, line)
        writes.rewrite(entry, next)
        writes.deltas.total(entry.queue, occurrence, next)
      } else {
        appendLater(holder as Candidate, next, line)
        writes.deltas.total(holder.queue, occurrence, next)
      }
      holder.row = next
      rows.set(next.id, next)
      return again(next.id, 'dedupeKey')
    }
    const evicted = capacity && room ? makeRoom(room, capacity) : 0
    if (evicted === undefined) return { kind: 'full' }
    fresh.push(candidate)
    rows.set(row.id, row)
    if (key !== undefined && isOpenCode(row.state)) newHolders.set(key, candidate)
    return evicted > 0 ? { kind: 'added', evicted } : { kind: 'added' }
  }
  return { results: candidates.map(one), fresh }
}

const isOpenCode = (state: number): boolean => state !== resolved && state !== archived

/** Adds to the history of a letter that is not written yet, within the usual bound. */
function appendLater({ later }: Candidate, next: Row, line: HistoryEntry): void {
  later.push(line)
  next.entries += 1
  const excess = Math.max(0, next.entries - next.omitted - maxHistory)
  later.splice(0, excess)
  next.omitted += excess
}

/**
 * Leaves in `unmet` only dependencies that are not resolved, neither in the database nor among the
 * new letters. A new letter whose id exists already is not stored and does not count. Returns the
 * new letters that others rely on.
 */
export async function resolveDependencies(
  tx: Transaction,
  fresh: Candidate[],
): Promise<Set<string>> {
  const ids = fresh.flatMap(({ unmet }) => unmet.map(toText))
  if (ids.length === 0) return new Set()
  const there = new Map([...(await readResolved(tx, ids))].map(([id, is]) => [fromText(id), is]))
  const asked = new Set(fresh.flatMap(({ unmet }) => unmet))
  const coming = new Set(
    fresh.flatMap(({ row }) =>
      asked.has(row.id) && !there.has(row.id) && isResolvedRow(row) ? [row.id] : [],
    ),
  )
  for (const one of fresh) one.unmet = one.unmet.filter((id) => !there.get(id) && !coming.has(id))
  return coming
}

/** Reports letters whose id exists already, which only the insertion could detect. */
async function reportDuplicates(
  tx: Transaction,
  candidates: readonly Candidate[],
  results: AddResult[],
  inserted: ReadonlySet<string>,
): Promise<void> {
  const kept = candidates.flatMap(({ row }) => (inserted.has(row.id) ? [] : [toText(row.id)]))
  const rows = await tx.rows('SELECT id, rest FROM @letters WHERE id = ANY($1::text[])', [kept])
  const found = new Map(rows.map(([id, rest]) => [fromText(id as string), rest as string]))
  for (const [at, { row }] of candidates.entries()) {
    if (inserted.has(row.id)) continue
    const rest = found.get(row.id)
    if (rest === undefined) throw new StateChanged('a letter was removed concurrently')
    const occurrences = restOf({ rest } as Row)?.occurrences ?? 1
    results[at] = { kind: 'duplicate', of: row.id, by: 'id', occurrences }
  }
}
