import { states } from '../../letter/letter.ts'
import type { LetterFilter } from '../../letter/query.ts'
import type { Store } from '../../store.ts'

/** Letters of every state. */
export const everything: LetterFilter = { state: [...states] }

const pageLetters = 250
const batchBytes = 4 * 2 ** 20

/** A page of ids in batches that fit in memory, and the cursor of the next page. */
export interface IdPage {
  batches: string[][]
  cursor?: string
}

/** Reads the ids of letters of a store, oldest first, from a cursor on. Default: all letters. */
export async function* readIdPages(
  store: Store,
  from?: string,
  filter: LetterFilter = everything,
): AsyncGenerator<IdPage> {
  let cursor = from
  do {
    const page = await store.find({
      ...filter,
      order: 'oldest',
      limit: pageLetters,
      ...(cursor === undefined ? {} : { cursor }),
    })
    const sizes = page.items.map(({ id, payload }) => ({ id, size: payload.size }))
    cursor = page.cursor
    yield {
      batches: splitIntoBatches(sizes, batchBytes),
      ...(cursor === undefined ? {} : { cursor }),
    }
  } while (cursor !== undefined)
}

/** Splits ids into batches of at most `maxBytes`, in order. A larger letter is its own batch. */
export function splitIntoBatches(
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
