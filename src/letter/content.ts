import type { DeadLetter, LetterSummary, Reason } from './letter.ts'

/** The kind of the records of data subjects: the key of their hashes, and their own keys. */
export const subjectKind = 'subject'

type WithPayload = Pick<DeadLetter | LetterSummary, 'payload'>

/**
 * Why a letter does not have its whole content, so that no handler and no receiver may get it.
 * Undefined: it has.
 */
export function whyIncomplete({ payload }: WithPayload): string | undefined {
  if (payload.erased !== undefined) return `its content was erased at ${payload.erased}`
  if (payload.redacted)
    return 'its payload was redacted before it was stored (option redact.redactStored): edit it to give it a whole payload, or remove it'
  return undefined
}

/** The reason for parking a letter without its whole content. */
export function reasonIncomplete({ payload }: WithPayload): Reason {
  return payload.erased === undefined ? 'redacted' : 'erased'
}
