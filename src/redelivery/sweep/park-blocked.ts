import type { LetterSummary } from '../../letter/letter.ts'
import type { Store } from '../../store.ts'
import { parkLetters, sweepLimit, type Chore } from './chore.ts'
import { findDependencyCycles, isOrphan } from './dependency-cycles.ts'

/** Limits of the search for dependencies. A longer cycle is not detected. */
const maxDependencies = 2000
const maxQueries = 100

/**
 * Parks pending letters that can never run: a letter that they depend on was archived or removed
 * before it was resolved, or they form a dependency cycle. Each sweep checks the next page of
 * waiting letters and starts again after the last one.
 */
export function parkBlocked(): Chore {
  let cursor: string | undefined
  return async function parkBlocked(context) {
    const { store } = context
    const waiting = { state: 'pending', dependent: true, limit: sweepLimit } as const
    const page = await store.find(cursor ? { ...waiting, cursor } : waiting)
    const known = await loadDependencies(store, page.items)
    // A dependency may have been resolved and removed during the search, so the store is asked
    // again which of the letters still wait.
    const stillWaiting = async (letters: LetterSummary[]): Promise<LetterSummary[]> => {
      const ids = letters.map(({ id }) => id)
      return ids.length > 0 ? (await store.find({ ...waiting, ids })).items : []
    }
    const inCycle = findDependencyCycles(known)
    const cycles = await stillWaiting(page.items.filter(({ id }) => inCycle.has(id)))
    const orphans = await stillWaiting(page.items.filter((letter) => isOrphan(letter, known)))
    const reason = 'dependency-failed'
    const orphanNote = 'a letter that it depends on was archived or removed'
    const cycleNote = 'letters in a dependency cycle wait forever: resolve one of them'
    const first = await parkLetters(context, orphans, reason, orphanNote)
    const second = await parkLetters(context, cycles, reason, cycleNote)
    cursor = page.cursor
    return {
      parked: (first.parked ?? 0) + (second.parked ?? 0),
      hasMore: first.hasMore || second.hasMore || false,
    }
  }
}

/** The letters and all that they depend on, directly or indirectly, by id. */
async function loadDependencies(
  store: Store,
  letters: readonly LetterSummary[],
): Promise<Map<string, LetterSummary>> {
  const known = new Map(letters.map((letter) => [letter.id, letter]))
  const requested = new Set<string>()
  let next = letters
  for (let query = 0; next.length > 0 && query < maxQueries; query++) {
    if (requested.size >= maxDependencies) break
    const ids = next.flatMap(({ dependsOn = [] }) => dependsOn)
    const missing = new Set(ids.filter((id) => !known.has(id) && !requested.has(id)))
    for (const id of missing) requested.add(id)
    next = await loadSummaries(store, [...missing])
    for (const letter of next) known.set(letter.id, letter)
  }
  return known
}

/** Those of the letters that exist, without payloads. */
async function loadSummaries(store: Store, ids: readonly string[]): Promise<LetterSummary[]> {
  const letters: LetterSummary[] = []
  for (let start = 0; start < ids.length; start += sweepLimit) {
    const page = ids.slice(start, start + sweepLimit)
    letters.push(...(await store.find({ ids: page, limit: sweepLimit })).items)
  }
  return letters
}
