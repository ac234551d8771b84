import { resolved } from '../rows/codes.ts'
import type { Found } from '../rows/plan.ts'
import type { StoreContext } from './context.ts'
import type { Counted } from './counted.ts'
import { scan } from './find.ts'
import { entriesOf } from './letters.ts'
import { moveLetter, moveOf, nextOf, type Move } from './move.ts'
import type { Methods } from './protocol.ts'
import type { SentChange } from './transfer.ts'
import { releaseDependents } from './waits.ts'

/** Number of letters that one transaction moves, so that other calls do not wait for long. */
const lettersPerStep = 1000

/** A move of letters in one state. */
interface BulkMove {
  state: number
  /** The state that they get. */
  target: number
  move: Move
  change: SentChange
}

/** Makes the move of its state on each matching letter, in the order of ids. */
export function* applyAll(
  context: StoreContext,
  { filter, moves, limit, after }: Methods['applyAll']['request'],
): Generator<undefined, Methods['applyAll']['response']> {
  const byState = moves.map(([state, group]): BulkMove => {
    const move = moveOf(group)
    const change = group.changes[0]!
    return { state, target: nextOf({ state } as Counted, move, change).state, move, change }
  })
  const start = after === undefined ? {} : { after: { key: after, id: after } }
  let written = 0
  for (const step of scan(context, { filter, order: 'oldest', ...start }, lettersPerStep)) {
    const some = step.found.slice(0, limit - written)
    moveLetters(context, some, byState)
    written += some.length
    const isLast = step.next === undefined && some.length === step.found.length
    if (written === limit) return isLast ? { written } : { written, next: some.at(-1)!.place.id }
    if (!isLast) yield
  }
  return { written }
}

const findStates = `SELECT state, lane IS NULL AND tags IS NULL FROM json_each(?)
  CROSS JOIN letters ON letters.seq = value`

/** Moves letters: those of one state without lane and tags at once, others one by one. */
function moveLetters(
  context: StoreContext,
  found: readonly Found<number>[],
  moves: readonly BulkMove[],
): void {
  const rows = context.db.all(findStates, JSON.stringify(found.map(({ item }) => item)))
  const done: string[] = []
  for (const bulkMove of moves) {
    const plain: number[] = []
    for (const [n, { item, place }] of found.entries()) {
      const [state, isPlain] = rows[n]!
      if (state !== bulkMove.state) continue
      if (bulkMove.target === resolved) done.push(place.id)
      if (isPlain === 1) plain.push(item)
      else moveOne(context, item, place.id, bulkMove)
    }
    if (plain.length > 0) movePlain(context, plain, bulkMove)
  }
  releaseDependents(context, done)
}

function moveOne(context: StoreContext, seq: number, id: string, by: BulkMove): void {
  const [entry] = entriesOf(context, [seq])
  const [, ...rest] = by.change
  moveLetter(context, entry!, by.move, [id, ...rest])
}

const countLetters = `SELECT queue, priority, category, policy, fingerprint, retries, backoff_ms,
  count(*) FROM letters WHERE seq IN (SELECT value FROM json_each(?)) GROUP BY 1, 2, 3, 4, 5, 6, 7`

/** Counts letters without lane and tags as they are, then writes all of them. */
function movePlain(context: StoreContext, seqs: readonly number[], by: BulkMove): void {
  const { db, counters } = context
  const { state, move, change } = by
  const [, , , line, bits, , ...values] = change
  const list = JSON.stringify(seqs)
  for (const row of db.all(countLetters, list)) {
    const [queue, priority, category, policy, fingerprint, retries, backoffMs, n] = row as CountRow
    const cell = { queue, state, priority, category, policy }
    const before: Counted = { ...cell, fingerprint, tags: [], retries, backoffMs }
    const next = nextOf(before, move, change)
    counters.move(before, next, n)
    counters.total(bits, next, n)
  }
  db.run(move.many, ...values, line, list)
  if (move.due === 'ready') context.woke = true
}

type CountRow = [number, number, number, number, string, number, number, number]
