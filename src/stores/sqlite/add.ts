import { createHash } from 'node:crypto'
import { RedriveError } from '../../errors.ts'
import type { HistoryEntry } from '../../letter/letter.ts'
import type { AddResult, Capacity } from '../../store.ts'
import type { Books } from './books.ts'
import { actionCode, archived, categories, partsOf, resolved, states } from './codes.ts'
import { searchStride } from './find.ts'
import type { Origin, Rest } from './pack.ts'
import type { PackedLetter, Verbs } from './protocol.ts'
import { entryById, entryBySeq, holderOf, restOf, type Entry } from './reading.ts'
import { rowColumns, rowOf, rowWidth, type Row } from './row.ts'
import { addDependencies, freeDependents, settleLane, waitOf } from './waits.ts'
import { addTag, erase, remember, rewrite } from './writing.ts'

const capture = actionCode('capture')
const occurred = actionCode('occur')
const evict = actionCode('evict')

const insertLetter = `INSERT INTO letters (${rowColumns}, queue, dedupe, wait, due_at)
  VALUES (${'?, '.repeat(rowWidth)}?, ?, ?, ?) ON CONFLICT DO NOTHING`
const insertBody = 'INSERT INTO bodies VALUES (?, ?, ?, ?, ?)'

export function add(books: Books, { letters, capacity }: Verbs['add']['ask']): AddResult[] {
  refuseWhenLow(books)
  return letters.map((letter) => addOne(books, letter, capacity))
}

function refuseWhenLow({ disk }: Books): void {
  const problems = disk.isLow() ? disk.problems() : []
  if (problems.length > 0) throw new RedriveError('STORE_UNAVAILABLE', problems.join('; '))
}

/** By id first, then by key, then whether there is room. Most letters need only the insertion to know. */
function addOne(books: Books, packed: PackedLetter, capacity: Capacity | undefined): AddResult {
  const [values, queueName, , , , , extras] = packed
  const row = rowOf(values)
  const key = extras?.dedupeKey
  const queue = books.queues.number(queueName)
  const dedupe = key === undefined ? null : hashOf(key)
  let evicted = 0
  if (dedupe || capacity) {
    const same = entryById(books, row.id)
    if (same) return duplicate(same, 'id')
    const holder = dedupe && holderOf(books, queue, dedupe)
    if (holder) return occur(books, holder, packed)
    const room = capacity && row.state !== archived ? makeRoom(books, capacity) : 0
    if (room === undefined) return { kind: 'full' }
    evicted = room
  }
  if (!insert(books, packed, row, queue, dedupe)) return duplicate(entryById(books, row.id)!, 'id')
  return evicted > 0 ? { kind: 'added', evicted } : { kind: 'added' }
}

/** Keys may be of any length and an index takes only short ones. */
function hashOf(key: string): Uint8Array {
  return createHash('sha256').update(key, 'utf16le').digest()
}

function duplicate({ row }: Entry, by: 'id' | 'dedupeKey'): AddResult {
  return { kind: 'duplicate', of: row.id, by, occurrences: restOf(row)?.occurrences ?? 1 }
}

/** False when the id is kept already. */
function insert(
  books: Books,
  packed: PackedLetter,
  row: Row,
  queue: number,
  dedupe: Uint8Array | null,
): boolean {
  const { db, counters } = books
  const [values, , origin, originCrc, bytes, bytesCrc, extras] = packed
  // A letter that depends on others gets its place once they are noted, below.
  const place = row.dependent === 1 ? { wait: null, dueAt: null } : waitOf(books, 0, queue, row)
  const seq = db.insert(insertLetter, ...values, queue, dedupe, place.wait, place.dueAt)
  if (seq === 0) return false
  db.run(insertBody, seq, origin, originCrc, bytesCrc, bytes)
  const tags = extras?.tags ?? []
  for (const tag of tags) addTag(books, tag, row.id, seq)
  for (const [at, entry] of (extras?.history ?? []).entries())
    db.run('INSERT INTO history VALUES (?, ?, ?)', seq, row.omitted + at + 1, JSON.stringify(entry))
  counters.count(queue, row, tags, 1)
  counters.total(queue, capture, row)
  if (row.dependent === 1) addDependencies(books, seq, extras?.dependsOn ?? [])
  if (row.lane !== null && row.state < resolved) settleLane(books, queue, row.lane, row.id)
  if (
    row.state === resolved ||
    (row.state === archived && restOf(row)?.archivedFrom === 'resolved')
  )
    freeDependents(books, row.id)
  return true
}

/** How many had to go for one more to fit. Undefined: there is no room, and nothing went. */
function makeRoom(books: Books, { maxItems, overflow }: Capacity): number | undefined {
  const excess = books.counters.standing() + 1 - maxItems
  if (excess <= 0) return 0
  if (overflow === 'reject' || resolvedOnes(books) < excess) return undefined
  const going = searchStride(books, {
    filter: { state: 'resolved' },
    order: 'settled',
    limit: excess,
    whole: false,
  })
  for (const { seq } of going.spots) erase(books, entryBySeq(books, seq)!, evict)
  return going.spots.length
}

function resolvedOnes(books: Books): number {
  let sum = 0
  for (const [cell, n] of books.counters.cells()) if (partsOf(cell).state === resolved) sum += n
  return sum
}

/** The same thing was captured once more: see `occur` in `letter/moves.ts`, which this mirrors on rows. */
function occur(books: Books, holder: Entry, packed: PackedLetter): AddResult {
  const newer = rowOf(packed[0])
  const newerRest = JSON.parse(newer.rest) as Rest
  const origin = JSON.parse(packed[2]) as Origin
  const { failure = origin.firstFailure, severity, recoverability } = newerRest
  const next: Row = {
    ...holder.row,
    category: newer.category,
    fingerprint: newer.fingerprint,
    version: holder.row.version + 1,
    updatedAt: newer.deadLetteredAt,
  }
  const rest = restOf(holder.row)
  if (rest) {
    rest.occurrences += 1
    next.rest = JSON.stringify({ ...rest, failure, severity, recoverability })
  }
  const state = states[holder.row.state]!
  const { name, message } = failure
  const entry: HistoryEntry = {
    at: newer.deadLetteredAt,
    actor: origin.entry?.actor ?? 'capture',
    action: 'occur',
    from: state,
    to: state,
    failure: { name, message: message.slice(0, 500), category: categories[newer.category]! },
  }
  remember(books, holder.seq, next, entry)
  rewrite(books, holder, next)
  books.counters.total(holder.queue, occurred, next)
  return duplicate({ ...holder, row: next }, 'dedupeKey')
}
