import { unpackStored } from '../rows/stored.ts'
import { isEdited } from '../rows/rest.ts'
import { rowOf } from '../rows/row.ts'
import { isActiveCode } from '../rows/codes.ts'
import type { PackedLetter } from '../rows/form.ts'
import type { KeepResult, StoredLetter } from '../../store.ts'
import { candidateOf, meetDependencies, type Candidate } from './add.ts'
import { keepEdits, lockLetters } from './apply.ts'
import type { Books } from './books.ts'
import { erase } from './erase.ts'
import { follow, insertLetters, isResolvedRow } from './insert.ts'
import type { Transaction } from '../../backends/postgres/transaction.ts'
import { laneLock, lock, lockLanes, lockMissing } from './locks.ts'
import { lettersById } from './reading.ts'
import { entryOf, type Entry } from './rows.ts'
import { fromText, toText } from './text.ts'
import { StateChanged } from '../../backends/postgres/errors.ts'
import { dependents, lockForWaiting } from './waits.ts'
import { Writing } from './writing.ts'

/** A letter from another store: as it was captured, and the bytes of the edit that replaced its payload. */
export interface Incoming {
  packed: PackedLetter
  edit: Uint8Array | null
}

/** Keeps letters with different ids as they are, in one transaction. */
export async function keep(books: Books, letters: readonly Incoming[]): Promise<KeepResult[]> {
  const numbers = await books.queues.numbers(letters.map(({ packed }) => packed[1]))
  const candidates = letters.map(({ packed, edit }) => {
    const one = candidateOf(packed, numbers.get(packed[1])!, rowOf(packed[0]), undefined)
    return edit ? { ...one, size: edit.byteLength } : one
  })
  await books.queues.ranges(candidates.map(({ queue, row }) => ({ queue, priority: row.priority })))
  const edits = new Map(
    letters.flatMap(({ edit }, at) => (edit ? [[candidates[at]!.row.id, edit]] : [])),
  )
  const { results, woken } = await books.withSlot((slot) =>
    books.connection.transaction('cold', (tx) => keepIn(books, tx, candidates, edits, slot)),
  )
  if (await woken) books.wake()
  return results
}

async function keepIn(
  books: Books,
  tx: Transaction,
  candidates: readonly Candidate[],
  edits: ReadonlyMap<string, Uint8Array>,
  slot: number,
): Promise<{ results: KeepResult[]; woken: Promise<boolean> }> {
  const ids = candidates.map(({ row }) => toText(row.id))
  const unmet = candidates.flatMap((one) => one.unmet.map(toText))
  if (unmet.length > 0) await lockForWaiting(tx, books.connection, unmet)
  if (candidates.some(({ row }) => isResolvedRow(row)))
    void lockMissing(tx, books.connection, 'resolve')
  lockLanes(tx, books.connection, ids)
  const lanes = candidates.flatMap(({ queue, row }) =>
    row.lane !== null && isActiveCode(row.state) ? [laneLock(queue, toText(row.lane))] : [],
  )
  await lock(tx, books.connection, lanes)
  const there = new Map<string, Entry>()
  for (const cells of await tx.rows(lockLetters, [ids])) {
    const entry = entryOf(cells)
    there.set(entry.row.id, entry)
  }
  const gives = ({ row }: Candidate): boolean =>
    (there.get(row.id)?.row.version ?? -1) < row.version
  const fresh = candidates.filter(gives).map((one) => ({ ...one }))
  const writing = new Writing()
  erase(
    tx,
    writing,
    fresh.flatMap(({ row }) => there.get(row.id) ?? []),
  )
  await meetDependencies(tx, fresh)
  if ((await insertLetters(tx, fresh)).size < fresh.length)
    throw new StateChanged('a letter came in between')
  follow(tx, writing, fresh)
  keepEdits(
    tx,
    new Map(fresh.flatMap(({ row: { id } }) => (edits.has(id) ? [[id, edits.get(id)!]] : []))),
  )
  const waiting = await dependents(tx, writing.resolved)
  const { woken } = await writing.flush(books, tx, slot, waiting)
  return { results: candidates.map((one) => (gives(one) ? 'written' : 'conflict')), woken }
}

/** Letters with all that is known of them. */
export async function stored(books: Books, ids: readonly string[]): Promise<StoredLetter[]> {
  const whole = await lettersById(books, ids, 'whole')
  const rows = [...whole.values()].map(([values]) => rowOf(values))
  const edited = rows.filter(isEdited).map(({ id }) => id)
  const captured = await lettersById(books, edited, 'captured')
  const waits = new Map<string, string[]>()
  const waiting = rows.filter(({ dependent }) => dependent === 1).map(({ id }) => toText(id))
  if (waiting.length > 0) {
    const sql = 'SELECT letter, id FROM @deps WHERE letter = ANY($1::text[])'
    for (const [letter, id] of (await books.connection.read(sql, [waiting])) as [
      string,
      string,
    ][]) {
      const key = fromText(letter)
      waits.set(key, [...(waits.get(key) ?? []), fromText(id)])
    }
  }
  return ids.flatMap((id) => {
    const kept = whole.get(id)
    return kept ? [unpackStored(kept, captured.get(id) ?? null, waits.get(id) ?? [])] : []
  })
}
