import { isLetterId } from '../letter/letter-id.ts'
import type { BulkMoves, Change } from '../letter/moves.ts'
import { maxLimit } from '../letter/query.ts'
import type { ApplyResult, LetterVersion, Store } from '../store.ts'

/** `applyAll` of a store without a statement for it: reads the letters and applies changes. */
export function applyEach(
  store: Pick<Store, 'find' | 'apply'>,
  letters: readonly LetterVersion[],
  moves: BulkMoves,
): Promise<ApplyResult[]> {
  return applyToDistinct(letters, async (distinct) => {
    const results: ApplyResult[] = []
    for (let start = 0; start < distinct.length; start += maxLimit)
      results.push(...(await applySome(store, distinct.slice(start, start + maxLimit), moves)))
    return results
  })
}

async function applySome(
  store: Pick<Store, 'find' | 'apply'>,
  letters: readonly LetterVersion[],
  moves: BulkMoves,
): Promise<ApplyResult[]> {
  const ids = letters.map(({ id }) => id)
  const { items } = await store.find({ ids, limit: ids.length })
  const found = new Map(items.map((letter) => [letter.id, letter]))
  const results = letters.map(({ id }): ApplyResult => (found.has(id) ? 'conflict' : 'missing'))
  const changes: Change[] = []
  const positions: number[] = []
  for (const [position, { id, version }] of letters.entries()) {
    const letter = found.get(id)
    if (letter?.version !== version || letter.state === 'retrying') continue
    const move = moves[letter.state]
    if (!move) continue
    changes.push({ id, guard: { version }, ...move })
    positions.push(position)
  }
  for (const [n, result] of (await store.apply(changes)).entries()) results[positions[n]!] = result
  return results
}

/**
 * Calls `apply` with the first entry of each letter. Further entries of a letter are conflicts,
 * whatever their version.
 */
export async function applyToDistinct(
  letters: readonly LetterVersion[],
  apply: (distinct: readonly LetterVersion[]) => Promise<ApplyResult[]>,
): Promise<ApplyResult[]> {
  const firstOf = new Map<string, number>()
  for (const [n, { id }] of letters.entries()) if (!firstOf.has(id)) firstOf.set(id, n)
  if (firstOf.size === letters.length) return apply(letters)
  const distinct = [...firstOf.values()].map((n) => letters[n]!)
  const results = await apply(distinct)
  const resultOf = new Map(distinct.map(({ id }, n) => [id, results[n]!]))
  return letters.map(({ id }, n) => {
    const result = resultOf.get(id)!
    return n === firstOf.get(id) || result === 'missing' ? result : 'conflict'
  })
}

/** Whether all ids have the form that statements for many letters need. */
export function haveLetterIds(letters: readonly LetterVersion[]): boolean {
  return letters.every(({ id }) => isLetterId(id))
}
