import type { Change } from '../../letter/moves.ts'
import type { ApplyResult } from '../../store.ts'
import { toText, type Argument } from '../../backends/redis/connection.ts'
import { encodeChange, type RowChange } from '../rows/change.ts'
import { costOf, createBatcher, sendInChunks } from './chunks.ts'
import { leaseGuard } from './claim-letters.ts'
import type { StoreContext } from './context.ts'
import { encodeValues } from './encode.ts'
import { scripts } from './scripts.ts'

export type Apply = (changes: readonly Change[]) => Promise<ApplyResult[]>

/** A change for the script `apply`: the id of its letter and other arguments. */
interface ApplyRequest {
  id: string
  args: Argument[]
}

export function createApplier(context: StoreContext): Apply {
  const applying = createBatcher<ApplyRequest, ApplyResult>(async (requests) => {
    const args: Argument[] = [String(requests.length)]
    for (const { id } of requests) args.push(id)
    for (const request of requests) args.push(...request.args)
    const [results] = await context.runMove(scripts.apply, args)
    return Array.from(toText(results), decodeApplied)
  })
  return (changes) =>
    sendInChunks(
      changes,
      (some, cost) => applying.call(some.map(encodeGuarded), cost),
      ({ set }) => costOf(set.payload?.bytes.length ?? 0),
    )
}

function encodeGuarded(change: Change): ApplyRequest {
  const { id, guard } = change
  const guarded = 'version' in guard ? `v${guard.version}` : leaseGuard(guard)
  return { id, args: [guarded, ...changeArguments(encodeChange(change))] }
}

/** The arguments of a change without its id and guard. */
export function changeArguments(change: RowChange): Argument[] {
  return [change.entry, ...encodeValues(change)]
}

export function decodeApplied(letter: string): ApplyResult {
  return letter === 'w' ? 'written' : letter === 'c' ? 'conflict' : 'missing'
}
