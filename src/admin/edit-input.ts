import { checkContext, jsonOf, metadataOf } from '../capture/context.ts'
import { checkKeys, keysOf } from '../check/keys.ts'
import { RedriveError } from '../errors.ts'
import type { DeadLetter, Json, Priority } from '../letter/letter.ts'
import type { Edit } from '../letter/moves.ts'
import { encodePayload } from '../letter/payload.ts'

export interface EditInput {
  /** The new payload: bytes, a string with its content type, or a JS value. */
  payload?: unknown
  contentType?: string
  headers?: Record<string, string>
  priority?: Priority
  tags?: string[]
  metadata?: { [key: string]: Json }
  reason: string
  by: string
}

const editKeys = keysOf<EditInput>({
  payload: true,
  contentType: true,
  headers: true,
  priority: true,
  tags: true,
  metadata: true,
  reason: true,
  by: true,
})

/** Checks the input of an edit with the rules of a capture, and copies it. */
export function readEdit(input: EditInput): Edit {
  checkKeys('edit', input, editKeys)
  const { by, reason, headers, priority, tags, metadata, contentType } = input
  if (!by || !reason || typeof by !== 'string' || typeof reason !== 'string')
    throw new RedriveError(
      'INVALID_INPUT',
      'an edit needs `by` and `reason`, both non-empty strings',
    )
  checkContext({
    headers: headers ?? {},
    tags: tags ?? [],
    ...(priority === undefined ? {} : { priority }),
    ...(contentType === undefined ? {} : { contentType }),
  })
  // Callers without types may pass null.
  const type = contentType ?? undefined
  return {
    ...('payload' in input ? { payload: encodePayload(input.payload, type) } : {}),
    ...(headers ? { headers: jsonOf(headers) as typeof headers } : {}),
    ...(priority ? { priority } : {}),
    ...(tags ? { tags: [...tags] } : {}),
    ...(metadata ? { metadata: metadataOf(metadata) } : {}),
  }
}

/** The present values of the fields that an edit changes, as JSON for the record of the edit. */
export function readCurrentValues(letter: DeadLetter, edit: Edit): { [key: string]: Json } {
  const values: { [key: string]: Json } = {}
  if (edit.payload) {
    const { bytes, contentType, lossy = false } = letter.payload
    values['payload'] = { bytes: Buffer.from(bytes).toString('base64'), contentType, lossy }
  }
  if (edit.headers) values['headers'] = letter.headers ?? {}
  if (edit.priority) values['priority'] = letter.priority
  if (edit.tags) values['tags'] = letter.tags
  if (edit.metadata) values['metadata'] = letter.metadata
  return values
}

/** The edit that restores the values of `readCurrentValues`. The payload gets a new version. */
export function createUndoEdit(letter: DeadLetter, values: Json): Edit {
  const { payload, ...rest } = values as Omit<Edit, 'payload'> & { payload?: Json }
  if (!payload) return rest
  const saved = payload as { bytes: string; contentType: string; lossy: boolean }
  const { contentType, lossy } = saved
  const bytes = Buffer.from(saved.bytes, 'base64')
  const version = letter.payload.version + 1
  return {
    ...rest,
    payload: { bytes, contentType, size: bytes.length, version, ...(lossy ? { lossy } : {}) },
  }
}
