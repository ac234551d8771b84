import { isTimestamp } from '../capture/context.ts'
import { checkKeys, describeValue } from '../check/keys.ts'
import { RedriveError } from '../errors.ts'

export interface RetryOptions {
  /** When it becomes due: an ISO-8601 timestamp or a Date. A past time means now. Default: now. */
  at?: string | Date
  /**
   * True: resolves after the next run, in any process, with the letter after it: resolved,
   * rescheduled, exhausted or parked. If no process has a handler for its queue, a worker parks the
   * letter; while no worker runs, it stays due.
   */
  wait?: boolean
  /** Aborts the wait. The letter stays due. */
  signal?: AbortSignal
}

/** The longest note that a person can add to a letter, in characters. */
const maxNote = 4000

export function checkRetry(options: RetryOptions): RetryOptions {
  checkKeys('retry options', options, ['at', 'wait', 'signal'])
  const { at, wait, signal } = options
  if (at !== undefined && !isTimestamp(at))
    reject(`\`at\` must be an ISO-8601 timestamp or a Date, got ${String(at).slice(0, 80)}`)
  if (wait !== undefined && typeof wait !== 'boolean')
    reject(`\`wait\` must be true or false, got ${typeof wait}`)
  if (signal !== undefined && !(signal instanceof AbortSignal))
    reject(`\`signal\` must be an AbortSignal, got ${typeof signal}`)
  return options
}

/** Checks the name and the note for the history. */
export function checkActor(by: unknown, note: unknown = ''): void {
  if (typeof by !== 'string' || by === '')
    reject(`\`by\` must be a non-empty string, got ${describeValue(by)}`)
  if (typeof note !== 'string') reject(`\`note\` must be a string, got ${describeValue(note)}`)
}

/** The text of a note as it is stored. */
export function readNote(text: unknown): string {
  if (typeof text !== 'string' || text.trim() === '')
    return reject(`a note must be a string with text, got ${describeValue(text)}`)
  if (text.length > maxNote)
    return reject(
      `a note has at most ${maxNote} characters, got ${text.length}: add several notes, or a link`,
    )
  return text.toWellFormed()
}

function reject(why: string): never {
  throw new RedriveError('INVALID_INPUT', why)
}
