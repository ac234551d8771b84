import type { LetterFilter } from '../../letter/query.ts'
import type { StoreContext } from './context.ts'
import { actionCode, retrying } from '../rows/codes.ts'
import { scanStep } from './find.ts'
import type { Place } from '../search.ts'
import { entryBySeq } from './reading.ts'
import { erase } from './writing.ts'

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
  let after: Place | undefined
  for (;;) {
    const step = scanStep(context, {
      filter,
      order,
      limit: lettersPerStep,
      whole: false,
      ...(after ? { after } : {}),
    })
    for (const { seq } of step.entries) {
      const entry = entryBySeq(context, seq)
      if (!entry || entry.row.state === retrying) continue
      erase(context, entry, removed)
      gone += 1
    }
    if (!step.next) return gone
    after = step.next
    yield
  }
}
