import { RedriveError } from '../../errors.ts'
import { inHistory } from '../../letter/history.ts'
import type { Failure } from '../../letter/letter.ts'
import { toTimestamp } from '../../letter/time.ts'
import type { AddResult, Capacity } from '../../store.ts'
import {
  actionCode,
  archived,
  categories,
  isActiveCode,
  parked,
  resolved,
  states,
  wait,
} from '../rows/codes.ts'
import { at, columns } from '../rows/columns.ts'
import type { Origin } from '../rows/encode.ts'
import { decodeHistory, encodeEntry } from '../rows/history-column.ts'
import type { StoreContext } from './context.ts'
import { countedOf, type Counted } from './counted.ts'
import { countWhere } from './counters.ts'
import { scan } from './find.ts'
import { entriesOf, findEntry, type Entry } from './letters.ts'
import { appendLine, eraseLetter, writeTags } from './move.ts'
import type { Methods } from './protocol.ts'
import { idOf, rowParameters } from './schema.ts'
import { after, formatId, type SentLetter } from './transfer.ts'
import { addDependencies, releaseDependents, settleLane } from './waits.ts'

const bit = (action: Parameters<typeof actionCode>[0]): number => 1 << actionCode(action)
const captured = bit('capture')
const parkedAtCapture = captured | bit('park-at-capture')
const occurred = bit('occur')
const evict = actionCode('evict')

/** Returns the results that are not plain additions, with their positions. */
export function add(
  context: StoreContext,
  { letters, capacity }: Methods['add']['request'],
): Methods['add']['response'] {
  refuseWhenLow(context)
  const others: Methods['add']['response'] = []
  const done: string[] = []
  for (const [n, letter] of letters.entries()) {
    const result = addLetter(context, letter, capacity, done)
    if (result) others.push([n, result])
  }
  releaseDependents(context, done)
  return others
}

export function refuseWhenLow({ disk }: StoreContext): void {
  const problems = disk.isLow() ? disk.problems() : []
  if (problems.length > 0) throw new RedriveError('STORE_UNAVAILABLE', problems.join('; '))
}

/**
 * Checks the id, then the dedupe key, then the capacity. For most letters the insert alone decides.
 * Undefined: the letter was added.
 */
function addLetter(
  context: StoreContext,
  letter: SentLetter,
  capacity: Capacity | undefined,
  done: string[],
): AddResult | undefined {
  const id = letter[at.id] as string
  const queue = context.queues.number(letter[after.queue] as string)
  let evicted = 0
  if (letter[at.dedupe] !== null || capacity) {
    if (findEntry(context, id)) return duplicateById(context, id)
    const duplicate = occur(context, queue, letter)
    if (duplicate) return duplicate
    const room = capacity && letter[at.state] !== archived ? makeRoom(context, capacity) : 0
    if (room === undefined) return { kind: 'full' }
    evicted = room
  }
  const counted = countedOf(queue, letter)
  if (insertLetter(context, counted, letter, done) === 0) return duplicateById(context, id)
  context.counters.total(counted.state === parked ? parkedAtCapture : captured, counted)
  return evicted > 0 ? { kind: 'added', evicted } : undefined
}

function duplicateById({ db }: StoreContext, of: string): AddResult {
  const sql = `SELECT occurrences FROM letters WHERE id = ${idOf('?')}`
  return { kind: 'duplicate', of, by: 'id', occurrences: db.get(sql, of)![0] as number }
}

const insertRow = `INSERT INTO letters (queue, ${columns.join(', ')})
  VALUES (?, ${rowParameters}) ON CONFLICT DO NOTHING`
const insertBody = 'INSERT INTO bodies VALUES (?, ?, ?, ?, ?)'

/**
 * Writes a letter and everything that belongs to it. A resolved one is added to `done`. Returns its
 * row number. 0: its id is already stored.
 */
export function insertLetter(
  context: StoreContext,
  counted: Counted,
  letter: SentLetter,
  done: string[],
): number {
  const { db, counters } = context
  const { queue, state, tags } = counted
  const lane = letter[at.lane] as string | null
  const waitsFor = letter[after.note] as string | null
  if (letter[at.wait] === wait.ready)
    if (lane !== null) letter[at.wait] = wait.held
    else if (waitsFor === null) context.woke = true
  const [origin, originCrc, bytes, bytesCrc] = letter.slice(after.origin)
  const seq = db.insert(insertRow, queue, ...letter.slice(0, after.queue))
  if (seq === 0) return 0
  db.run(insertBody, seq, origin!, originCrc!, bytes!, bytesCrc!)
  counters.count(counted, 1)
  const id = letter[at.id] as string
  if (tags.length > 0) writeTags(context, { seq, id }, [], tags)
  if (waitsFor !== null) addDependencies(context, seq, JSON.parse(waitsFor) as string[])
  if (lane !== null && isActiveCode(state)) settleLane(context, queue, lane)
  if (state === resolved || letter[at.archived_from] === resolved) done.push(id)
  return seq
}

/** Evicts resolved letters so that one more fits. Returns how many. Undefined: no room. */
function makeRoom(context: StoreContext, { maxItems, overflow }: Capacity): number | undefined {
  const { counters } = context
  const excess = countWhere(counters, ({ state }) => state !== archived) + 1 - maxItems
  if (excess <= 0) return 0
  if (overflow === 'reject') return undefined
  if (countWhere(counters, ({ state }) => state === resolved) < excess) return undefined
  let left = excess
  const search = { filter: { state: 'resolved' as const }, order: 'settled' as const }
  for (const { found } of scan(context, search, excess)) {
    const seqs = found.slice(0, left).map(({ item }) => item)
    for (const entry of entriesOf(context, seqs)) eraseLetter(context, entry, evict)
    left -= seqs.length
    if (left === 0) break
  }
  return excess - left
}

const holderOf = `SELECT seq, hex(id), occurrences FROM letters INDEXED BY letters_dedupe
  WHERE queue = ? AND dedupe = ? AND state NOT IN (2, 5) ORDER BY id LIMIT 1`

const addOccurrence = `UPDATE letters SET occurrences = occurrences + 1, version = version + 1,
  failure = ?, category = ?, severity = ?, recoverability = ?, fingerprint = ?, updated_at = ?,
  ${appendLine('?')} WHERE seq = ?`

/**
 * Counts another capture of the open letter with the same dedupe key: `occur` of `letter/moves.ts`
 * for rows. Undefined: there is none.
 */
function occur(context: StoreContext, queue: number, letter: SentLetter): AddResult | undefined {
  const { db, counters } = context
  const holder =
    letter[at.dedupe] === null ? undefined : db.get(holderOf, queue, letter[at.dedupe]!)
  if (!holder) return undefined
  const [seq, id, occurrences] = holder as [number, string, number]
  const [before] = entriesOf(context, [seq]) as [Entry]
  const failure = failureOf(letter)
  const judged = [at.category, at.severity, at.recoverability, at.fingerprint, at.captured_at]
  const values = judged.map((column) => letter[column]!)
  db.run(addOccurrence, JSON.stringify(failure), ...values, lineOf(letter, failure, before), seq)
  const { category, fingerprint } = countedOf(queue, letter)
  const next = { ...before, category, fingerprint }
  counters.move(before, next)
  counters.total(occurred, next)
  return { kind: 'duplicate', of: formatId(id), by: 'dedupeKey', occurrences: occurrences + 1 }
}

function failureOf(letter: SentLetter): Failure {
  const json = letter[at.failure] as string | null
  if (json !== null) return JSON.parse(json) as Failure
  return (JSON.parse(letter[after.origin] as string) as Origin).firstFailure
}

function lineOf(letter: SentLetter, failure: Failure, { state }: Entry): string {
  const [first] = decodeHistory(letter[at.history] as string) ?? []
  return encodeEntry({
    at: toTimestamp(letter[at.captured_at] as number),
    actor: first?.actor ?? 'capture',
    action: 'occur',
    from: states[state]!,
    to: states[state]!,
    failure: inHistory({ failure, category: categories[letter[at.category] as number]! }),
  })
}
