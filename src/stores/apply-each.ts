import { isLetterId } from '../letter/letter-id.ts'
import type { BulkMoves, Change } from '../letter/moves.ts'
import { maxLimit } from '../letter/query.ts'
import type { ApplyResult, LetterVersion, Store } from '../store.ts'

/** `applyAll` of a store without a statement for it: reads the letters and applies changes. */
export async function applyEach(
  store: Pick<Store, 'find' | 'apply'>,
  letters: readonly LetterVersion[],
  moves: BulkMoves,
): Promise<ApplyResult[]> {
  const results: ApplyResult[] = []
  for (let start = 0; start < letters.length; start += maxLimit)
    results.push(...(await applySome(store, letters.slice(start, start + maxLimit), moves)))
  return results
}

async function applySome(
  store: Pick<Store, 'find' | 'apply'>,
  letters: readonly LetterVersion[],
  moves: BulkMoves,
): Promise<ApplyResult[]> {
  const ids = [...new Set(letters.map(({ id }) => id))]
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

/** Whether one statement can change these letters: all ids are valid, and none is there twice. */
export function canApplyAtOnce(letters: readonly LetterVersion[]): boolean {
  const ids = new Set(letters.map(({ id }) => id))
  return ids.size === letters.length && letters.every(({ id }) => isLetterId(id))
}
