import { RedriveError } from '../errors.ts'
import type { DeadLetter, Payload } from '../letter/letter.ts'
import type { Edit } from '../letter/moves.ts'
import { redactedMark, type Redaction } from '../policy/redaction/redaction.ts'
import type { ReadEdit } from './edit-input.ts'

/**
 * The values of an edit as they are stored. `payload.redacted` is set while the payload or the
 * headers lack a hidden value, and removed by the edit that replaces the last one.
 */
export function redactEdit(
  letter: DeadLetter,
  values: Edit,
  redaction: Redaction | undefined,
): Edit {
  const stored = redaction?.atCapture ? redactValues(letter, values, redaction) : values
  const wasRedacted = letter.payload.redacted ?? false
  if (!stored.payload && !stored.headers) return stored
  if (!wasRedacted && !redaction?.redactStored) return stored
  // Headers that were complete may contain the mark as a value of their own.
  const headers = stored.headers ?? (wasRedacted ? letter.headers : undefined)
  const isRedacted = lacksValues(stored.payload ?? letter.payload) || hasMark(headers)
  if (stored.payload) return { ...stored, payload: withRedacted(stored.payload, isRedacted) }
  if (isRedacted === wasRedacted) return stored
  const next = { ...letter.payload, version: letter.payload.version + 1 }
  return { ...stored, payload: withRedacted(next, isRedacted) }
}

function redactValues(letter: DeadLetter, values: Edit, redaction: Redaction): Edit {
  const { payload, headers, metadata, tags } = values
  const stored = redaction.captured({
    ...letter,
    ...(payload ? { payload } : {}),
    ...(headers ? { headers } : {}),
    ...(metadata ? { metadata } : {}),
    ...(tags ? { tags } : {}),
  })
  return {
    ...values,
    ...(payload ? { payload: stored.payload } : {}),
    ...(headers ? { headers: stored.headers ?? {} } : {}),
    ...(metadata ? { metadata: stored.metadata } : {}),
    ...(tags ? { tags: stored.tags } : {}),
  }
}

/** Whether hidden values are missing in the payload itself, not only in the headers. */
function lacksValues({ redacted, bytes }: Payload): boolean {
  return redacted === true && (bytes.byteLength === 0 || Buffer.from(bytes).includes(redactedMark))
}

function hasMark(headers: DeadLetter['headers']): boolean {
  return JSON.stringify(headers ?? {}).includes(redactedMark)
}

function withRedacted(payload: Payload, isRedacted: boolean): Payload {
  const { redacted: _, ...others } = payload
  return isRedacted ? { ...others, redacted: true } : others
}

/** Rejects new values that contain the mark of hidden values: the mark would replace the data. */
export function checkNoMark({ payload, patch, headers, metadata, tags }: ReadEdit): void {
  const given = {
    payload: payload && Buffer.from(payload.bytes).toString(),
    patch: patch && JSON.stringify(patch),
    headers: headers && JSON.stringify(headers),
    metadata: metadata && JSON.stringify(metadata),
    tags: tags && JSON.stringify(tags),
  }
  for (const [name, text] of Object.entries(given))
    if (text?.includes(redactedMark))
      throw new RedriveError(
        'INVALID_INPUT',
        `\`${name}\` contains ${redactedMark}, which stands for a hidden value: it would replace that value; send a JSON Patch of what changes, or read the letter with reveal`,
      )
}
