import type { DeadLetter, LetterSummary, Reason } from './letter.ts'

/** The kind of the records of data subjects: the key of their hashes, and their own keys. */
export const subjectKind = 'subject'

type WithPayload = Pick<DeadLetter | LetterSummary, 'payload'>

/**
 * Why a letter must not run or be replayed: its content was erased, or part of it was redacted.
 * Undefined: its content is complete.
 */
export function whyIncomplete({ payload }: WithPayload): string | undefined {
  if (payload.erased !== undefined) return `its content was erased at ${payload.erased}`
  if (payload.redacted)
    return 'its payload or its headers were redacted before they were stored (option redact.redactStored): replace the redacted values with an edit, or remove the letter'
  return undefined
}

/** The reason for parking a letter without its whole content. */
export function reasonIncomplete({ payload }: WithPayload): Reason {
  return payload.erased === undefined ? 'redacted' : 'erased'
}
