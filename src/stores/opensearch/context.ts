import type { Clock } from '../../clock/clock.ts'
import {
  toRecord,
  toLightRecord,
  summaryFields,
  wholeFields,
  type LetterRecord,
  type LetterDocument,
  type Light,
} from './document.ts'
import type { Mark, DocumentIndex, Stamped } from './document-index.ts'
import type { Totals } from './totals.ts'

/** The letters that have or had a dedupeKey and may be open. The oldest open one holds the key. */
export interface KeyDocument extends Stamped {
  kind: 'key'
  entries: Entry[]
}

/** A letter of a key. A later letter with the same id has another birth. */
export interface Entry {
  id: string
  birth: string
}

/**
 * The letter that got a lane last, and its epoch. The lane is in use while that letter runs. Nobody
 * releases it: once the letter has reached the epoch and no longer runs, the lane is free.
 */
export interface LaneDocument extends Stamped {
  kind: 'lane'
  id: string
  epoch: number
}

/** Shared by all operations of the store. */
export interface StoreContext {
  letters: DocumentIndex<LetterDocument>
  /** Who holds a dedupeKey, and who runs in a lane. */
  keys: DocumentIndex<KeyDocument>
  lanes: DocumentIndex<LaneDocument>
  totals: Totals
  clock: Clock
  /** Notifies watchers that letters may have become due. */
  wake(): void
}

/** A letter, and the version of its document when it was read. */
export interface ReadLetter {
  record: LetterRecord
  mark: Mark
}

/** Reads existing letters in real time, without drafts. */
export async function readLetters(
  context: StoreContext,
  ids: Iterable<string>,
): Promise<Map<string, ReadLetter>> {
  const all = await readWithDrafts(context, ids)
  for (const [id, { record }] of all) if (record.draftMs !== undefined) all.delete(id)
  return all
}

export async function readWithDrafts(
  context: StoreContext,
  ids: Iterable<string>,
): Promise<Map<string, ReadLetter>> {
  const found = await context.letters.read(ids, wholeFields)
  const standing = new Map<string, ReadLetter>()
  for (const [id, { mark, source }] of found)
    standing.set(id, { record: toRecord(id, source), mark })
  return standing
}

/** Reads letters without bytes and history, which are seldom needed to decide. Includes drafts. */
export async function readLightLetters(
  context: StoreContext,
  ids: Iterable<string>,
): Promise<Map<string, { record: Light; mark: Mark }>> {
  const found = await context.letters.read(ids, summaryFields, 500)
  return new Map(
    [...found].map(([id, { mark, source }]) => [id, { record: toLightRecord(id, source), mark }]),
  )
}

/**
 * Splits items into rounds in which no two share a name, so that a round can run concurrently.
 * Items that share a name keep their order.
 */
export function splitIntoRounds<T>(items: readonly T[], namesOf: (item: T) => string[]): T[][] {
  const rounds: T[][] = []
  const next = new Map<string, number>()
  for (const item of items) {
    const names = namesOf(item)
    const at = Math.max(0, ...names.map((name) => next.get(name) ?? 0))
    for (const name of names) next.set(name, at + 1)
    ;(rounds[at] ??= []).push(item)
  }
  return rounds
}

/** Returns a function that runs calls one after another. A failure does not stop the next call. */
export function oneAtATime(): <R>(work: () => Promise<R>) => Promise<R> {
  let last: Promise<unknown> = Promise.resolve()
  return (work) => {
    const mine = last.then(work, work)
    last = mine
    return mine
  }
}
