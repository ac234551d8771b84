import type { LetterFilter } from '../../letter/query.ts'
import { actionCode, retrying } from '../rows/codes.ts'
import type { StoreContext } from './context.ts'
import { scan } from './find.ts'
import { entriesOf } from './letters.ts'
import { eraseLetter } from './move.ts'

const removed = actionCode('remove')

/**
 * Number of letters that one transaction removes, so that a large removal does not block other
 * calls.
 */
const lettersPerStep = 250

/** Removes matching letters in steps, each in its own transaction. Leased letters stay. */
export function* remove(context: StoreContext, filter: LetterFilter): Generator<undefined, number> {
  const order = filter.settledBefore === undefined ? 'oldest' : 'settled'
  let gone = 0
  for (const { found, next } of scan(context, { filter, order }, lettersPerStep)) {
    const seqs = found.map(({ item }) => item)
    for (const entry of entriesOf(context, seqs))
      if (entry.state !== retrying) {
        eraseLetter(context, entry, removed)
        gone += 1
      }
    if (next) yield
  }
  return gone
}
