import { states } from '../../letter/letter.ts'
import type { LetterFilter } from '../../letter/query.ts'
import type { Store } from '../../store.ts'

/** Letters of every state. */
export const everything: LetterFilter = { state: [...states] }

const pageLetters = 250
const batchBytes = 4 * 2 ** 20

/** A page of ids in bunches that fit in memory, and the cursor that leads on from the page. */
export interface IdPage {
  batches: string[][]
  cursor?: string
}

/** All letters of a store by id, oldest first, from a cursor on. */
export async function* idPages(store: Store, from?: string): AsyncGenerator<IdPage> {
  let cursor = from
  do {
    const page = await store.find({
      ...everything,
      order: 'oldest',
      limit: pageLetters,
      ...(cursor === undefined ? {} : { cursor }),
    })
    const sizes = page.items.map(({ id, payload }) => ({ id, size: payload.size }))
    cursor = page.cursor
    yield { batches: inBatches(sizes, batchBytes), ...(cursor === undefined ? {} : { cursor }) }
  } while (cursor !== undefined)
}

/** Ids in order, in bunches of no more bytes than so many; a larger one stands alone. */
export function inBatches(
  letters: readonly { id: string; size: number }[],
  maxBytes: number,
): string[][] {
  const batches: string[][] = []
  let bytes = Infinity
  for (const { id, size } of letters) {
    bytes += size
    if (bytes > maxBytes) {
      batches.push([])
      bytes = size
    }
    batches.at(-1)!.push(id)
  }
  return batches
}
