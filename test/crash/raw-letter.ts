import type { Action, Reason, State } from '../../src/letter/letter.ts'
import { shaOf } from './plan.ts'
import type { Stored } from './rules.ts'
import type { Dump } from './verify.ts'

/*
 * What the readers of all stores share. The codes are duplicated here on purpose: the readers must
 * not use the product.
 */

export const states: State[] = [
  'pending',
  'retrying',
  'resolved',
  'exhausted',
  'parked',
  'archived',
]
const reasons = (
  'permanent malformed no-handler never crash-loop max-hops expired replay-limit ' +
  'dependency-failed operator retries-exhausted superseded replayed'
).split(' ') as Reason[]
const actions = (
  'capture occur claim resolve reschedule exhaust park release retry review edit replay archive ' +
  'restore remove evict wake fail park-at-capture note'
).split(' ') as Action[]

/** A letter as a store has it, with codes. */
export interface RawLetter {
  id: string
  queue: string
  state: number
  reason: number | null
  epoch: number
  retries: number
  maxRetries: number
  /** A line for each entry: a JSON array whose third value is the code of its action. */
  history: string
  bytes: Uint8Array | null
}

/** The letters and their numbers, with the problems that the reader found. */
export function dumpOf(letters: readonly RawLetter[], problems: string[]): Dump {
  return {
    letters: letters.map(storedOf),
    byState: countBy(letters.map(({ state }) => states[state]!)),
    byQueue: countBy(letters.map(({ queue }) => queue)),
    problems,
  }
}

function storedOf(letter: RawLetter): Stored {
  const { id, state, reason, epoch, retries, maxRetries, history, bytes } = letter
  return {
    id,
    epoch,
    retries,
    maxRetries,
    state: states[state]!,
    ...(reason === null ? {} : { reason: reasons[reason]! }),
    sha: bytes ? shaOf(bytes) : 'no body',
    actions: history.split('\n').map((line) => actions[(JSON.parse(line) as number[])[2]!]!),
  }
}

function countBy(keys: readonly string[]): Record<string, number> {
  const counts: Record<string, number> = {}
  for (const key of keys) counts[key] = (counts[key] ?? 0) + 1
  return counts
}
