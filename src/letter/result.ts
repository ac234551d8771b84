import type { Payload } from './letter.ts'
import { read } from './reading.ts'

/**
 * What work may return to report a failure without throwing. `remaining` reports a partial result:
 * it replaces the input of the next run, unless it is too large to be stored. The payload gets a
 * new version; the first version stays stored.
 */
export interface FailedResult {
  ok: false
  error: unknown
  /** The input of the next run. Default: the same input. */
  remaining?: unknown
  /** A note for the history. */
  note?: string
}

export function isFailedResult(value: unknown): value is FailedResult {
  return typeof value === 'object' && read(value, 'ok') === false
}

const maxNote = 500

/**
 * Reads a returned failure, each property once. Undefined if the value does not report a failure.
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
  /** `messageId`: the id of the published message, where the route knows it. */
  | { kind: 'published'; to: string; messageId?: string }
  | { kind: 'limit'; replays: number; maxReplays: number }

/** The payload that undoes an edit, or why it cannot be undone. */
export type PayloadUndo = { payload: Payload } | { refusal: string }

/** What has to be known about a letter to undo an edit of its payload. */
export interface UndoSubject {
  id: string
  payload: Pick<Payload, 'version'>
}
