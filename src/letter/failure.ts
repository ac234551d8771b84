import type { Failure } from './letter.ts'
import { toMs, type Timestamp } from './time.ts'

/** How many characters are kept. Each level of causes keeps half as much as the one above it. */
const limits = { name: 200, code: 100, message: 8 * 1024, stack: 16 * 1024 }
const maxDepth = 5
const maxPerLevel = 5
const maxRetryAfterMs = 30 * 24 * 3_600_000

/**
 * Turns anything that was thrown into a `Failure`. It never throws, whatever the thing does when it is read, and
 * the result is bounded, detached from what was thrown, and well-formed text; what was cut or left out is said
 * in the text itself.
 */
export function toFailure(thrown: unknown, at: Timestamp): Failure {
  try {
    return tell(thrown, { at, above: [], taken: [] })
  } catch {
    return { name: 'unknown', message: 'what was thrown could not be read', causes: [], at }
  }
}

/** The walk down the causes: what lies above the one that is read, and how many each level has so far. */
interface Walk {
  at: Timestamp
  above: object[]
  taken: number[]
}

function tell(thrown: unknown, walk: Walk): Failure {
  const { at } = walk
  const depth = walk.above.length
  if (!isObject(thrown)) {
    const name = thrown === null ? 'null' : typeof thrown
    return { name, message: clean(preview(thrown), limits.message >> depth), causes: [], at }
  }
  const message = read(thrown, 'message')
  const stack = read(thrown, 'stack')
  const errorLike = typeof message === 'string' || typeof stack === 'string'
  const { causes, note } = causesOf(thrown, walk)
  const failure: Failure = {
    name: clean(nameOf(thrown, errorLike), limits.name),
    message: clean(preview(message ?? thrown), limits.message >> depth) + note,
    causes,
    at,
  }
  const code = codeOf(thrown)
  if (code !== undefined) failure.code = code
  const response = read(thrown, 'response')
  const status = statusOf(thrown) ?? statusOf(response)
  if (status !== undefined) failure.status = status
  const retryAfterMs = retryAfterOf(thrown, response, at)
  if (retryAfterMs !== undefined) failure.retryAfterMs = retryAfterMs
  if (typeof stack === 'string') failure.stack = clean(stack, limits.stack >> depth)
  return failure
}

function causesOf(thing: object, walk: Walk): { causes: Failure[]; note: string } {
  const cause = read(thing, 'cause')
  const errors = read(thing, 'errors')
  // Some libraries have a method of this name.
  const single = cause === undefined || cause === null || typeof cause === 'function' ? 0 : 1
  const total = single + (isList(errors) ? lengthOf(errors) : 0)
  if (total === 0) return { causes: [], note: '' }

  walk.above.push(thing)
  const depth = walk.above.length
  const causes: Failure[] = []
  let circular = 0
  while (causes.length + circular < total && circular < maxPerLevel && hasRoom(walk, depth)) {
    const index = causes.length + circular
    const next = index < single ? cause : read(errors, index - single)
    if (isObject(next) && walk.above.includes(next)) {
      circular += 1
      continue
    }
    walk.taken[depth] = (walk.taken[depth] ?? 0) + 1
    causes.push(tell(next, walk))
  }
  walk.above.pop()
  const leftOut = total - causes.length - circular
  const loop = circular > 0 ? ' [its cause leads back to itself]' : ''
  const more =
    leftOut > 0 ? ` [${leftOut} more ${leftOut === 1 ? 'cause' : 'causes'} left out]` : ''
  return { causes, note: loop + more }
}

function hasRoom(walk: Walk, depth: number): boolean {
  return depth <= maxDepth && (walk.taken[depth] ?? 0) < maxPerLevel
}

/** The name that it gives itself; the name of its class when that says more; otherwise what it is. */
function nameOf(thing: object, errorLike: boolean): string {
  const own = errorLike ? read(thing, 'name') : undefined
  if (typeof own === 'string' && own !== '' && own !== 'Error') return own
  if (typeof thing === 'function') return 'function'
  const made = read(read(thing, 'constructor'), 'name')
  return typeof made === 'string' && made !== '' && made !== 'Object' ? made : 'object'
}

function codeOf(thing: object): string | undefined {
  const code = read(thing, 'code')
  if (typeof code === 'string' && code !== '') return clean(code, limits.code)
  // The numbers of a DOMException are a relic that says less than its name and collides with those of gRPC.
  if (typeof code !== 'number' || read(thing, 'constructor') === DOMException) return undefined
  return String(code)
}

function statusOf(thing: unknown): number | undefined {
  return httpStatus(read(thing, 'status')) ?? httpStatus(read(thing, 'statusCode'))
}

function httpStatus(value: unknown): number | undefined {
  const fits = typeof value === 'number' && Number.isInteger(value) && value >= 100 && value <= 599
  return fits ? value : undefined
}

function retryAfterOf(thing: object, response: unknown, at: Timestamp): number | undefined {
  return (
    bounded(read(thing, 'retryAfterMs')) ??
    waitOf(read(thing, 'retryAfter'), at) ??
    waitOf(retryAfterHeader(read(thing, 'headers')), at) ??
    waitOf(retryAfterHeader(read(response, 'headers')), at)
  )
}

const httpDate = /^[A-Z][a-z]{2,8}, \d\d[ -][A-Z][a-z]{2}[ -]\d{2,4} \d\d:\d\d:\d\d GMT$/

/** Seconds, as a number or as text, or a date of HTTP. */
function waitOf(value: unknown, at: Timestamp): number | undefined {
  if (typeof value === 'number') return bounded(value * 1000)
  if (typeof value !== 'string' || value.length > 100) return undefined
  const text = value.trim()
  if (/^\d+(\.\d+)?$/.test(text)) return bounded(Number(text) * 1000)
  return httpDate.test(text) ? bounded(Date.parse(text) - toMs(at)) : undefined
}

function bounded(ms: unknown): number | undefined {
  return typeof ms === 'number' && ms >= 0 ? Math.min(Math.ceil(ms), maxRetryAfterMs) : undefined
}

const maxHeaders = 1000

/** Headers come as a plain object in any spelling, as a Map, or as Headers; the latter two give pairs. */
function retryAfterHeader(headers: unknown): unknown {
  if (!isObject(headers)) return undefined
  try {
    const names = Symbol.iterator in headers ? (headers as Iterable<unknown>) : Object.keys(headers)
    let seen = 0
    for (const entry of names) {
      const name = typeof entry === 'string' ? entry : read(entry, 0)
      if (typeof name === 'string' && name.toLowerCase() === 'retry-after') {
        const value = typeof entry === 'string' ? read(headers, entry) : read(entry, 1)
        return isList(value) ? read(value, 0) : value
      }
      if (++seen >= maxHeaders) break
    }
  } catch {
    // Headers that cannot be read say nothing.
  }
  return undefined
}

function isObject(value: unknown): value is object {
  return (typeof value === 'object' && value !== null) || typeof value === 'function'
}

function isList(value: unknown): value is readonly unknown[] {
  try {
    return Array.isArray(value)
  } catch {
    return false // A revoked proxy.
  }
}

function lengthOf(list: object): number {
  const length = read(list, 'length')
  return typeof length === 'number' && Number.isSafeInteger(length) && length > 0 ? length : 0
}

/** The one way to read a property here: what throws is as good as absent. */
function read(thing: unknown, key: PropertyKey): unknown {
  if (!isObject(thing)) return undefined
  try {
    return (thing as Record<PropertyKey, unknown>)[key]
  } catch {
    return undefined
  }
}

const encoder = new TextEncoder()
const decoder = new TextDecoder('utf-8', { ignoreBOM: true })

/** Well-formed and bounded. What is cut is copied: a slice would hold the whole of a long text in memory. */
function clean(text: string, limit: number): string {
  if (text.length <= limit) return text.toWellFormed()
  const splitsPair = (text.charCodeAt(limit - 1) & 0xfc00) === 0xd800
  const kept = decoder.decode(encoder.encode(text.slice(0, splitsPair ? limit - 1 : limit)))
  return `${kept}… [cut, ${text.length} characters]`
}

const maxPreviewed = 20

/** A short text for anything: a glance at what it holds, one level deep. */
function preview(value: unknown, inside = false): string {
  if (typeof value === 'string') return inside ? JSON.stringify(value.slice(0, 200)) : value
  if (typeof value === 'bigint') return smallBigInt(value)
  if (!isObject(value)) return String(value)
  if (typeof value === 'function') {
    const name = read(value, 'name')
    return typeof name === 'string' && name !== '' ? `function ${name}` : 'function'
  }
  if (inside) return isList(value) ? '[…]' : '{…}'
  try {
    // A boxed string has as many keys as characters.
    const boxed = Object.prototype.toString.call(value) === '[object String]'
    return isList(value) || ArrayBuffer.isView(value) || boxed
      ? previewList(value as unknown as ArrayLike<unknown>)
      : previewFields(value)
  } catch {
    return 'an object that cannot be read'
  }
}

function previewList(list: ArrayLike<unknown>): string {
  const parts = Array.from({ length: Math.min(list.length, maxPreviewed) }, (_, index) =>
    preview(read(list, index), true),
  )
  if (list.length > maxPreviewed) parts.push(`… ${list.length} in all`)
  return `[${parts.join(', ')}]`
}

function previewFields(thing: object): string {
  const keys = Object.keys(thing)
  const parts = keys
    .slice(0, maxPreviewed)
    .map((key) => `${key.slice(0, 100)}: ${preview(read(thing, key), true)}`)
  if (keys.length > maxPreviewed) parts.push(`… ${keys.length} in all`)
  return `{${parts.join(', ')}}`
}

/** The digits of a huge one can take minutes to compute. */
function smallBigInt(value: bigint): string {
  return BigInt.asIntN(4096, value) === value ? value.toString() : 'a bigint of over 4096 bits'
}
