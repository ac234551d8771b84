import type { BulkMoves, Change } from '../letter/moves.ts'
import { maxLimit, writeCursor } from '../letter/query.ts'
import type { LetterSummary } from '../letter/letter.ts'
import type { BulkRequest, BulkResult, Store } from '../store.ts'

/** How often a letter that changed in between is read again. */
const maxReads = 5

/** `applyAll` of a store without a statement for it: reads a page and applies changes. */
export async function applyByPage(
  store: Pick<Store, 'find' | 'apply'>,
  { filter, moves, limit, after }: BulkRequest,
): Promise<BulkResult> {
  const order = 'oldest'
  const cursor =
    after === undefined ? {} : { cursor: writeCursor({ order, key: after, id: after }) }
  const query = { ...filter, order, limit: Math.min(limit, maxLimit), ...cursor } as const
  const page = await store.find(query)
  let left: LetterSummary[] = page.items
  let written = 0
  for (let reads = 0; left.length > 0 && reads < maxReads; reads++) {
    const changes = left.flatMap((letter) => changeOf(letter, moves))
    const results = await store.apply(changes)
    written += results.filter((result) => result === 'written').length
    const ids = changes.flatMap(({ id }, at) => (results[at] === 'conflict' ? id : []))
    left = ids.length === 0 ? [] : (await store.find({ ...filter, ids, limit: ids.length })).items
  }
  const last = page.items.at(-1)
  return page.cursor === undefined || !last ? { written } : { written, next: last.id }
}

function changeOf({ id, version, state }: LetterSummary, moves: BulkMoves): Change[] {
  const move = moves[state]
  return move ? [{ id, guard: { version }, ...move }] : []
}
