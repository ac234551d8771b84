import type { Clock } from '../../clock/clock.ts'
import type { DeadLetter } from '../../letter/letter.ts'
import {
  keptOf,
  lightOf,
  summaryFields,
  wholeFields,
  type Kept,
  type LetterDocument,
  type Light,
} from './document.ts'
import type { Mark, Shelf, Stamped } from './shelf.ts'
import type { Totals } from './totals.ts'

/** The letters that have or had a dedupeKey and may be open. The one that is, and is the oldest, holds it. */
export interface KeyDocument extends Stamped {
  kind: 'key'
  entries: Entry[]
}

/** A letter of a key. Whoever comes under the same id later has another birth. */
export interface Entry {
  id: string
  birth: string
}

/**
 * Who was given a lane last, and for which epoch. The lane is in use while that letter runs. Nobody gives it back: once
 * the letter has reached the epoch and runs no more, the lane is free.
 */
export interface LaneDocument extends Stamped {
  kind: 'lane'
  id: string
  epoch: number
}

/** What every verb works with. */
export interface Desk {
  letters: Shelf<LetterDocument>
  /** Who holds a dedupeKey, and who runs in a lane. */
  keys: Shelf<KeyDocument>
  lanes: Shelf<LaneDocument>
  totals: Totals
  clock: Clock
  /** Tells watchers that letters may have become due. */
  wake(): void
}

/** A letter and where its document stood when it was read. */
export interface Standing {
  kept: Kept
  mark: Mark
}

/** The letters that exist, as they stand this moment. Drafts are left out. */
export async function lettersNow(
  desk: Desk,
  ids: Iterable<string>,
): Promise<Map<string, Standing>> {
  const all = await withDrafts(desk, ids)
  for (const [id, { kept }] of all) if (kept.draftMs !== undefined) all.delete(id)
  return all
}

export async function withDrafts(
  desk: Desk,
  ids: Iterable<string>,
): Promise<Map<string, Standing>> {
  const found = await desk.letters.read(ids, wholeFields)
  const standing = new Map<string, Standing>()
  for (const [id, { mark, source }] of found) standing.set(id, { kept: keptOf(id, source), mark })
  return standing
}

/** The same without bytes and history, which are seldom needed to decide. Drafts are among them. */
export async function lightNow(
  desk: Desk,
  ids: Iterable<string>,
): Promise<Map<string, { kept: Light; mark: Mark }>> {
  const found = await desk.letters.read(ids, summaryFields, 500)
  return new Map(
    [...found].map(([id, { mark, source }]) => [id, { kept: lightOf(id, source), mark }]),
  )
}

/** Resolved, or put away after it was. */
export function isDone(letter: Pick<DeadLetter, 'state' | 'archivedFrom'>): boolean {
  return letter.state === 'resolved' || letter.archivedFrom === 'resolved'
}

/**
 * Items in rounds in which no two share a name, so that a round can be done at once. Those that do share one come in
 * the order given.
 */
export function inRounds<T>(items: readonly T[], namesOf: (item: T) => string[]): T[][] {
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

/** Calls one after another. One that fails does not stop the next. */
export function oneAtATime(): <R>(work: () => Promise<R>) => Promise<R> {
  let last: Promise<unknown> = Promise.resolve()
  return (work) => {
    const mine = last.then(work, work)
    last = mine
    return mine
  }
}
