import type { KeepResult, KeptLetter, StoredLetter } from '../../store.ts'
import { StateChanged } from '../../backends/postgres/errors.ts'
import type { Transaction } from '../../backends/postgres/transaction.ts'
import { at } from '../rows/columns.ts'
import { decodeLetter, decodeOriginal, type LoadedLetter } from '../rows/decode.ts'
import { encodeLetter, factsOf } from '../rows/encode.ts'
import { writeEdits } from './apply.ts'
import { isAnyDue, type StoreContext } from './context.ts'
import { erase } from './erase.ts'
import { newLetterOf, type NewLetter } from './insert.ts'
import { lock, lockLanes } from './locks.ts'
import { readLetters } from './read-letters.ts'
import { laneLocksOf, lanesOf, storeFresh } from './store-fresh.ts'
import { fromText, joinIds } from './text.ts'
import { settleLanes } from './waits.ts'

/** A letter from another store: as captured, and the bytes of the edited payload. */
export interface Incoming {
  letter: NewLetter
  queueName: string
  dependsOn: readonly string[]
  edit: Uint8Array | null
  /** The version that it replaces. Undefined: any, or none. */
  replaces: number | undefined
}

export function incomingOf(given: KeptLetter): Incoming {
  const { letter, original, waitsFor = [], replaces } = given
  const stored = newLetterOf(encodeLetter(original ? { ...letter, payload: original } : letter))
  if (original) {
    stored.row[at.edit] = JSON.stringify(factsOf(letter.payload))
    stored.size = letter.payload.bytes.byteLength
  }
  return {
    letter: stored,
    queueName: letter.queue,
    dependsOn: letter.dependsOn ? [...new Set(waitsFor)] : [],
    edit: original ? letter.payload.bytes : null,
    replaces,
  }
}

/** Stores letters with distinct ids unchanged, in one transaction. */
export async function keep(
  context: StoreContext,
  wanted: readonly Incoming[],
): Promise<KeepResult[]> {
  const numbers = await context.queues.numbers(wanted.map(({ queueName }) => queueName))
  for (const { letter, queueName } of wanted) letter.queue = numbers.get(queueName)!
  await context.queues.ranges(
    wanted.map(({ letter }) => ({
      queue: letter.queue,
      priority: letter.row[at.priority] as number,
    })),
  )
  const { results, dueTimes } = await context.withSlot((slot) =>
    context.connection.transaction('cold', (tx) => keepIn(context, tx, wanted, slot)),
  )
  if (isAnyDue(context, dueTimes)) context.wake()
  return results
}

const lockVersions =
  'SELECT l.id, l.version FROM @letters l WHERE l.id = ANY($1::uuid[]) ORDER BY l.id FOR UPDATE'

async function keepIn(
  context: StoreContext,
  tx: Transaction,
  wanted: readonly Incoming[],
  slot: number,
): Promise<{ results: KeepResult[]; dueTimes: (number | null)[] }> {
  // Copies, since a transaction that starts over needs the letters as they were given.
  const all = wanted.map((one) => ({ ...one, letter: { ...one.letter, row: [...one.letter.row] } }))
  const ids = joinIds(all.map(({ letter }) => letter.id))
  lockLanes(tx, context.connection, ids)
  await lock(tx, context.connection, laneLocksOf(all))
  const versions = new Map((await tx.rows(lockVersions, [ids])) as [string, number][])
  const isNewer = ({ letter, replaces }: Incoming): boolean => {
    const version = versions.get(letter.id)
    if (replaces !== undefined && version !== replaces) return false
    return (version ?? -1) < (letter.row[at.version] as number)
  }
  const fresh = all.filter(isNewer)
  const replaced = fresh.map(({ letter }) => letter.id).filter((id) => versions.has(id))
  const lanes = await erase(tx, replaced, slot)
  const stored = await storeFresh(context, tx, fresh, slot, 'keep')
  if (stored.inserted.size < fresh.length) throw new StateChanged('a letter came in between')
  writeEdits(
    tx,
    fresh.flatMap(({ letter, edit }) => (edit ? [{ id: letter.id, bytes: edit }] : [])),
  )
  const heads = await settleLanes(tx, [...lanes, ...stored.lanes, ...lanesOf(fresh)])
  const results = all.map((one): KeepResult => (isNewer(one) ? 'written' : 'conflict'))
  return { results, dueTimes: [...stored.dueTimes, ...heads] }
}

/** Reads letters with everything that `keep` needs. */
export async function stored(
  context: StoreContext,
  ids: readonly string[],
): Promise<StoredLetter[]> {
  const whole = await readLetters(context, ids, 'whole')
  const edited = [...whole].filter(([, { row }]) => row[at.edit] !== null).map(([id]) => id)
  const captured = await readLetters(context, edited, 'captured')
  const waits = await readWaits(context, [...whole.keys()])
  return ids.flatMap((id) => {
    const loaded = whole.get(id)
    return loaded ? [storedOf(loaded, captured.get(id), waits.get(id))] : []
  })
}

async function readWaits(
  { connection }: StoreContext,
  ids: readonly string[],
): Promise<Map<string, string[]>> {
  const sql = 'SELECT letter, id FROM @deps WHERE letter = ANY($1::uuid[])'
  const waits = new Map<string, string[]>()
  if (ids.length === 0) return waits
  for (const [letter, id] of (await connection.read(sql, [ids])) as [string, string][])
    waits.set(letter, [...(waits.get(letter) ?? []), fromText(id)])
  return waits
}

function storedOf(
  loaded: LoadedLetter,
  captured: LoadedLetter | undefined,
  waitsFor: string[] | undefined,
): StoredLetter {
  const letter = decodeLetter(loaded)
  const waits = waitsFor ? { waitsFor } : {}
  if (!captured) return { letter, ...waits }
  const original = decodeOriginal(captured)
  if (original) return { letter, original, ...waits }
  const { corrupt, ...rest } = letter
  const why = 'the captured payload cannot be read'
  return { letter: { ...rest, corrupt: corrupt ? `${corrupt}; ${why}` : why }, ...waits }
}
