import { resolved } from '../rows/codes.ts'
import type { StoreContext } from './context.ts'
import type { Counted } from './counted.ts'
import { entriesOf } from './letters.ts'
import { moveLetter, moveOf, nextOf, type Move } from './move.ts'
import { applyCode, type Methods } from './protocol.ts'
import { idOf } from './schema.ts'
import type { SentChange, SentGroup } from './transfer.ts'
import { releaseDependents } from './waits.ts'

/** Number of letters that one transaction moves, so that other calls do not wait for long. */
const lettersPerStep = 1000

/** A move of letters in one state. */
interface BulkMove {
  /** The state that they get. */
  target: number
  move: Move
  change: SentChange
  /** Whether it changes only their rows and counts, if they have no lane and no tags. */
  isPlain: boolean
}

/** Makes the move of its state on each letter that has the given version. Returns result codes. */
export function* applyAll(
  context: StoreContext,
  { ids, versions, moves }: Methods['applyAll']['request'],
): Generator<undefined, number[]> {
  const byState = new Map(moves.map(([state, group]) => [state, bulkMoveOf(state, group)]))
  const codes: number[] = []
  for (let start = 0; start < ids.length; start += lettersPerStep) {
    if (start > 0) yield
    const end = start + lettersPerStep
    codes.push(...moveLetters(context, ids.slice(start, end), versions.slice(start, end), byState))
  }
  return codes
}

function bulkMoveOf(state: number, group: SentGroup): BulkMove {
  const move = moveOf(group)
  const change = group.changes[0]!
  const columns = group.columns.split(',')
  return {
    target: nextOf({ state } as Counted, move, change).state,
    move,
    change,
    isPlain: !columns.includes('tags') && !columns.includes('edit'),
  }
}

/** Letters that are counted alike and have the same version, with their positions. */
const groupLetters = `SELECT state, version, lane IS NULL AND tags IS NULL, queue, priority, category,
  policy, fingerprint, retries, backoff_ms, json_group_array(wanted.key), json_group_array(seq)
  FROM json_each(?) AS wanted CROSS JOIN letters ON letters.id = ${idOf('wanted.value')}
  GROUP BY 1, 2, 3, 4, 5, 6, 7, 8, 9, 10`

type LetterGroup = [
  state: number,
  version: number,
  isPlain: number,
  queue: number,
  priority: number,
  category: number,
  policy: number,
  fingerprint: string,
  retries: number,
  backoffMs: number,
  positions: string,
  seqs: string,
]

/** Moves distinct letters: those of one state without lane and tags at once, others one by one. */
function moveLetters(
  context: StoreContext,
  ids: readonly string[],
  versions: readonly number[],
  moves: ReadonlyMap<number, BulkMove>,
): number[] {
  const codes = ids.map((): number => applyCode.missing)
  const seqOf: number[] = []
  const done: string[] = []
  const plain = new Map([...moves.values()].map((by): [BulkMove, number[]] => [by, []]))
  for (const group of context.db.all(groupLetters, JSON.stringify(ids)) as LetterGroup[]) {
    const [state, version, isPlain] = group
    const positions = JSON.parse(group[10]) as number[]
    const seqs = JSON.parse(group[11]) as number[]
    for (const [n, position] of positions.entries()) {
      codes[position] = applyCode.conflict
      seqOf[position] = seqs[n]!
    }
    const by = moves.get(state)
    const moved = by ? positions.filter((position) => versions[position] === version) : []
    if (!by || moved.length === 0) continue
    for (const position of moved) codes[position] = applyCode.written
    if (by.target === resolved) done.push(...moved.map((position) => ids[position]!))
    if (by.isPlain && isPlain === 1) {
      countMoves(context, group, moved.length, by)
      plain.get(by)!.push(...moved.map((position) => seqOf[position]!))
    } else for (const position of moved) moveOne(context, seqOf[position]!, ids[position]!, by)
  }
  for (const [by, seqs] of plain) if (seqs.length > 0) movePlain(context, seqs, by)
  releaseDependents(context, done)
  return codes
}

function moveOne(context: StoreContext, seq: number, id: string, by: BulkMove): void {
  const [entry] = entriesOf(context, [seq])
  const [, ...rest] = by.change
  moveLetter(context, entry!, by.move, [id, ...rest])
}

function countMoves(context: StoreContext, group: LetterGroup, n: number, by: BulkMove): void {
  const { counters } = context
  const [state, , , queue, priority, category, policy, fingerprint, retries, backoffMs] = group
  const cell = { queue, state, priority, category, policy }
  const before: Counted = { ...cell, fingerprint, tags: [], retries, backoffMs }
  const next = nextOf(before, by.move, by.change)
  counters.move(before, next, n)
  counters.total(by.change[4], next, n)
}

/** Writes letters without lane and tags. */
function movePlain(
  context: StoreContext,
  seqs: readonly number[],
  { move, change }: BulkMove,
): void {
  const [, , , line, , , ...values] = change
  context.db.run(move.many, ...values, line, JSON.stringify(seqs))
  if (move.due === 'ready') context.woke = true
}
