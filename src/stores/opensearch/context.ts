import type { Clock } from '../../clock/clock.ts'
import {
  toRecord,
  toLightRecord,
  summaryFields,
  wholeFields,
  type LetterRecord,
  type LetterDocument,
  type LightRecord,
} from './document.ts'
import type { DocumentIndex, Revision, Stamped } from './document-index.ts'
import type { Totals } from './totals.ts'

/** The letters that have or had a dedupeKey and may be open. The oldest open one holds the key. */
export interface KeyDocument extends Stamped {
  kind: 'key'
  entries: KeyEntry[]
}

/** A letter of a key. A later letter with the same id has another birth. */
export interface KeyEntry {
  id: string
  birth: string
}

/**
 * The letter that took a lane last, and its epoch. The lane is in use while that letter runs. No
 * process releases a lane: once the letter has reached the epoch and no longer runs, the lane is
 * free.
 */
export interface LaneDocument extends Stamped {
  kind: 'lane'
  id: string
  epoch: number
}

/** Shared by all operations of the store. */
export interface StoreContext {
  letters: DocumentIndex<LetterDocument>
  keys: DocumentIndex<KeyDocument>
  lanes: DocumentIndex<LaneDocument>
  totals: Totals
  clock: Clock
  /** Notifies watchers that letters may have become due. */
  wake(): void
}

/** A letter, and the revision of its document when it was read. */
export interface ReadLetter {
  record: LetterRecord
  revision: Revision
}

/** Reads existing letters in real time, without drafts. */
export async function readLetters(
  context: StoreContext,
  ids: Iterable<string>,
): Promise<Map<string, ReadLetter>> {
  const letters = await readWithDrafts(context, ids)
  for (const [id, { record }] of letters) if (record.draftMs !== undefined) letters.delete(id)
  return letters
}

export async function readWithDrafts(
  context: StoreContext,
  ids: Iterable<string>,
): Promise<Map<string, ReadLetter>> {
  const documents = await context.letters.read(ids, wholeFields)
  return new Map(
    [...documents].map(([id, { revision, source }]) => [
      id,
      { record: toRecord(id, source), revision },
    ]),
  )
}

/** Reads letters without bytes and history, which are seldom needed to decide. Includes drafts. */
export async function readLightLetters(
  context: StoreContext,
  ids: Iterable<string>,
): Promise<Map<string, { record: LightRecord; revision: Revision }>> {
  const documents = await context.letters.read(ids, summaryFields, 500)
  return new Map(
    [...documents].map(([id, { revision, source }]) => [
      id,
      { record: toLightRecord(id, source), revision },
    ]),
  )
}

/**
 * Splits items into rounds in which no two share a name, so that a round can run concurrently.
 * Items that share a name keep their order.
 */
export function splitIntoRounds<T>(items: readonly T[], namesOf: (item: T) => string[]): T[][] {
  const rounds: T[][] = []
  const nextRounds = new Map<string, number>()
  for (const item of items) {
    const names = namesOf(item)
    const round = Math.max(0, ...names.map((name) => nextRounds.get(name) ?? 0))
    for (const name of names) nextRounds.set(name, round + 1)
    ;(rounds[round] ??= []).push(item)
  }
  return rounds
}

/** Returns a function that runs calls one after another. A failure does not stop the next call. */
export function createSerializer(): <R>(work: () => Promise<R>) => Promise<R> {
  let last: Promise<unknown> = Promise.resolve()
  return (work) => {
    const result = last.then(work, work)
    last = result
    return result
  }
}
