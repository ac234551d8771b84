import type { HistoryEntry } from '../../letter/letter.ts'
import { maxHistory } from '../../letter/moves.ts'
import type { AddResult, Capacity } from '../../store.ts'
import { actionCode, archived, isActiveCode, parked, resolved } from '../rows/codes.ts'
import type { PackedLetter } from '../rows/form.ts'
import { keyHash } from '../rows/key-hash.ts'
import { occurred } from '../rows/patch.ts'
import { restOf } from '../rows/rest.ts'
import { rowOf, type Row } from '../rows/row.ts'
import type { Books } from './books.ts'
import { isNear, makeRoom, roomFor, type Room } from './capacity.ts'
import { erase } from './erase.ts'
import { follow, insertLetters, isResolvedRow, type Fresh } from './insert.ts'
import type { Transaction } from '../../backends/postgres/transaction.ts'
import { capacityLock, keyLock, laneLock, lock, lockMissing } from './locks.ts'
import { entryColumns, entryOf, type Entry } from './rows.ts'
import { fromText, toText } from './text.ts'
import { StateChanged } from '../../backends/postgres/errors.ts'
import { dependents, lockForWaiting, resolvedAmong } from './waits.ts'
import { Writing } from './writing.ts'

const capture = actionCode('capture')
const parkAtCapture = actionCode('park-at-capture')
const occurrence = actionCode('occur')
const evict = actionCode('evict')

/** One letter of a call, with what the call allows. */
export interface Wanted {
  packed: PackedLetter
  capacity: Capacity | undefined
}

export interface Candidate extends Fresh {
  capacity: Capacity | undefined
  /** The name of the lock of its key, which stands for the key. */
  key: string | undefined
}

/** Readies letters: their queues get numbers, and claims will look where they stand. */
export async function candidatesOf(books: Books, wanted: readonly Wanted[]): Promise<Candidate[]> {
  const numbers = await books.queues.numbers(wanted.map(({ packed }) => packed[1]))
  const candidates = wanted.map(({ packed, capacity }) => {
    const queue = numbers.get(packed[1])!
    const row = rowOf(packed[0])
    return candidateOf(packed, queue, row, row.state === archived ? undefined : capacity)
  })
  await books.queues.ranges(candidates.map(({ queue, row }) => ({ queue, priority: row.priority })))
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
  woken: Promise<boolean>
}

/** Adds letters in one transaction, and answers for each, in order: by id first, then by key, then whether there is room. */
export async function addIn(
  books: Books,
  tx: Transaction,
  wanted: readonly Candidate[],
  slot: number,
): Promise<Added> {
  // A transaction that is begun afresh starts from the letters as they were given.
  const candidates = wanted.map((one) => ({ ...one, later: [...one.later] }))
  const room = await takeLocks(books, tx, candidates)
  const exacting = candidates.some(({ key, capacity }) => key !== undefined || capacity)
  const seen: Seen = exacting ? await look(tx, candidates) : { ids: new Map(), holders: new Map() }
  const writing = new Writing()
  const { results, fresh } = decide(candidates, seen, room, writing)
  // First, since what is evicted is not there any more to be waited for.
  erase(tx, writing, room?.going ?? [], evict)
  const coming = await meetDependencies(tx, fresh)
  const inserted = await insertLetters(tx, fresh)
  const known = fresh.filter(({ row }) => !inserted.has(row.id))
  if (known.length > 0 && (exacting || known.some(({ row }) => coming.has(row.id))))
    throw new StateChanged('a letter came in between')
  const kept = fresh.filter(({ row }) => inserted.has(row.id))
  follow(tx, writing, kept)
  for (const { queue, row } of kept) {
    writing.deltas.total(queue, capture, row)
    if (row.state === parked) writing.deltas.total(queue, parkAtCapture, row)
  }
  if (known.length > 0) await tellDuplicates(tx, candidates, results, inserted)
  const waiting = await dependents(tx, writing.resolved)
  const { woken } = await writing.flush(books, tx, slot, waiting)
  return { results, woken }
}

async function takeLocks(
  books: Books,
  tx: Transaction,
  candidates: readonly Candidate[],
): Promise<Room | undefined> {
  const { connection } = books
  const unmet = candidates.flatMap((one) => one.unmet)
  const capacities = candidates.flatMap(({ capacity }) => (capacity ? [capacity] : []))
  if (unmet.length > 0) await lockForWaiting(tx, connection, unmet.map(toText))
  if (candidates.some(({ row }) => isResolvedRow(row))) void lockMissing(tx, connection, 'resolve')
  const near = capacities.length > 0 && (await isNear(tx, capacities))
  const names = candidates.flatMap(({ key, queue, row }) => [
    ...(key === undefined ? [] : [key]),
    ...(row.lane !== null && isActiveCode(row.state) ? [laneLock(queue, toText(row.lane))] : []),
  ])
  if (near) names.push(capacityLock)
  await lock(tx, connection, names)
  return near ? roomFor(tx, capacities) : undefined
}

/** What is there already: ids with how often they occurred, and the open letters that hold keys. */
interface Seen {
  ids: Map<string, number>
  holders: Map<string, Entry>
}

const holdersOf = `SELECT k.n::int, h.id FROM unnest($1::int[], $2::bytea[]) WITH ORDINALITY AS k(queue, dedupe, n)
  CROSS JOIN LATERAL (SELECT l.id FROM @letters l
    WHERE l.queue = k.queue AND l.dedupe = k.dedupe AND l.state NOT IN (2, 5) ORDER BY l.id LIMIT 1) AS h`
const lockHolders = `SELECT ${entryColumns('l')} FROM @letters l
  WHERE l.id = ANY($1::text[]) AND l.state NOT IN (2, 5) ORDER BY l.id FOR UPDATE`

async function look(tx: Transaction, candidates: readonly Candidate[]): Promise<Seen> {
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
    if (!entry) throw new StateChanged('the holder of a key was settled in between')
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
  { ids, holders }: Seen,
  room: Room | undefined,
  writing: Writing,
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
        writing.remember(next, line)
        writing.rewrite(entry, next)
        writing.deltas.total(entry.queue, occurrence, next)
      } else {
        appendLater(holder as Candidate, next, line)
        writing.deltas.total(holder.queue, occurrence, next)
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

/** The history of a letter that is not written yet, bounded as any. */
function appendLater({ later }: Candidate, next: Row, line: HistoryEntry): void {
  later.push(line)
  next.entries += 1
  const excess = Math.max(0, next.entries - next.omitted - maxHistory)
  later.splice(0, excess)
  next.omitted += excess
}

/**
 * Leaves in `unmet` only what is not resolved, here or among the letters that come along. Whoever comes under the id of a letter that is
 * here will not be kept, so that it counts for nothing. Answers whom others count on to be kept.
 */
export async function meetDependencies(tx: Transaction, fresh: Candidate[]): Promise<Set<string>> {
  const ids = fresh.flatMap(({ unmet }) => unmet.map(toText))
  if (ids.length === 0) return new Set()
  const there = new Map([...(await resolvedAmong(tx, ids))].map(([id, is]) => [fromText(id), is]))
  const asked = new Set(fresh.flatMap(({ unmet }) => unmet))
  const coming = new Set(
    fresh.flatMap(({ row }) =>
      asked.has(row.id) && !there.has(row.id) && isResolvedRow(row) ? [row.id] : [],
    ),
  )
  for (const one of fresh) one.unmet = one.unmet.filter((id) => !there.get(id) && !coming.has(id))
  return coming
}

/** Letters whose id was kept already, which only the insertion could tell. */
async function tellDuplicates(
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
    if (rest === undefined) throw new StateChanged('a letter was removed in between')
    const occurrences = restOf({ rest } as Row)?.occurrences ?? 1
    results[at] = { kind: 'duplicate', of: row.id, by: 'id', occurrences }
  }
}
