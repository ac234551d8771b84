import type { Payload } from './letter.ts'
import { decodeValue } from './value-reader.ts'
import { encodeValue, isPlain, maxDepth, maxNodes } from './value-writer.ts'

/**
 * Content type of a JS value that plain JSON cannot represent; `value-writer.ts` defines the
 * format.
 */
export const valueType = 'application/vnd.redrive.value+json'

const encoder = new TextEncoder()

/** The memory of the payload bytes. */
interface Memory {
  copyOf(bytes: Uint8Array): Uint8Array
  utf8(text: string): Uint8Array
}

const ownMemory: Memory = {
  copyOf: (bytes) => new Uint8Array(bytes),
  utf8: (text) => encoder.encode(text),
}

const typedArray = Object.getPrototypeOf(Uint8Array.prototype) as object

/**
 * Shared memory for small payloads, five times as fast. Only for bytes that are sent soon and not
 * exposed to callers.
 */
export const shared: Memory = {
  copyOf(bytes) {
    // The real length, even if the object overrides `length`: a longer copy would expose memory.
    const copy = Buffer.allocUnsafe(Reflect.get(typedArray, 'length', bytes) as number)
    copy.set(bytes)
    return copy
  },
  utf8: (text) => Buffer.from(text),
}

/**
 * Encodes a value as version 1 of a payload, as a copy. Bytes are stored unchanged; a string with a
 * content type as UTF-8; any other value as JSON, with markers for values that JSON cannot
 * represent, and `lossy` if something was lost. Never throws.
 */
export function encodePayload(
  value: unknown,
  contentType?: string,
  memory: Memory = ownMemory,
): Payload {
  const bytes = bytesOf(value, memory)
  if (bytes) return payload(bytes, contentType ?? 'application/octet-stream')
  if (typeof value === 'string' && contentType !== undefined)
    return payload(memory.utf8(value), asUtf8(contentType), !value.isWellFormed())
  const json = jsonOf(value)
  if (json !== undefined) {
    const given = contentType !== undefined && kindOf(contentType) === 'json'
    return payload(memory.utf8(json), given ? asUtf8(contentType) : 'application/json')
  }
  const { text, lossy } = encodeValue(value)
  return payload(memory.utf8(text), valueType, lossy)
}

/**
 * Decodes the bytes by content type to a new value: parsed JSON, a string, or a Buffer. Throws a
 * SyntaxError or TypeError if the bytes do not match the type; the message does not quote them.
 */
export function decodePayload(payload: Pick<Payload, 'bytes' | 'contentType'>): unknown {
  const { bytes, contentType } = payload
  const kind = kindOf(contentType)
  if (kind === 'bytes') return Buffer.from(bytes)
  const text = decodeText(bytes, contentType)
  if (kind === 'text') return text
  // Some writers put a byte order mark before JSON.
  const json = text.startsWith('\ufeff') ? text.slice(1) : text
  if (kind === 'value') return decodeValue(json)
  try {
    return JSON.parse(json)
  } catch {
    throw new SyntaxError('the payload is not valid JSON')
  }
}

/** How bytes of this content type are decoded. */
export function kindOf(contentType: string): 'json' | 'value' | 'text' | 'bytes' {
  const essence = contentType.split(';', 1)[0]!.trim().toLowerCase()
  if (essence === 'application/json' || essence === 'text/json') return 'json'
  if (essence === valueType) return 'value'
  if (essence.endsWith('+json')) return 'json'
  const textual = /^text\/|\+xml$|^application\/(xml|x-www-form-urlencoded|x-ndjson|graphql|yaml)$/
  return textual.test(essence) ? 'text' : 'bytes'
}

const utf8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })
const charset = /;\s*charset\s*=\s*"?([^\s;"]+)"?/i

/**
 * Decodes bytes by the charset of the content type. Default: UTF-8. Throws a TypeError if they are
 * invalid; `partial` allows an incomplete last character.
 */
export function decodeText(bytes: Uint8Array, contentType: string, partial = false): string {
  const label = charset.exec(contentType)?.[1] ?? 'utf-8'
  try {
    if (label === 'utf-8' && !partial) return utf8.decode(bytes)
    const decoder = new TextDecoder(label, { fatal: true, ignoreBOM: true })
    return decoder.decode(bytes, { stream: partial })
  } catch {
    throw new TypeError(`the payload is not text in ${label.slice(0, 40)}`)
  }
}

/** The content type with charset UTF-8, which is what we write. */
function asUtf8(contentType: string): string {
  const label = charset.exec(contentType)?.[1] ?? 'utf-8'
  return /^utf-?8$/i.test(label) ? contentType : contentType.replace(charset, '; charset=utf-8')
}

function payload(bytes: Uint8Array, contentType: string, lossy = false): Payload {
  const encoded: Payload = { bytes, contentType, size: bytes.byteLength, version: 1 }
  if (lossy) encoded.lossy = true
  return encoded
}

/** A copy if the value is an ArrayBuffer or Uint8Array of any realm. Undefined otherwise. */
function bytesOf(value: unknown, memory: Memory): Uint8Array | undefined {
  if (typeof value !== 'object' || value === null) return undefined
  try {
    const tag = Object.prototype.toString.call(value)
    if (tag === '[object ArrayBuffer]')
      return new Uint8Array(ArrayBuffer.prototype.slice.call(value, 0))
    const isBytes = ArrayBuffer.isView(value) && tag === '[object Uint8Array]'
    return isBytes ? memory.copyOf(value as Uint8Array) : undefined
  } catch {
    return undefined // The tag is false, or the buffer was transferred.
  }
}

/** The value as JSON, if JSON represents it exactly. Undefined otherwise. */
function jsonOf(value: unknown): string | undefined {
  try {
    return isFaithful(value, 0, { nodes: 0 }) ? JSON.stringify(value) : undefined
  } catch {
    return undefined
  }
}

/**
 * Whether JSON.parse returns the same value that JSON.stringify gets. A fast check: a cycle is
 * detected by its depth, and a shared object is counted each time. A getter that returns another
 * value the second time is not detected.
 */
function isFaithful(value: unknown, depth: number, count: { nodes: number }): boolean {
  switch (typeof value) {
    case 'string':
    case 'boolean':
      return true
    case 'number':
      return Number.isFinite(value) && !Object.is(value, -0)
    case 'object':
      break
    default:
      return false
  }
  if (value === null) return true
  if (depth > maxDepth || !isPlain(Object.getPrototypeOf(value))) return false
  if (Object.getOwnPropertySymbols(value).length > 0) return false
  if (typeof (value as { toJSON?: unknown }).toJSON === 'function') return false
  if (Array.isArray(value)) {
    count.nodes += value.length
    // An array that also has named properties has more keys than elements.
    if (count.nodes > maxNodes || Object.keys(value).length !== value.length) return false
    for (const item of value as unknown[]) if (!isFaithful(item, depth + 1, count)) return false
    return true
  }
  const fields = value as Record<string, unknown>
  for (const key in fields)
    if (++count.nodes > maxNodes || !isFaithful(fields[key], depth + 1, count)) return false
  return true
}
