import { describeValue, quote } from './keys.ts'
import { RedriveError } from '../errors.ts'
import type { Json, Payload } from '../letter/letter.ts'
import { decodeText, encodePayload, kindOf } from '../letter/payload.ts'
import {
  applyPatch,
  PatchError,
  type JsonPatch,
  type JsonPatchOperation,
} from '../letter/json-patch.ts'
import { tokensOf } from '../letter/json-pointer.ts'

const maxOperations = 1000
const defaultMaxBytes = 16 * 1024 ** 2

/** The members of each operation besides `op`. Others are ignored, as RFC 6902 says. */
const members: Record<JsonPatchOperation['op'], readonly ('path' | 'from' | 'value')[]> = {
  add: ['path', 'value'],
  remove: ['path'],
  replace: ['path', 'value'],
  move: ['from', 'path'],
  copy: ['from', 'path'],
  test: ['path', 'value'],
}

/** Checks the form of a patch, and copies it. Throws INVALID_INPUT that names the operation. */
export function readPatch(patch: unknown): JsonPatch {
  if (!Array.isArray(patch))
    return reject(
      `\`patch\` must be an array of JSON Patch operations, got ${describeValue(patch)}`,
    )
  if (patch.length === 0 || patch.length > maxOperations)
    return reject(`\`patch\` must have from 1 to ${maxOperations} operations, got ${patch.length}`)
  return patch.map(readOperation)
}

function readOperation(given: unknown, index: number): JsonPatchOperation {
  const refuse = (why: string): never => reject(`operation ${index + 1} of the patch ${why}`)
  if (typeof given !== 'object' || given === null) return refuse('must be an object')
  const { op } = given as { op?: unknown }
  if (typeof op !== 'string' || !Object.hasOwn(members, op))
    return refuse(
      `has the unknown \`op\` ${describeValue(op)}: known: ${Object.keys(members).join(', ')}`,
    )
  const operation: Record<string, unknown> = { op }
  for (const member of members[op as JsonPatchOperation['op']]) {
    const value: unknown = Object.hasOwn(given, member)
      ? (given as Record<string, unknown>)[member]
      : undefined
    if (value === undefined) return refuse(`(${op}) needs \`${member}\``)
    if (member === 'value') operation[member] = copyJson(value, refuse)
    else if (tokensOf(value) === undefined)
      return refuse(
        `(${op}) needs a JSON Pointer such as /items/0 as \`${member}\`, got ${describeValue(value)}`,
      )
    else operation[member] = value
  }
  return operation as unknown as JsonPatchOperation
}

function copyJson(value: unknown, refuse: (why: string) => never): Json {
  try {
    const text = JSON.stringify(value)
    if (text !== undefined) return JSON.parse(text) as Json
  } catch {
    // A cycle, a bigint, or a value that is nested too deep.
  }
  return refuse('has a `value` that JSON cannot represent')
}

/**
 * The payload after a JSON Patch, as its next version. Throws INVALID_INPUT that names the
 * operation if the patch is invalid or cannot be applied, or if the payload is not JSON. Pure: the
 * given payload stays as it is.
 */
export function patchPayload(
  payload: Payload,
  patch: JsonPatch,
  maxBytes: number = defaultMaxBytes,
): Payload {
  const operations = readPatch(patch)
  const document = parsePayload(payload)
  try {
    const patched = applyPatch(document, operations, (grown) => checkGrowth(grown, maxBytes))
    const { version, contentType, redacted } = payload
    const encoded = encodePayload(JSON.stringify(patched), contentType)
    return { ...encoded, version: version + 1, ...(redacted ? { redacted } : {}) }
  } catch (error) {
    if (!(error instanceof PatchError)) throw error
    const { op, path } = operations[error.index]!
    return reject(
      `operation ${error.index + 1} of the patch (${op} ${quote(path)}) cannot be applied: ${error.message}`,
    )
  }
}

function checkGrowth(document: Json, maxBytes: number): void {
  if (JSON.stringify(document).length > maxBytes)
    throw new PatchError(`the payload would be larger than ${maxBytes} bytes`)
}

/** The JSON of a payload, if writing it again changes nothing that the patch does not name. */
function parsePayload({ bytes, contentType, reference }: Payload): Json {
  const advice = 'replace it with `payload` instead'
  if (reference !== undefined)
    return reject(`the payload is only a reference, so it cannot be patched: ${advice}`)
  if (kindOf(contentType) !== 'json')
    return reject(
      `a patch needs a JSON payload, this one is ${contentType.slice(0, 80)}: ${advice}`,
    )
  let inexact: string | undefined
  const checkNumber = (key: string, value: Json, context?: { source?: string }): Json => {
    if (typeof value === 'number' && !isExact(value, context?.source)) inexact ??= key
    return value
  }
  let document: Json
  try {
    const text = decodeText(bytes, contentType).replace(/^\ufeff/, '')
    document = JSON.parse(text, checkNumber) as Json
  } catch {
    return reject(`the payload is not valid JSON, so it cannot be patched: ${advice}`)
  }
  if (inexact !== undefined)
    return reject(
      `the payload has a number under ${quote(inexact)} that JavaScript cannot represent exactly, so a patch would change it: ${advice}, as bytes`,
    )
  return document
}

/** Whether a number is written with the same digits as it was read. */
function isExact(value: number, source: string | undefined): boolean {
  return source === undefined || digitsOf(source) === digitsOf(String(value))
}

function digitsOf(number: string): string {
  return number.replace(/e.*$/i, '').replaceAll(/[-.]/g, '').replace(/^0+/, '').replace(/0+$/, '')
}

function reject(why: string): never {
  throw new RedriveError('INVALID_INPUT', why)
}
