import { checkContext, jsonOf, metadataOf } from '../capture/context.ts'
import { checkKeys, keysOf } from '../check/keys.ts'
import type { ActionOptions } from './action-input.ts'
import { readPatch } from '../check/patch-payload.ts'
import { checkBy, checkReason } from '../check/text.ts'
import { RedriveError } from '../errors.ts'
import type { JsonPatch } from '../letter/json-patch.ts'
import type { DeadLetter, Json, Payload, Priority } from '../letter/letter.ts'
import type { Edit, Mover } from '../letter/moves.ts'
import { encodePayload } from '../letter/payload.ts'
import { readSealed } from '../letter/sealed.ts'
import type { Timestamp } from '../letter/time.ts'

export interface EditInput extends ActionOptions {
  /** The new payload: bytes, a string with its content type, or a JS value. */
  payload?: unknown
  /** A JSON Patch (RFC 6902) of the JSON payload, in place of `payload`. */
  patch?: JsonPatch
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
  patch: true,
  contentType: true,
  headers: true,
  priority: true,
  tags: true,
  metadata: true,
  reason: true,
  by: true,
  ifVersion: true,
})

/** A checked edit. The patch is applied to the payload of each letter. */
export type ReadEdit = Edit & { patch?: JsonPatch }

/** Checks the input of an edit with the rules of a capture, and copies it. */
export function readEdit(input: EditInput): ReadEdit {
  checkKeys('edit', input, editKeys)
  const { by, reason, headers, priority, tags, metadata, contentType } = input
  checkBy(by)
  checkReason(reason)
  if (input.patch !== undefined && 'payload' in input)
    throw new RedriveError('INVALID_INPUT', 'an edit has either `payload` or `patch`, got both')
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
    ...(input.patch === undefined ? {} : { patch: readPatch(input.patch) }),
    ...(headers ? { headers: jsonOf(headers) as typeof headers } : {}),
    ...(priority ? { priority } : {}),
    ...(tags ? { tags: [...tags] } : {}),
    ...(metadata ? { metadata: metadataOf(metadata) } : {}),
  }
}

/** The note of an edit that undoes another one, in the history. */
export const undoNote = 'edit undone'

/** What the record of an edit has: the values that it replaced, who made it, and when. */
export interface SavedEdit extends Edit {
  /** Absent in records of older versions. */
  by?: string
  at?: Timestamp
  /** The data subject of the letter. */
  subject?: string
}

/** The present values of the fields that an edit changes, as JSON for the record of the edit. */
export function readCurrentValues(
  letter: DeadLetter,
  edit: Edit,
  { actor, at }: Pick<Mover, 'actor' | 'at'>,
): { [key: string]: Json } {
  const { subject } = letter.payload
  const values: { [key: string]: Json } = { by: actor, at, ...(subject ? { subject } : {}) }
  if (edit.payload) {
    const { bytes, ...facts } = letter.payload
    values['payload'] = { ...facts, bytes: Buffer.from(bytes).toString('base64') }
  }
  if (edit.headers) values['headers'] = letter.headers ?? {}
  if (edit.priority) values['priority'] = letter.priority
  if (edit.tags) values['tags'] = letter.tags
  if (edit.metadata) values['metadata'] = letter.metadata
  return values
}

/** Reads the record of an edit. */
export function readSavedEdit(values: Json): SavedEdit {
  const sealed = readSealed(values)
  if (sealed)
    throw new RedriveError(
      'DECRYPTION_FAILED',
      `a saved edit is encrypted with key ${sealed.keyId}, and this process cannot decrypt it: check the option encryption`,
    )
  const { payload, ...rest } = values as Omit<SavedEdit, 'payload'> & { payload?: Json }
  if (!payload) return rest
  const saved = payload as unknown as Omit<Payload, 'bytes'> & { bytes: string }
  const { lossy, ...facts } = saved
  const bytes = Buffer.from(saved.bytes, 'base64')
  return { ...rest, payload: { ...facts, bytes, size: bytes.length, ...(lossy ? { lossy } : {}) } }
}

/** The edit that restores the values of `readCurrentValues`. The payload gets a new version. */
export function createUndoEdit(letter: DeadLetter, values: Json): Edit {
  const { by: _, at: __, subject: ___, payload, ...rest } = readSavedEdit(values)
  if (!payload) return rest
  return { ...rest, payload: { ...payload, version: letter.payload.version + 1 } }
}
