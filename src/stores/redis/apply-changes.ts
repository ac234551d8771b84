import type { Change } from '../../letter/moves.ts'
import type { ApplyResult } from '../../store.ts'
import { toText, type Argument, type Reply } from '../../backends/redis/connection.ts'
import { encodeChange, type RowChange } from '../rows/change.ts'
import { costOf, createBatcher, sendInChunks } from './chunks.ts'
import { leaseGuard } from './claim-letters.ts'
import type { StoreContext } from './context.ts'
import { encodeValues } from './encode.ts'
import { scripts } from './scripts.ts'

export type Apply = (changes: readonly Change[]) => Promise<ApplyResult[]>

export function createApplier(context: StoreContext): Apply {
  const applying = createBatcher<Argument[], ApplyResult>(async (requests) =>
    (await context.runMove(scripts.apply, requests.flat())).map(decodeApplied),
  )
  return (changes) =>
    sendInChunks(
      changes,
      (some, cost) => applying.call(some.map(encodeGuarded), cost),
      ({ set }) => costOf(set.payload?.bytes.length ?? 0),
    )
}

/** The arguments of a change for the script `apply`. */
function encodeGuarded(change: Change): Argument[] {
  const { id, guard } = change
  const guarded = 'version' in guard ? `v${guard.version}` : leaseGuard(guard)
  return [id, guarded, ...changeArguments(encodeChange(change))]
}

/** The arguments of a change without its id and guard. */
export function changeArguments({ set, entry, counts, bytes }: RowChange): Argument[] {
  return [entry, counts.join(' '), ...encodeValues(set, bytes)]
}

function decodeApplied(reply: Reply): ApplyResult {
  const letter = toText(reply)
  return letter === 'w' ? 'written' : letter === 'c' ? 'conflict' : 'missing'
}
