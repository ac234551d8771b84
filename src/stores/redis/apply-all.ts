import { searchOf, type Place } from '../search.ts'
import type { State } from '../../letter/letter.ts'
import { toText, type Argument } from '../../backends/redis/connection.ts'
import type { BulkRequest, BulkResult, Store } from '../../store.ts'
import { applyByPage } from '../apply-all.ts'
import { encodeChange } from '../rows/change.ts'
import { stateCode, states } from '../rows/codes.ts'
import { needsReading } from '../rows/source-key.ts'
import { cellCodes } from '../rows/tally.ts'
import { changeArguments } from './apply-changes.ts'
import type { StoreContext } from './context.ts'
import { groupKeys, planSearch } from './plan-search.ts'
import { scripts } from './scripts.ts'
import { scanArguments } from './search.ts'

/** Letters that one script changes, so that no script blocks the server for long. */
const maxStepLetters = 500

/**
 * Changes letters where they are, without reading them here. Searches that one script cannot make
 * go through pages: text and metadata, ids, and more queues than one script reads.
 */
export async function applyToAll(
  context: StoreContext,
  store: Pick<Store, 'find' | 'apply'>,
  request: BulkRequest,
): Promise<BulkResult> {
  const { filter } = searchOf({ ...request.filter, order: 'oldest' })
  const movable = statesToMove(request)
  if (movable.length === 0 || request.limit <= 0) return { written: 0 }
  const plan = await planSearch(context, { ...filter, state: movable }, 'oldest')
  const [stage] = plan.stages
  const isByIds = stage?.ranges[0]?.index === 'ids'
  if (!stage || isByIds || needsReading(filter)) return applyByPage(store, request)
  const [keys, ...more] = groupKeys(plan, stage)
  if (!keys) return { written: 0 }
  if (more.length > 0) return applyByPage(store, request)
  const moves = encodeMoves(request, movable)
  let written = 0
  let after: Place | undefined = placeOf(request.after)
  for (;;) {
    const wanted = Math.min(maxStepLetters, request.limit - written)
    const spec = JSON.stringify(scanArguments(plan, keys, { stage, after, wanted }))
    const reply = await context.runMove(scripts.applyAll, [spec, ...moves])
    const [isMore, last, lost, changed] = reply as [number, Buffer | null, number, number]
    context.lostWrites.addStrays(lost)
    written += changed
    if (isMore === 0 || last === null) return { written }
    after = placeOf(toText(last))
    if (written >= request.limit) return { written, next: after!.id }
  }
}

function placeOf(id: string | undefined): Place | undefined {
  return id === undefined ? undefined : { key: id, id }
}

/** The states of the filter that have a move. Leased letters stay. */
function statesToMove({ filter, moves }: BulkRequest): State[] {
  const codes = cellCodes(filter).states ?? [...states.keys()]
  return codes.map((code) => states[code]!).filter((state) => state !== 'retrying' && moves[state])
}

/** The change for each state, with the code of the state before it. */
function encodeMoves({ moves }: BulkRequest, movable: readonly State[]): Argument[] {
  return movable.flatMap((state) => [
    String(stateCode(state)),
    ...changeArguments(encodeChange({ id: '', guard: { version: 0 }, ...moves[state]! })),
  ])
}
