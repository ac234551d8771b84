import type { BulkMoves, Change } from '../../letter/moves.ts'
import type { ApplyResult, LetterVersion, Store } from '../../store.ts'
import { applyEach, haveLetterIds } from '../apply-each.ts'
import { encodeChange, type RowChange } from '../rows/change.ts'
import { retrying, states } from '../rows/codes.ts'
import type { Column } from '../rows/columns.ts'
import { isAnyDue, type StoreContext } from './context.ts'
import { seemsRare } from './planner.ts'
import { encodeValue, typeOf } from './rows.ts'
import { joinIds, joinNumbers } from './text.ts'
import { updateStatement } from './update.ts'

/** SQL for the table `x` of letters and their versions. */
const wanted = 'unnest($1::uuid[], $2::bigint[]) WITH ORDINALITY AS x(id, guard_version, n)'

const readStates = `SELECT x.n::int, l.state, l.version = x.guard_version FROM ${wanted}
  JOIN @letters l ON l.id = x.id AND ${seemsRare('x.id')}`

/**
 * Makes the same move on distinct letters, with one statement for each of their states. Letters
 * that need more than one statement are changed by `store`.
 */
export async function applyAll(
  store: Pick<Store, 'find' | 'apply'>,
  context: StoreContext,
  letters: readonly LetterVersion[],
  moves: BulkMoves,
): Promise<ApplyResult[]> {
  if (!haveLetterIds(letters)) return applyEach(store, letters, moves)
  const results: ApplyResult[] = letters.map(() => 'missing')
  const byState = Map.groupBy(await readLetters(context, letters), ({ state }) => state)
  const left: number[] = []
  for (const [code, found] of byState) {
    const move = code === retrying ? undefined : moves[states[code]!]
    for (const { position } of found) results[position] = 'conflict'
    const positions = found.filter(({ isSame }) => isSame).map(({ position }) => position)
    if (!move || positions.length === 0) continue
    const some = positions.map((position) => letters[position]!)
    const moved = await moveAtOnce(context, move, code, some)
    for (const position of positions)
      if (moved.has(letters[position]!.id)) results[position] = 'written'
      else left.push(position)
  }
  const rest = left.map((position) => letters[position]!)
  for (const [n, result] of (await applyEach(store, rest, moves)).entries())
    results[left[n]!] = result
  return results
}

interface FoundLetter {
  position: number
  state: number
  /** Whether the letter has the wanted version. */
  isSame: boolean
}

async function readLetters(
  { connection }: StoreContext,
  letters: readonly LetterVersion[],
): Promise<FoundLetter[]> {
  const rows = await connection.execute(readStates, wantedValues(letters), { repeatable: true })
  return rows.map((cells) => {
    const [n, state, isSame] = cells as [number, number, boolean]
    return { position: n - 1, state, isSame }
  })
}

const wantedValues = (letters: readonly LetterVersion[]): unknown[] => [
  joinIds(letters.map(({ id }) => id)),
  joinNumbers(letters, ({ version }) => version),
]

type BulkMove = Omit<Change, 'id' | 'guard'>

/** Moves the letters that are in no lane and that no other letter depends on. Returns their ids. */
async function moveAtOnce(
  context: StoreContext,
  move: BulkMove,
  state: number,
  letters: readonly LetterVersion[],
): Promise<Set<string>> {
  const change = encodeChange({ id: '', guard: { version: 0 }, ...move })
  if ('tags' in change.set || 'edit' in change.set || 'priority' in change.set) return new Set()
  const rows = await context.withSlot((slot) => {
    const values = [
      ...wantedValues(letters),
      change.entry,
      `{${change.counts.join()}}`,
      slot,
      state,
    ]
    const source = sourceOf(change, values)
    const sql = updateStatement({
      source,
      values: new Map(
        columnsOf(change).map((column) => [column, change.set[column] === null ? 'null' : 'x']),
      ),
      due: change.due,
      guard: `l.version = x.guard_version AND l.state = $6 AND l.lane IS NULL${change.set.state === 2 ? ' AND NOT l.depended' : ''}`,
      oldState: '$6::int',
      actions: '$4::int[]',
      slot: '$5',
      select: 'id',
    })
    return context.connection.execute(sql, values)
  })
  if (change.due === 'ready' && rows.length > 0 && isAnyDue(context, [change.set.due_at as number]))
    context.wake()
  return new Set(rows.map(([id]) => id as string))
}

const columnsOf = ({ set }: RowChange): Column[] => Object.keys(set) as Column[]

/** SQL for the table `x`: the same values for every letter. */
function sourceOf(change: RowChange, values: unknown[]): string {
  const constants = columnsOf(change).flatMap((column) => {
    const value = encodeValue(column, change.set[column] ?? null)
    return value === null ? [] : [`$${values.push(value)}::${typeOf(column)} AS ${column}`]
  })
  return `(SELECT x.id, x.guard_version, $3::text AS entry, ${constants.join(', ')} FROM ${wanted}) AS x`
}
