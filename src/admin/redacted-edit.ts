import { RedriveError } from '../errors.ts'
import type { DeadLetter } from '../letter/letter.ts'
import type { Edit } from '../letter/moves.ts'
import { redactedMark, type Redaction } from '../policy/redaction/redaction.ts'
import type { ReadEdit } from './edit-input.ts'

/** The values of an edit as they are stored in a queue with redaction. */
export function redactEdit(letter: DeadLetter, values: Edit, redaction: Redaction): Edit {
  if (!redaction.atCapture) return values
  const { payload = letter.payload, headers, metadata, tags } = values
  const { payload: stored, ...rest } = redaction.captured({
    ...letter,
    payload,
    ...(headers ? { headers } : {}),
    ...(metadata ? { metadata } : {}),
    ...(tags ? { tags } : {}),
  })
  return {
    ...values,
    ...(values.payload ? { payload: stored } : {}),
    ...(headers ? { headers: rest.headers ?? {} } : {}),
    ...(metadata ? { metadata: rest.metadata } : {}),
    ...(tags ? { tags: rest.tags } : {}),
  }
}

/** Rejects new values with the mark of hidden ones: they would replace the hidden values. */
export function checkNoMark({ payload, patch, headers, metadata }: ReadEdit): void {
  const given = {
    payload: payload && Buffer.from(payload.bytes).toString(),
    patch: patch && JSON.stringify(patch),
    headers: headers && JSON.stringify(headers),
    metadata: metadata && JSON.stringify(metadata),
  }
  for (const [name, text] of Object.entries(given))
    if (text?.includes(redactedMark))
      throw new RedriveError(
        'INVALID_INPUT',
        `\`${name}\` contains ${redactedMark}, which stands for a hidden value: it would replace that value; send a JSON Patch of what changes, or read the letter with reveal`,
      )
}
