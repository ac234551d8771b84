import { RedriveError } from '../../errors.ts'
import type { AddResult, Capacity } from '../../store.ts'
import type { StoreContext } from './context.ts'
import { actionCode, archived, parked, partsOf, resolved } from '../rows/codes.ts'
import { scanStep } from './find.ts'
import { keyHash } from '../rows/key-hash.ts'
import { occurred } from '../rows/patch.ts'
import type { PackedLetter } from '../rows/form.ts'
import type { Methods } from './protocol.ts'
import { restOf } from '../rows/rest.ts'
import { entryById, entryBySeq, holderOf, type Entry } from './reading.ts'
import { rowColumns, rowOf, rowWidth, type Row } from '../rows/row.ts'
import { addDependencies, freeDependents, settleLane, waitOf } from './waits.ts'
import { addTag, erase, remember, rewrite } from './writing.ts'

const capture = actionCode('capture')
const parkAtCapture = actionCode('park-at-capture')
const occurrence = actionCode('occur')
const evict = actionCode('evict')

const insertLetter = `INSERT INTO letters (${rowColumns}, queue, dedupe, wait, due_at, source_id)
  VALUES (${'?, '.repeat(rowWidth)}?, ?, ?, ?, ?) ON CONFLICT DO NOTHING`
const insertBody = 'INSERT INTO bodies VALUES (?, ?, ?, ?, ?)'

export function add(
  context: StoreContext,
  { letters, capacity }: Methods['add']['request'],
): AddResult[] {
  refuseWhenLow(context)
  return letters.map((letter) => addOne(context, letter, capacity))
}

export function refuseWhenLow({ disk }: StoreContext): void {
  const problems = disk.isLow() ? disk.problems() : []
  if (problems.length > 0) throw new RedriveError('STORE_UNAVAILABLE', problems.join('; '))
}

/**
 * Checks the id, then the dedupe key, then the capacity. For most letters the insert alone decides.
 */
function addOne(
  context: StoreContext,
  packed: PackedLetter,
  capacity: Capacity | undefined,
): AddResult {
  const row = rowOf(packed[0])
  const queue = context.queues.number(packed[1])
  const dedupe = dedupeOf(packed)
  let evicted = 0
  if (dedupe || capacity) {
    const same = entryById(context, row.id)
    if (same) return duplicate(same, 'id')
    const holder = dedupe && holderOf(context, queue, dedupe)
    if (holder) return occur(context, holder, packed)
    const room = capacity && row.state !== archived ? makeRoom(context, capacity) : 0
    if (room === undefined) return { kind: 'full' }
    evicted = room
  }
  if (insert(context, packed, row, queue, dedupe) === undefined)
    return duplicate(entryById(context, row.id)!, 'id')
  context.counters.total(queue, capture, row)
  if (row.state === parked) context.counters.total(queue, parkAtCapture, row)
  return evicted > 0 ? { kind: 'added', evicted } : { kind: 'added' }
}

export function dedupeOf([, , , , , , extras]: PackedLetter): Uint8Array | null {
  const key = extras?.dedupeKey
  return key === undefined ? null : keyHash(key)
}

function duplicate({ row }: Entry, by: 'id' | 'dedupeKey'): AddResult {
  return { kind: 'duplicate', of: row.id, by, occurrences: restOf(row)?.occurrences ?? 1 }
}

/** Returns the row number of the letter. Undefined: the id is already stored. */
export function insert(
  context: StoreContext,
  packed: PackedLetter,
  row: Row,
  queue: number,
  dedupe: Uint8Array | null,
): number | undefined {
  const { db, counters } = context
  const [values, , origin, originCrc, bytes, bytesCrc, extras] = packed
  // A letter with dependencies is scheduled below, once they are stored.
  const place = row.dependent === 1 ? { wait: null, dueAt: null } : waitOf(context, 0, queue, row)
  const source = extras?.source ?? null
  const seq = db.insert(insertLetter, ...values, queue, dedupe, place.wait, place.dueAt, source)
  if (seq === 0) return undefined
  db.run(insertBody, seq, origin, originCrc, bytesCrc, bytes)
  const tags = extras?.tags ?? []
  for (const tag of tags) addTag(context, tag, row.id, seq)
  for (const [at, entry] of (extras?.history ?? []).entries())
    db.run('INSERT INTO history VALUES (?, ?, ?)', seq, row.omitted + at + 1, JSON.stringify(entry))
  counters.count(queue, row, tags, 1)
  if (row.dependent === 1) addDependencies(context, seq, extras?.dependsOn ?? [])
  if (row.lane !== null && row.state < resolved) settleLane(context, queue, row.lane, row.id)
  if (
    row.state === resolved ||
    (row.state === archived && restOf(row)?.archivedFrom === 'resolved')
  )
    freeDependents(context, row.id)
  return seq
}

/** Evicts resolved letters so that one more fits. Returns how many. Undefined: no room. */
function makeRoom(context: StoreContext, { maxItems, overflow }: Capacity): number | undefined {
  const excess = context.counters.occupied() + 1 - maxItems
  if (excess <= 0) return 0
  if (overflow === 'reject' || resolvedOnes(context) < excess) return undefined
  const going = scanStep(context, {
    filter: { state: 'resolved' },
    order: 'settled',
    limit: excess,
    whole: false,
  })
  for (const { seq } of going.entries) erase(context, entryBySeq(context, seq)!, evict)
  return going.entries.length
}

function resolvedOnes(context: StoreContext): number {
  let sum = 0
  for (const [cell, n] of context.counters.cells()) if (partsOf(cell).state === resolved) sum += n
  return sum
}

/** Counts another capture of an open letter. */
function occur(context: StoreContext, holder: Entry, packed: PackedLetter): AddResult {
  const { row, entry } = occurred(holder.row, packed)
  remember(context, holder.seq, row, entry)
  rewrite(context, holder, row)
  context.counters.total(holder.queue, occurrence, row)
  return duplicate({ ...holder, row }, 'dedupeKey')
}
