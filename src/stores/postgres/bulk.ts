import { RedriveError } from '../../errors.ts'
import { states as allStates, type State } from '../../letter/letter.ts'
import type { BulkMoves, Change } from '../../letter/moves.ts'
import type { LetterFilter } from '../../letter/query.ts'
import type { BulkRequest, BulkResult, Store } from '../../store.ts'
import { applyByPage } from '../apply-all.ts'
import { encodeChange, type RowChange } from '../rows/change.ts'
import { states } from '../rows/codes.ts'
import type { Column } from '../rows/columns.ts'
import { isLetterId } from '../rows/encode.ts'
import { needsReading } from '../rows/source-key.ts'
import { listed } from '../rows/tally.ts'
import { searchOf } from '../search.ts'
import { isAnyDue, type StoreContext } from './context.ts'
import { conditionOf } from './filter.ts'
import { planQuery, scanIds, type LetterRef, type Query } from './find.ts'
import { encodeValue, typeOf } from './rows.ts'
import { joinIds } from './text.ts'
import { updateStatement } from './update.ts'

/** Letters changed by one statement, so that it does not block others for long. */
const stepLetters = 1000

/** Changes the letters that need more than one statement. */
type LetterStore = Pick<Store, 'find' | 'apply'>

/**
 * Makes the same move on many letters. Each step reads ids, and changes the letters of each state.
 */
export async function applyAll(
  store: LetterStore,
  context: StoreContext,
  { filter: wanted, moves, limit, after }: BulkRequest,
): Promise<BulkResult> {
  const { filter } = searchOf({ ...wanted, order: 'oldest' })
  if (after !== undefined && !isLetterId(after))
    throw new RedriveError(
      'INVALID_INPUT',
      `after must be the id of a letter, got ${JSON.stringify(after)}`,
    )
  const movable = { ...filter, state: movableStates(filter, moves) }
  const query = await planQuery(context, movable, 'oldest')
  const from = after === undefined ? undefined : { key: after, id: after }
  let written = 0
  let seen = 0
  let last: string | undefined
  for await (const found of scanIds(context, query, Math.min(stepLetters, limit + 1), from)) {
    const some = found.slice(0, limit - seen)
    written += await moveSome(store, context, query, moves, some)
    seen += some.length
    last = some.at(-1)?.id ?? last
    if (some.length < found.length && last !== undefined) return { written, next: last }
  }
  return { written }
}

/** The states that the filter allows and that have a move. Leased letters stay. */
function movableStates({ state, ids }: LetterFilter, moves: BulkMoves): State[] {
  return allStates.filter((one) => {
    if (one === 'retrying' || !moves[one]) return false
    if (state !== undefined) return listed(state).includes(one)
    return ids !== undefined || one !== 'archived'
  })
}

async function moveSome(
  store: LetterStore,
  context: StoreContext,
  query: Query,
  moves: BulkMoves,
  letters: readonly LetterRef[],
): Promise<number> {
  let written = 0
  const left: string[] = []
  for (const [code, some] of Map.groupBy(letters, ({ state }) => state)) {
    const ids = some.map(({ id }) => id)
    const moved = await moveAtOnce(context, query, moves[states[code]!]!, code, ids)
    written += moved.size
    left.push(...ids.filter((id) => !moved.has(id)))
  }
  if (left.length === 0) return written
  const rest = { filter: { ...query.filter, ids: left }, moves, limit: left.length }
  return written + (await applyByPage(store, rest)).written
}

type BulkMove = Omit<Change, 'id' | 'guard'>

/** Moves the letters that are in no lane and that no other letter depends on. */
async function moveAtOnce(
  context: StoreContext,
  { filter, codes }: Query,
  move: BulkMove,
  state: number,
  ids: readonly string[],
): Promise<Set<string>> {
  if (needsReading(filter)) return new Set()
  const change = encodeChange({ id: '', guard: { version: 0 }, ...move })
  if ('tags' in change.set || 'edit' in change.set || 'priority' in change.set) return new Set()
  const rows = await context.withSlot((slot) => {
    const values: unknown[] = [joinIds(ids), change.entry, `{${change.counts.join()}}`, slot, state]
    const source = sourceOf(change, values)
    const sql = updateStatement({
      source,
      values: new Map(
        columnsOf(change).map((column) => [column, change.set[column] === null ? 'null' : 'x']),
      ),
      due: change.due,
      guard: `l.state = $5 AND l.lane IS NULL AND ${change.set.state === 2 ? 'NOT l.depended AND ' : ''}${conditionOf(filter, codes, values)}`,
      actions: '$3::int[]',
      slot: '$4',
      returning: 'l.id',
      select: 'id',
    })
    return context.connection.execute(sql, values)
  })
  if (change.due === 'ready' && rows.length > 0 && isAnyDue(context, [change.set.due_at as number]))
    context.wake()
  return new Set(rows.map(([id]) => id as string))
}

const columnsOf = ({ set }: RowChange): Column[] => Object.keys(set) as Column[]

/** SQL for the table `x`: the same values for every id. */
function sourceOf(change: RowChange, values: unknown[]): string {
  const constants = columnsOf(change).flatMap((column) => {
    const value = encodeValue(column, change.set[column] ?? null)
    return value === null ? [] : [`$${values.push(value)}::${typeOf(column)} AS ${column}`]
  })
  return `(SELECT ids.id, $2::text AS entry, ${constants.join(', ')} FROM unnest($1::uuid[]) AS ids(id)) AS x`
}
