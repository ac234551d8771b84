import { RedriveError } from '../errors.ts'
import { whyIncomplete } from '../letter/content.ts'
import type { DeadLetter } from '../letter/letter.ts'

/** Throws CONTENT_MISSING if the content of a letter was redacted or erased, so it cannot run. */
export function checkComplete(letter: Pick<DeadLetter, 'id' | 'payload'>, action: string): void {
  const why = whyIncomplete(letter)
  if (why !== undefined)
    throw new RedriveError('CONTENT_MISSING', `letter ${letter.id} cannot ${action}: ${why}`)
}

/** Throws CONTENT_MISSING if the content of a letter was erased. */
export function checkNotErased(letter: Pick<DeadLetter, 'id' | 'payload'>, action: string): void {
  if (letter.payload.erased !== undefined) checkComplete(letter, action)
}
