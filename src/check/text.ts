import { RedriveError } from '../errors.ts'
import { describeValue } from './keys.ts'

/** Limits of strings that people give, in characters. */
export const maxName = 200
const maxReason = 1000
const maxNote = 4000

/** The string as it is stored. Rejects blank strings and those with more than `max` characters. */
export function checkText(name: string, value: unknown, max: number): string {
  if (typeof value !== 'string' || value.trim() === '')
    throw invalid(`\`${name}\` must be a non-blank string, got ${describeValue(value)}`)
  if (value.length > max)
    throw invalid(`\`${name}\` must have at most ${max} characters, got ${value.length}`)
  return value.toWellFormed()
}

/** Checks the name of the person who acts. */
export function checkBy(by: unknown): string {
  return checkText('by', by, maxName)
}

/** Checks why a person acts. */
export function checkReason(reason: unknown): string {
  return checkText('reason', reason, maxReason)
}

/** Checks a note to a letter or a group. */
export function checkNote(note: unknown): string {
  return checkText('note', note, maxNote)
}

function invalid(message: string): RedriveError {
  return new RedriveError('INVALID_INPUT', message)
}
