import type { LetterFilter } from '../../letter/query.ts'
import type { StoreContext } from './context.ts'
import { actionCode, retrying } from '../rows/codes.ts'
import { searchStride } from './find.ts'
import type { Place } from '../search.ts'
import { entryBySeq } from './reading.ts'
import { erase } from './writing.ts'

const removed = actionCode('remove')

/** Letters that go in one transaction, so that a large removal does not keep others waiting. */
const strideLetters = 250

/** Removes what matches, in bounded steps, each its own transaction. What is leased stays. */
export function* remove(context: StoreContext, filter: LetterFilter): Generator<undefined, number> {
  const order = filter.settledBefore === undefined ? 'oldest' : 'settled'
  let gone = 0
  let after: Place | undefined
  for (;;) {
    const stride = searchStride(context, {
      filter,
      order,
      limit: strideLetters,
      whole: false,
      ...(after ? { after } : {}),
    })
    for (const { seq } of stride.spots) {
      const entry = entryBySeq(context, seq)
      if (!entry || entry.row.state === retrying) continue
      erase(context, entry, removed)
      gone += 1
    }
    if (!stride.next) return gone
    after = stride.next
    yield
  }
}
