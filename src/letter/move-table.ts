import { states, type Action, type State } from './letter.ts'

/**
 * All moves of a letter: from which states each may start and in which it may end. No other code
 * decides what is legal; `docs/concepts/states.md` shows the table. `remove` deletes the letter.
 */
export const moveTable = {
  claim: { from: ['pending', 'retrying'], to: ['retrying'] },
  resolve: { from: ['pending', 'retrying', 'exhausted', 'parked'], to: ['resolved'] },
  reschedule: { from: ['pending', 'retrying'], to: ['pending'] },
  exhaust: { from: ['pending', 'retrying'], to: ['exhausted'] },
  park: { from: ['pending', 'retrying', 'exhausted'], to: ['parked'] },
  release: { from: ['retrying'], to: ['pending'] },
  retry: { from: ['pending', 'exhausted', 'parked'], to: ['pending'] },
  wake: { from: ['parked'], to: ['pending'] },
  review: { from: ['parked', 'exhausted'], to: ['pending', 'resolved', 'archived'] },
  edit: { from: ['pending', 'exhausted', 'parked'], to: ['pending', 'exhausted', 'parked'] },
  replay: { from: ['pending', 'exhausted', 'parked'], to: ['resolved', 'parked'] },
  note: { from: states, to: states },
  archive: { from: ['pending', 'resolved', 'exhausted', 'parked'], to: ['archived'] },
  restore: { from: ['archived'], to: ['pending', 'resolved', 'exhausted', 'parked'] },
  remove: { from: ['pending', 'resolved', 'exhausted', 'parked', 'archived'], to: [] },
} as const satisfies Partial<Record<Action, { from: readonly State[]; to: readonly State[] }>>

export type Move = keyof typeof moveTable

/** Whether this move may start from this state. */
export function isLegal(move: Move, from: State): boolean {
  return (moveTable[move].from as readonly State[]).includes(from)
}
