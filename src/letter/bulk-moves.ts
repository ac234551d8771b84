import { states, type State } from './letter.ts'
import { archive, park, resolve, retry, type BulkMoves, type Change, type Mover } from './moves.ts'
import type { Subject } from './moves.ts'
import { isLegal } from './move-table.ts'
import type { Timestamp } from './time.ts'

/** The moves that depend on nothing but the state of a letter, so that many can move at once. */
const bulkMoves = {
  retry,
  resolve: (letter: Subject, by: Mover): Change => resolve(letter, by),
  archive: (letter: Subject, by: Mover): Change => archive(letter, by),
  park: (letter: Subject, by: Mover): Change => park(letter, by, { reason: 'operator' }),
} as const

export type BulkMoveName = keyof typeof bulkMoves

/**
 * The change that a move makes to a letter in each state from which it is legal. `retryAt` is when
 * a retried letter becomes due.
 */
export function bulkMovesFor(
  name: BulkMoveName,
  by: Omit<Mover, 'guard'>,
  retryAt?: Timestamp,
): BulkMoves {
  const moves: { [S in State]?: Omit<Change, 'id' | 'guard'> } = {}
  for (const state of states) {
    // A leased letter belongs to its worker.
    if (state === 'retrying' || !isLegal(name, state)) continue
    const mover = { ...by, guard: 'version' } as const
    const { action, set, entry } = bulkMoves[name](example(state, by), mover, retryAt)
    moves[state] = { action, set, entry }
  }
  return moves
}

/** A parked letter always waits for a review, and no other letter that can move does. */
function example(state: State, { at }: Omit<Mover, 'guard'>): Subject {
  const review = state === 'parked' ? { review: { neededSince: at } } : {}
  return { state, version: 1, epoch: 0, updatedAt: at, ...review } as Subject
}
