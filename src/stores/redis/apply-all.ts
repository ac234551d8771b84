import type { BulkMoves } from '../../letter/moves.ts'
import { toText, type Argument } from '../../backends/redis/connection.ts'
import type { ApplyResult, LetterVersion } from '../../store.ts'
import { encodeChange } from '../rows/change.ts'
import { stateCode, states } from '../rows/codes.ts'
import { changeArguments, decodeApplied } from './apply-changes.ts'
import { sendInChunks } from './chunks.ts'
import type { StoreContext } from './context.ts'
import { scripts } from './scripts.ts'

/** Changes distinct letters where they are, without reading them here. */
export function applyToAll(
  context: StoreContext,
  letters: readonly LetterVersion[],
  moves: BulkMoves,
): Promise<ApplyResult[]> {
  const encoded = encodeMoves(moves)
  return sendInChunks(letters, async (some) => {
    const versions = some.map(({ version }) => version).join(' ')
    const ids = some.map(({ id }) => id)
    const [results] = await context.runMove(scripts.applyAll, [versions, ...ids, ...encoded])
    return Array.from(toText(results), decodeApplied)
  })
}

/** The change for each state, with the code of the state before it. Leased letters stay. */
function encodeMoves(moves: BulkMoves): Argument[] {
  return states.flatMap((state) => {
    const move = state === 'retrying' ? undefined : moves[state]
    if (!move) return []
    const change = encodeChange({ id: '', guard: { version: 0 }, ...move })
    return [String(stateCode(state)), ...changeArguments(change)]
  })
}
