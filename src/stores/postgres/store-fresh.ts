import type { Transaction } from '../../backends/postgres/transaction.ts'
import { archived, isActiveCode, pending, resolved, wait } from '../rows/codes.ts'
import { at } from '../rows/columns.ts'
import { isLetterId } from '../../letter/letter-id.ts'
import type { StoreContext } from './context.ts'
import { insertLetters, writeTags, type NewLetter } from './insert.ts'
import { laneLock } from './locks.ts'
import { toText } from './text.ts'
import {
  addDependencies,
  expectDependencies,
  releaseDependents,
  takeExpectedIds,
  type Lane,
} from './waits.ts'

/** A letter to store with the letters that it depends on. */
export interface Fresh {
  letter: NewLetter
  dependsOn: readonly string[]
}

/** The lanes in which these letters are active. */
export function lanesOf(all: readonly Pick<Fresh, 'letter'>[]): Lane[] {
  return all.flatMap(({ letter: { row, queue } }) => {
    const lane = row[at.lane] as string | null
    return lane !== null && isActiveCode(row[at.state] as number)
      ? [{ queue, lane: toText(lane) }]
      : []
  })
}

/** The names of the locks of `lanesOf`. */
export function laneLocksOf(all: readonly Pick<Fresh, 'letter'>[]): string[] {
  return lanesOf(all).map(({ queue, lane }) => laneLock(queue, lane))
}

interface StoredFresh {
  inserted: Set<string>
  /** New letters that others of the batch rely on. */
  coming: ReadonlySet<string>
  lanes: Lane[]
  dueTimes: (number | null)[]
}

/**
 * Stores new letters with tags and dependencies, in a transaction that holds the locks of their
 * lanes. Letters in lanes are held until the lanes are settled.
 */
export async function storeFresh(
  context: StoreContext,
  tx: Transaction,
  fresh: readonly Fresh[],
  slot: number,
  mode: 'add' | 'keep',
): Promise<StoredFresh> {
  const letters = fresh.map(({ letter }) => letter)
  const { unmet, coming } = await resolveDependencies(tx, fresh)
  const expected = letters.length > 0 ? await takeExpectedIds(tx, letters) : new Set<string>()
  for (const [n, letter] of letters.entries()) {
    if (expected.has(letter.id)) letter.depended = true
    const isHeld = letter.row[at.lane] !== null || unmet[n]!.length > 0
    letter.row[at.unmet] = unmet[n]!.length
    if (isHeld && letter.row[at.state] === pending) letter.row[at.wait] = wait.held
  }
  const inserted = await insertLetters(tx, letters, slot, mode)
  const kept = letters.filter(({ id }) => inserted.has(id))
  writeTags(tx, kept)
  addDependencies(
    tx,
    letters.flatMap((letter, n) => (inserted.has(letter.id) ? [{ letter, unmet: unmet[n]! }] : [])),
  )
  const done = kept.filter((letter) => letter.depended && isDone(letter)).map(({ id }) => id)
  const { lanes, dueTimes } = await releaseDependents(tx, context.connection, done)
  const own = kept.map(({ row }) =>
    row[at.wait] === wait.ready ? (row[at.due_at] as number) : null,
  )
  return { inserted, coming, lanes, dueTimes: [...dueTimes, ...own] }
}

/** Resolved, or archived from that state. */
function isDone({ row }: NewLetter): boolean {
  const state = row[at.state]
  return state === resolved || (state === archived && row[at.archived_from] === resolved)
}

/**
 * The dependencies of each letter that are not resolved, neither in the database nor among the new
 * letters. A new letter whose id exists already is not stored and does not count.
 */
async function resolveDependencies(
  tx: Transaction,
  fresh: readonly Fresh[],
): Promise<{ unmet: string[][]; coming: ReadonlySet<string> }> {
  const asked = new Set(fresh.flatMap(({ dependsOn }) => dependsOn))
  if (asked.size === 0) return { unmet: fresh.map(() => []), coming: asked }
  const found = await expectDependencies(tx, [...asked].filter(isLetterId).toSorted())
  const met = new Set([...found].flatMap(([id, done]) => (done ? [id] : [])))
  const coming = fresh.filter(({ letter }) => asked.has(letter.id) && !found.has(letter.id))
  for (const { letter } of coming) if (isDone(letter)) met.add(letter.id)
  const unmet = fresh.map(({ dependsOn }) => dependsOn.filter((id) => !met.has(id)))
  return { unmet, coming: new Set(coming.map(({ letter }) => letter.id)) }
}
