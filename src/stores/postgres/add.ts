import { inHistory } from '../../letter/history.ts'
import type { DeadLetter } from '../../letter/letter.ts'
import { toTimestamp } from '../../letter/time.ts'
import { isUnknownOutcome } from '../../backends/postgres/connection.ts'
import { sqlStateOf, StateChanged } from '../../backends/postgres/errors.ts'
import type { Transaction } from '../../backends/postgres/transaction.ts'
import type { AddResult, Capacity } from '../../store.ts'
import { actionCode, archived, resolved, states } from '../rows/codes.ts'
import { at } from '../rows/columns.ts'
import { encodeLetter } from '../rows/encode.ts'
import { encodeEntry } from '../rows/history-column.ts'
import { findRoom, isCapacityNear, makeRoom, type Room } from './capacity.ts'
import { isAnyDue, type StoreContext } from './context.ts'
import { erase } from './erase.ts'
import { insertPlainLetters, newLetterOf, type NewLetter } from './insert.ts'
import { capacityLock, keyLock, lock } from './locks.ts'
import { occur, type Occurrence } from './occur.ts'
import { lanesOf, laneLocksOf, storeFresh } from './store-fresh.ts'
import { encodeValue } from './rows.ts'
import { joinIds, joinNumbers, joinTexts, splitTexts } from './text.ts'
import { settleLanes } from './waits.ts'

const evict = actionCode('evict')

/** A letter of a call, encoded, with what a letter with its dedupe key needs of it. */
export interface AddRequest {
  letter: NewLetter
  queueName: string
  capacity: Capacity | undefined
  /** Ids of the letters that it depends on. */
  dependsOn: readonly string[]
  /** The latest failure as an entry of the history. */
  failure: ReturnType<typeof inHistory>
  actor: string
}

export function addRequestOf(letter: DeadLetter, capacity: Capacity | undefined): AddRequest {
  return {
    letter: newLetterOf(encodeLetter(letter)),
    queueName: letter.queue,
    capacity: letter.state === 'archived' ? undefined : capacity,
    dependsOn: letter.dependsOn ? [...new Set(letter.dependsOn)] : none,
    failure: inHistory(letter),
    actor: letter.history[0]?.actor ?? 'capture',
  }
}

const none: readonly string[] = []

export interface Candidate extends AddRequest {
  /** The name of the lock of the dedupe key, which identifies the key. */
  key: string | undefined
}

/** Prepares letters: gives their queues numbers, and registers their ranges for claims. */
export async function candidatesOf(
  context: StoreContext,
  wanted: readonly AddRequest[],
): Promise<Candidate[]> {
  const numbers = await context.queues.numbers(wanted.map(({ queueName }) => queueName))
  const candidates = wanted.map((request) => {
    const letter = { ...request.letter, queue: numbers.get(request.queueName)! }
    const dedupe = letter.row[at.dedupe] as Uint8Array | null
    return { ...request, letter, key: dedupe ? keyLock(letter.queue, dedupe) : undefined }
  })
  await context.queues.ranges(
    candidates.map(({ letter }) => ({
      queue: letter.queue,
      priority: letter.row[at.priority] as number,
    })),
  )
  return candidates
}

/** Whether the letter needs nothing but its own rows. */
export const isPlain = ({ capacity, dependsOn, letter: { row } }: AddRequest): boolean =>
  !capacity &&
  dependsOn.length === 0 &&
  row[at.dedupe] === null &&
  row[at.lane] === null &&
  row[at.tags] === null

/**
 * Adds plain letters in one statement. If the id of one of them exists already or is waited for,
 * they are added in a transaction.
 */
export async function addPlainly(
  context: StoreContext,
  wanted: readonly AddRequest[],
): Promise<AddResult[]> {
  const candidates = await candidatesOf(context, wanted)
  const outcome = await insertPlain(context, candidates)
  if (outcome === 'stored') {
    wakeIfDue(context, candidates)
    return candidates.map(() => ({ kind: 'added' }))
  }
  const results = await addInTransaction(context, candidates)
  // The statement whose answer was lost may have stored the letters that exist now.
  const isOwn = (result: AddResult): boolean => outcome === 'lost' && result.kind === 'duplicate'
  return results.map((result) => (isOwn(result) ? { kind: 'added' } : result))
}

/** Adds letters with all that follows, in one transaction. */
export async function addInTransaction(
  context: StoreContext,
  candidates: readonly Candidate[],
): Promise<AddResult[]> {
  const { results, dueTimes } = await context.withSlot((slot) =>
    context.connection.transaction('hot', (tx) => addIn(context, tx, candidates, slot)),
  )
  if (isAnyDue(context, dueTimes)) context.wake()
  return results
}

/** Inserts letters in one statement. Not stored: an id is not new. Lost: its answer was lost. */
async function insertPlain(
  context: StoreContext,
  plain: readonly Candidate[],
): Promise<'stored' | 'not stored' | 'lost'> {
  const letters = plain.map(({ letter }) => letter)
  try {
    await context.withSlot((slot) => insertPlainLetters(context.connection, letters, slot))
    return 'stored'
  } catch (error) {
    if (isUnknownOutcome(error)) return 'lost'
    if (sqlStateOf((error as Error).cause) === uniqueViolation) return 'not stored'
    throw error
  }
}

const uniqueViolation = '23505'

function wakeIfDue(context: StoreContext, plain: readonly Candidate[]): void {
  const dueTimes = plain.map(({ letter: { row } }) =>
    row[at.wait] === 0 ? (row[at.due_at] as number) : null,
  )
  if (isAnyDue(context, dueTimes)) context.wake()
}

export interface Added {
  results: AddResult[]
  dueTimes: (number | null)[]
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
  const candidates = wanted.map((one) => ({ ...one, letter: copyOf(one.letter) }))
  const room = await takeLocks(context, tx, candidates)
  const isExact = candidates.some(({ key, capacity }) => key !== undefined || capacity)
  const existing = isExact
    ? await findExisting(tx, candidates)
    : { ids: new Map(), holders: new Map() }
  const { results, fresh, occurrences } = decide(candidates, existing, room)
  // First, since letters must not wait for an evicted letter.
  const lanes = await erase(tx, room?.evicted ?? [], slot, evict)
  const stored = await storeFresh(context, tx, fresh, slot, 'add')
  const known = fresh.filter(({ letter }) => !stored.inserted.has(letter.id))
  if (known.length > 0 && (isExact || known.some(({ letter }) => stored.coming.has(letter.id))))
    throw new StateChanged('a letter was added concurrently')
  if (known.length > 0) await reportDuplicates(tx, candidates, results, stored.inserted)
  await occur(tx, occurrences, slot)
  const heads = await settleLanes(tx, [...lanes, ...stored.lanes, ...lanesOf(fresh)])
  return { results, dueTimes: [...stored.dueTimes, ...heads] }
}

const copyOf = (letter: NewLetter): NewLetter => ({ ...letter, row: [...letter.row] })

async function takeLocks(
  context: StoreContext,
  tx: Transaction,
  candidates: readonly Candidate[],
): Promise<Room | undefined> {
  const capacities = candidates.flatMap(({ capacity }) => (capacity ? [capacity] : []))
  const isNear = capacities.length > 0 && (await isCapacityNear(tx, capacities))
  const names = candidates.flatMap(({ key }) => (key === undefined ? [] : [key]))
  if (isNear) names.push(capacityLock)
  await lock(tx, context.connection, [...names, ...laneLocksOf(candidates)])
  return isNear ? findRoom(tx, capacities) : undefined
}

/** An open letter that has a dedupe key. */
interface Holder {
  id: string
  state: number
}

/** Existing letters: their number of occurrences by id, and the holders of dedupe keys. */
interface Existing {
  ids: Map<string, number>
  holders: Map<string, Holder>
}

const occurrencesOf = 'SELECT id, occurrences FROM @letters WHERE id = ANY($1::uuid[])'
const holdersOf = `SELECT k.n::int, h.id FROM unnest($1::int[], ${splitTexts('$2')}) WITH ORDINALITY AS k(queue, dedupe, n)
  CROSS JOIN LATERAL (SELECT l.id FROM @letters l
    WHERE l.queue = k.queue AND l.dedupe = decode(k.dedupe, 'hex') AND l.state NOT IN (2, 5) ORDER BY l.id LIMIT 1) AS h`
const lockHolders = `SELECT l.id, l.state, l.occurrences FROM @letters l
  WHERE l.id = ANY($1::uuid[]) AND l.state NOT IN (2, 5) ORDER BY l.id FOR UPDATE`

async function findExisting(tx: Transaction, candidates: readonly Candidate[]): Promise<Existing> {
  const ids = new Map<string, number>()
  const found = await tx.rows(occurrencesOf, [joinIds(candidates.map(({ letter }) => letter.id))])
  for (const [id, count] of found as [string, number][]) ids.set(id, count)
  const keyed = [...new Map(candidates.map((one) => [one.key, one])).values()].filter(
    ({ key }) => key !== undefined,
  )
  const holders = new Map<string, Holder>()
  if (keyed.length === 0) return { ids, holders }
  const holding = (await tx.rows(holdersOf, [
    joinNumbers(keyed, ({ letter }) => letter.queue),
    joinTexts(keyed, ({ letter }) => encodeValue('dedupe', letter.row[at.dedupe]!) as string),
  ])) as [number, string][]
  if (holding.length === 0) return { ids, holders }
  const rows = await tx.rows(lockHolders, [joinIds(holding.map(([, id]) => id))])
  const locked = new Map((rows as [string, number, number][]).map((row) => [row[0], row]))
  for (const [n, id] of holding) {
    const row = locked.get(id)
    if (!row) throw new StateChanged('the letter that holds a dedupe key was settled concurrently')
    holders.set(keyed[n - 1]!.key!, { id, state: row[1] })
    ids.set(id, row[2])
  }
  return { ids, holders }
}

interface Decided {
  results: AddResult[]
  fresh: Candidate[]
  /** Occurrences of letters, in order. */
  occurrences: Occurrence[]
}

function decide(
  candidates: readonly Candidate[],
  { ids, holders }: Existing,
  room: Room | undefined,
): Decided {
  const fresh: Candidate[] = []
  const occurrences: Occurrence[] = []
  const duplicate = (of: string, by: 'id' | 'dedupeKey'): AddResult => {
    return { kind: 'duplicate', of, by, occurrences: ids.get(of) ?? 1 }
  }
  const one = (candidate: Candidate): AddResult => {
    const { letter, key, capacity } = candidate
    if (ids.has(letter.id)) return duplicate(letter.id, 'id')
    const holder = key === undefined ? undefined : holders.get(key)
    if (holder) {
      ids.set(holder.id, (ids.get(holder.id) ?? 1) + 1)
      occurrences.push(occurrenceOf(candidate, holder))
      return duplicate(holder.id, 'dedupeKey')
    }
    const evicted = capacity && room ? makeRoom(room, capacity) : 0
    if (evicted === undefined) return { kind: 'full' }
    fresh.push(candidate)
    ids.set(letter.id, letter.row[at.occurrences] as number)
    const state = letter.row[at.state] as number
    if (key !== undefined && isOpenCode(state)) holders.set(key, { id: letter.id, state })
    return evicted > 0 ? { kind: 'added', evicted } : { kind: 'added' }
  }
  return { results: candidates.map(one), fresh, occurrences }
}

const isOpenCode = (state: number): boolean => state !== resolved && state !== archived

/** The same failure was captured again: see `occur` in `letter/moves.ts`. */
function occurrenceOf({ letter, failure, actor }: Candidate, holder: Holder): Occurrence {
  const { row } = letter
  const state = states[holder.state]!
  const atMs = row[at.captured_at] as number
  const entry = encodeEntry({
    at: toTimestamp(atMs),
    actor,
    action: 'occur',
    from: state,
    to: state,
    failure,
  })
  return {
    id: holder.id,
    entry,
    category: row[at.category] as number,
    severity: row[at.severity] as number,
    recoverability: row[at.recoverability] as number,
    fingerprint: row[at.fingerprint] as string,
    failure: (row[at.failure] as string | null) ?? firstFailureIn(letter),
    updated_at: atMs,
  }
}

/** A row without a failure has its first one. */
function firstFailureIn({ origin }: NewLetter): string {
  const { firstFailure } = JSON.parse(origin) as Pick<DeadLetter, 'firstFailure'>
  return JSON.stringify(firstFailure)
}

/** Reports letters whose id exists already, which only the insertion could detect. */
async function reportDuplicates(
  tx: Transaction,
  candidates: readonly Candidate[],
  results: AddResult[],
  inserted: ReadonlySet<string>,
): Promise<void> {
  const known = candidates.flatMap(({ letter }) => (inserted.has(letter.id) ? [] : [letter.id]))
  const rows = (await tx.rows(occurrencesOf, [joinIds(known)])) as [string, number][]
  const found = new Map(rows)
  for (const [n, { letter }] of candidates.entries()) {
    if (inserted.has(letter.id)) continue
    const occurrences = found.get(letter.id)
    if (occurrences === undefined) throw new StateChanged('a letter was removed concurrently')
    results[n] = { kind: 'duplicate', of: letter.id, by: 'id', occurrences }
  }
}
