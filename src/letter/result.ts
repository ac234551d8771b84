import { read } from './reading.ts'

/**
 * What work may return to say that it failed without throwing. With `remaining` it says that part
 * of it is done: the next run gets that as its input, in place of what this run got, unless it is
 * too large to be kept. The payload gets its next version then, and the first one stays.
 */
export interface FailedResult {
  ok: false
  error: unknown
  /** The input of the next run. Default: the same input. */
  remaining?: unknown
  /** What the history says about it. */
  note?: string
}

export function isFailedResult(value: unknown): value is FailedResult {
  return typeof value === 'object' && read(value, 'ok') === false
}

const maxNote = 500

/**
 * What failed work returned, each part read once, or undefined when it says nothing of a failure.
 * Never throws.
 */
export function failedResultOf(value: unknown): FailedResult | undefined {
  if (!isFailedResult(value)) return undefined
  const remaining = read(value, 'remaining')
  const note = read(value, 'note')
  return {
    ok: false,
    error: read(value, 'error'),
    ...(remaining === undefined ? {} : { remaining }),
    ...(typeof note === 'string' ? { note: note.slice(0, maxNote).toWellFormed() } : {}),
  }
}

export type ReplayOutcome =
  | { kind: 'published'; to: string }
  | { kind: 'limit'; replays: number; maxReplays: number }
