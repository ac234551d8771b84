import { unpackStored } from '../rows/stored.ts'
import { isEdited } from '../rows/rest.ts'
import { rowOf } from '../rows/row.ts'
import { isActiveCode } from '../rows/codes.ts'
import type { PackedLetter } from '../rows/form.ts'
import type { KeepResult, StoredLetter } from '../../store.ts'
import { candidateOf, resolveDependencies, type Candidate } from './add.ts'
import { keepEdits, lockLetters } from './apply.ts'
import type { StoreContext } from './context.ts'
import { erase } from './erase.ts'
import { writeRelated, insertLetters, isResolvedRow } from './insert.ts'
import type { Transaction } from '../../backends/postgres/transaction.ts'
import { laneLock, lock, lockLanes, lockMissing } from './locks.ts'
import { readLetters } from './read-letters.ts'
import { entryOf, type Entry } from './rows.ts'
import { fromText, toText } from './text.ts'
import { StateChanged } from '../../backends/postgres/errors.ts'
import { findDependents, lockForWaiting } from './waits.ts'
import { WriteSet } from './write-set.ts'

/** A letter from another store: as captured, and the bytes of the edited payload. */
export interface Incoming {
  packed: PackedLetter
  edit: Uint8Array | null
}

/** Stores letters with distinct ids unchanged, in one transaction. */
export async function keep(
  context: StoreContext,
  letters: readonly Incoming[],
): Promise<KeepResult[]> {
  const numbers = await context.queues.numbers(letters.map(({ packed }) => packed[1]))
  const candidates = letters.map(({ packed, edit }) => {
    const one = candidateOf(packed, numbers.get(packed[1])!, rowOf(packed[0]), undefined)
    return edit ? { ...one, size: edit.byteLength } : one
  })
  await context.queues.ranges(
    candidates.map(({ queue, row }) => ({ queue, priority: row.priority })),
  )
  const edits = new Map(
    letters.flatMap(({ edit }, at) => (edit ? [[candidates[at]!.row.id, edit]] : [])),
  )
  const { results, shouldWake } = await context.withSlot((slot) =>
    context.connection.transaction('cold', (tx) => keepIn(context, tx, candidates, edits, slot)),
  )
  if (await shouldWake) context.wake()
  return results
}

async function keepIn(
  context: StoreContext,
  tx: Transaction,
  candidates: readonly Candidate[],
  edits: ReadonlyMap<string, Uint8Array>,
  slot: number,
): Promise<{ results: KeepResult[]; shouldWake: Promise<boolean> }> {
  const ids = candidates.map(({ row }) => toText(row.id))
  const unmet = candidates.flatMap((one) => one.unmet.map(toText))
  if (unmet.length > 0) await lockForWaiting(tx, context.connection, unmet)
  if (candidates.some(({ row }) => isResolvedRow(row)))
    void lockMissing(tx, context.connection, 'resolve')
  lockLanes(tx, context.connection, ids)
  const lanes = candidates.flatMap(({ queue, row }) =>
    row.lane !== null && isActiveCode(row.state) ? [laneLock(queue, toText(row.lane))] : [],
  )
  await lock(tx, context.connection, lanes)
  const there = new Map<string, Entry>()
  for (const cells of await tx.rows(lockLetters, [ids])) {
    const entry = entryOf(cells)
    there.set(entry.row.id, entry)
  }
  const gives = ({ row }: Candidate): boolean =>
    (there.get(row.id)?.row.version ?? -1) < row.version
  const fresh = candidates.filter(gives).map((one) => ({ ...one }))
  const writes = new WriteSet()
  erase(
    tx,
    writes,
    fresh.flatMap(({ row }) => there.get(row.id) ?? []),
  )
  await resolveDependencies(tx, fresh)
  if ((await insertLetters(tx, fresh)).size < fresh.length)
    throw new StateChanged('a letter came in between')
  writeRelated(tx, writes, fresh)
  keepEdits(
    tx,
    new Map(fresh.flatMap(({ row: { id } }) => (edits.has(id) ? [[id, edits.get(id)!]] : []))),
  )
  const waiting = await findDependents(tx, writes.resolved)
  const { shouldWake } = await writes.flush(context, tx, slot, waiting)
  return { results: candidates.map((one) => (gives(one) ? 'written' : 'conflict')), shouldWake }
}

/** Reads letters with everything that `keep` needs. */
export async function stored(
  context: StoreContext,
  ids: readonly string[],
): Promise<StoredLetter[]> {
  const whole = await readLetters(context, ids, 'whole')
  const rows = [...whole.values()].map(([values]) => rowOf(values))
  const edited = rows.filter(isEdited).map(({ id }) => id)
  const captured = await readLetters(context, edited, 'captured')
  const waits = new Map<string, string[]>()
  const waiting = rows.filter(({ dependent }) => dependent === 1).map(({ id }) => toText(id))
  if (waiting.length > 0) {
    const sql = 'SELECT letter, id FROM @deps WHERE letter = ANY($1::text[])'
    for (const [letter, id] of (await context.connection.read(sql, [waiting])) as [
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
