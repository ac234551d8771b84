import { isDeepStrictEqual } from 'node:util'
import { RedriveError } from '../errors.ts'
import { applyPatch, type JsonPatch, type JsonPatchOperation } from '../letter/json-patch.ts'
import { tokensOf } from '../letter/json-pointer.ts'
import type { DeadLetter, Json, Payload } from '../letter/letter.ts'
import { redactedMark, type Redaction } from '../policy/redaction/redaction.ts'
import { mayReveal, type Viewer } from './viewer.ts'

/**
 * Rejects a patch that would tell the caller what is hidden: by testing a hidden value, or by
 * moving it to where it is shown. The patch is applied to the payload as the caller sees it, where
 * hidden values are marks.
 */
export function checkPatchProbe(letter: DeadLetter, patch: JsonPatch, viewer: Viewer): void {
  const redaction = viewer.redaction(letter.queue)
  if (!redaction || mayReveal(viewer)) return
  const shown = redaction.payload(letter.payload)
  const original = parse(letter.payload)
  let visible = parse(shown)
  if (!shown.redacted || original === undefined || visible === undefined) return
  for (const [index, operation] of patch.entries()) {
    if (operation.op === 'test' && isMarked(visible, operation.path)) throw refused(index)
    visible = apply(visible, operation, index)
  }
  const changed = tryApply(original, patch)
  if (changed === undefined) return
  if (!isDeepStrictEqual(redacted(visible, redaction), redacted(changed, redaction)))
    throw refused(patch.length - 1)
}

/** Rejects operations of a bulk edit that read values, since some of them may be hidden. */
export function checkBulkPatchProbe(
  patch: JsonPatch | undefined,
  redactions: readonly Redaction[],
  viewer: Viewer,
): void {
  if (!patch || redactions.length === 0 || mayReveal(viewer)) return
  const index = patch.findIndex(({ op }) => op === 'test' || op === 'copy' || op === 'move')
  if (index >= 0) throw refused(index)
}

function refused(index: number): RedriveError {
  return new RedriveError(
    'FORBIDDEN',
    `operation ${index + 1} of the patch reads a value that is hidden or missing: that needs the permission payload:reveal`,
  )
}

function redacted(document: Json, redaction: Redaction): Json {
  return redaction.json(document, 'payload')
}

function apply(document: Json, operation: JsonPatchOperation, index: number): Json {
  const next = tryApply(document, [operation])
  if (next === undefined) throw refused(index)
  return next
}

function tryApply(document: Json, patch: JsonPatch): Json | undefined {
  try {
    return applyPatch(document, patch)
  } catch {
    return undefined
  }
}

/** Whether the value of a pointer, or a value around it, has a mark. */
function isMarked(document: Json, pointer: string): boolean {
  let value: Json | undefined = document
  for (const token of tokensOf(pointer) ?? []) {
    if (typeof value !== 'object' || value === null) return true
    value = Object.hasOwn(value, token) ? (value as { [key: string]: Json })[token] : undefined
  }
  return JSON.stringify(value ?? null).includes(redactedMark)
}

function parse({ bytes }: Payload): Json | undefined {
  try {
    return JSON.parse(Buffer.from(bytes).toString()) as Json
  } catch {
    return undefined
  }
}
