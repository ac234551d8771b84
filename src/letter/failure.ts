import { readJavaTrace, simpleName } from './java-trace.ts'
import type { Failure } from './letter.ts'
import { isList, isObject, read } from './reading.ts'
import { toMs, type Timestamp } from './time.ts'

/** Maximum lengths. Each level of causes has half of the limit of the level above it. */
const limits = { name: 200, code: 100, message: 8 * 1024, stack: 16 * 1024 }
const maxDepth = 5
const maxPerLevel = 5
const maxRetryAfterMs = 30 * 24 * 3_600_000

/**
 * Converts any thrown value to a `Failure`. It never throws, even if reading the value throws. The
 * result is bounded, a copy, and well-formed Unicode; markers in the strings show what was cut.
 */
export function toFailure(thrown: unknown, at: Timestamp): Failure {
  try {
    return convert(thrown, { at, above: [], counts: [] })
  } catch {
    return { name: 'unknown', message: 'the thrown value could not be read', causes: [], at }
  }
}

/** Whether a value has the form of a `Failure`, such as the failure of a letter. Never throws. */
export function isFailure(value: unknown, depth = 0): value is Failure {
  if (!isObject(value) || depth > maxDepth) return false
  const causes = read(value, 'causes')
  return (
    ['name', 'message', 'at'].every((key) => typeof read(value, key) === 'string') &&
    isList(causes) &&
    causes.length <= maxPerLevel &&
    causes.every((cause) => isFailure(cause, depth + 1))
  )
}

/**
 * State of the walk through the causes: the values above the current one, and the number per level.
 */
interface Walk {
  at: Timestamp
  above: object[]
  counts: number[]
}

function convert(thrown: unknown, walk: Walk): Failure {
  const { at } = walk
  const depth = walk.above.length
  if (!isObject(thrown)) {
    const name = thrown === null ? 'null' : typeof thrown
    return { name, message: limitText(preview(thrown), limits.message >> depth), causes: [], at }
  }
  const message = read(thrown, 'message')
  const stack = read(thrown, 'stack')
  const errorLike = typeof message === 'string' || typeof stack === 'string'
  const { causes, note } = causesOf(thrown, walk)
  const failure: Failure = {
    name: limitText(nameOf(thrown, errorLike), limits.name),
    message: limitText(preview(message ?? thrown), limits.message >> depth) + note,
    causes,
    at,
  }
  const code = codeOf(thrown)
  if (code !== undefined) failure.code = code
  const response = read(thrown, 'response') ?? read(thrown, '$response')
  const status = statusOf(thrown) ?? statusOf(response)
  if (status !== undefined) failure.status = status
  const retryAfterMs =
    retryAfterOf(thrown, response, status, at) ?? parseWaitInMessage(failure.message)
  if (retryAfterMs !== undefined) failure.retryAfterMs = retryAfterMs
  if (typeof stack === 'string') failure.stack = limitText(stack, limits.stack >> depth)
  return failure
}

function causesOf(thing: object, walk: Walk): { causes: Failure[]; note: string } {
  const errors = read(thing, 'errors')
  const cause = causeOf(thing) ?? (isList(errors) ? undefined : javaCauseOf(thing))
  // In some libraries `cause` is a method.
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
    walk.counts[depth] = (walk.counts[depth] ?? 0) + 1
    causes.push(convert(next, walk))
  }
  walk.above.pop()
  const leftOut = total - causes.length - circular
  const loop = circular > 0 ? ' [its cause leads back to itself]' : ''
  const more =
    leftOut > 0 ? ` [${leftOut} more ${leftOut === 1 ? 'cause' : 'causes'} left out]` : ''
  return { causes, note: loop + more }
}

/** Properties with the wrapped error in libraries that predate `cause`. */
const wrapperKeys = ['error', 'original', 'originalError', 'driverError', 'parent']

function causeOf(thing: object): unknown {
  const cause = read(thing, 'cause')
  if (cause !== undefined && cause !== null) return cause
  for (const key of wrapperKeys) {
    const inner = read(thing, key)
    if (typeof read(inner, 'stack') === 'string') return inner
  }
  return undefined
}

/**
 * Of a long chain, the first causes show what was tried and the last ones what failed. The middle
 * is left out.
 */
const firstCauses = 2

/**
 * The cause in the "Caused by" lines of a Java stack trace, with its own causes. If the trace
 * begins with outer errors, only the lines below the name of this error count.
 */
function javaCauseOf(thing: object): unknown {
  const stack = read(thing, 'stack')
  if (typeof stack !== 'string' || !stack.includes('\nCaused by: ')) return undefined
  const thrown = readJavaTrace(stack)
  const name = read(thing, 'name')
  const own = thrown.findIndex(({ type }) => type === name || simpleName(type) === name)
  const causes = thrown.slice(Math.max(own, 0) + 1)
  if (causes.length > maxDepth) causes.splice(firstCauses, causes.length - maxDepth)
  return causes.reduceRight<unknown>(
    (cause, { type, message, stack }) => ({ name: simpleName(type), message, stack, cause }),
    undefined,
  )
}

function hasRoom(walk: Walk, depth: number): boolean {
  return depth <= maxDepth && (walk.counts[depth] ?? 0) < maxPerLevel
}

/**
 * The `name` of an error, or the name of its class if that is more specific; otherwise the type of
 * the value.
 */
function nameOf(thing: object, errorLike: boolean): string {
  const own = errorLike ? read(thing, 'name') : undefined
  if (typeof own === 'string' && own !== '' && own !== 'Error') return own
  if (typeof thing === 'function') return 'function'
  const className = read(read(thing, 'constructor'), 'name')
  if (typeof className === 'string' && className !== '' && className !== 'Object') return className
  return own === 'Error' ? own : 'object'
}

/**
 * The code of a failure. Kafka clients have the name of the protocol error next to their own code;
 * others have a number or no code, and the name as a type. A killed process has only a signal.
 */
function codeOf(thing: object): string | undefined {
  const code = read(thing, 'code')
  const named = nameLike(read(thing, 'apiId')) ?? (typeof code === 'string' ? code : typeOf(thing))
  if (named !== undefined && named !== '') return limitText(named, limits.code)
  // The legacy numbers of a DOMException say less than its name and collide with gRPC codes.
  if (typeof code === 'number' && read(thing, 'constructor') !== DOMException) return String(code)
  const signal = read(thing, 'signal')
  return typeof signal === 'string' && /^SIG[A-Z]{2,8}$/.test(signal) ? signal : undefined
}

/** The type of the error, of the error inside its response body, or of that body. */
function typeOf(thing: object): string | undefined {
  const body = read(thing, 'error')
  const inner = read(body, 'error')
  return (
    nameLike(read(thing, 'type')) ?? nameLike(read(inner, 'type')) ?? nameLike(read(body, 'type'))
  )
}

/**
 * Names of failures have several words, such as "rate_limit_error" or "NOT_FOUND"; a single word is
 * a kind of object.
 */
function nameLike(value: unknown): string | undefined {
  return typeof value === 'string' && /^[A-Za-z]+(?:_[A-Za-z0-9]+)+$/.test(value.slice(0, 101))
    ? value
    : undefined
}

function statusOf(thing: unknown): number | undefined {
  return (
    httpStatus(read(thing, 'status')) ??
    httpStatus(read(thing, 'statusCode')) ??
    httpStatus(read(read(thing, '$metadata'), 'httpStatusCode'))
  )
}

function httpStatus(value: unknown): number | undefined {
  const fits = typeof value === 'number' && Number.isInteger(value) && value >= 100 && value <= 599
  return fits ? value : undefined
}

function retryAfterOf(
  thing: object,
  response: unknown,
  status: number | undefined,
  at: Timestamp,
): number | undefined {
  return (
    limitWait(read(thing, 'retryAfterMs')) ??
    parseRetryAfter(read(thing, 'retryAfter'), at) ??
    parseWaitInHeaders(read(thing, 'headers'), status, at) ??
    parseWaitInHeaders(read(response, 'headers'), status, at)
  )
}

/** The delay in the headers: retry-after, or the reset time of an exhausted rate limit. */
function parseWaitInHeaders(
  headers: unknown,
  status: number | undefined,
  at: Timestamp,
): number | undefined {
  if (!isObject(headers)) return undefined
  const requested =
    limitWait(numberOf(header(headers, 'retry-after-ms'))) ??
    parseRetryAfter(header(headers, 'retry-after'), at)
  if (requested !== undefined || (status !== 403 && status !== 429)) return requested
  const reset = numberOf(header(headers, 'x-ratelimit-reset'))
  if (reset === undefined || numberOf(header(headers, 'x-ratelimit-remaining')) !== 0)
    return undefined
  // A timestamp in milliseconds or seconds since 1970; smaller numbers are seconds from now.
  const resetMs = reset > 1e11 ? reset : reset * 1000
  return limitWait(reset > 1e9 ? Math.max(0, resetMs - toMs(at)) : resetMs)
}

function numberOf(value: unknown): number | undefined {
  if (typeof value === 'number') return value
  return typeof value === 'string' && value.length <= 100 && /^\d+(\.\d+)?$/.test(value.trim())
    ? Number(value)
    : undefined
}

const unitsMs: ReadonlyMap<string, number> = new Map([
  ...['', 's', 'sec', 'secs', 'second', 'seconds'].map((unit) => [unit, 1000] as const),
  ...['m', 'min', 'mins', 'minute', 'minutes'].map((unit) => [unit, 60_000] as const),
  ...['h', 'hr', 'hrs', 'hour', 'hours'].map((unit) => [unit, 3_600_000] as const),
  ...['d', 'day', 'days'].map((unit) => [unit, 86_400_000] as const),
  ['ms', 1],
])

/**
 * The delay in a message: "retry after 30", "try again in 1.5s", "in 1h2m3s", "in 2 hours and 5
 * minutes". Default unit: seconds.
 */
function parseWaitInMessage(message: string): number | undefined {
  const match =
    /\b(?:retry|again) (?:after|in) (\d{1,7}(?:\.\d{1,6})?)(?![\d:/-]) ?([a-z]{0,10})/i.exec(
      message.slice(0, 1024),
    )
  if (!match) return undefined
  const unit = match[2]!.toLowerCase()
  const unitMs = unitsMs.get(unit)
  if (unitMs === undefined) return undefined
  const rest = unit === '' ? '' : message.slice(match.index + match[0].length, 1100)
  return limitWait(Number(match[1]) * unitMs + parseFurtherWait(rest))
}

const maxParts = 4

/** The further parts of a delay, each with its unit. */
function parseFurtherWait(text: string, part = 1): number {
  const next = /^(?:, ?| and )? ?(\d{1,7}(?:\.\d{1,6})?) ?([a-z]{1,10})/i.exec(text)
  const unitMs = next ? unitsMs.get(next[2]!.toLowerCase()) : undefined
  if (!next || unitMs === undefined || part === maxParts) return 0
  return Number(next[1]) * unitMs + parseFurtherWait(text.slice(next[0].length), part + 1)
}

const httpDate = /^[A-Z][a-z]{2,8}, \d\d[ -][A-Z][a-z]{2}[ -]\d{2,4} \d\d:\d\d:\d\d GMT$/

/** Seconds, as a number or a string, or an HTTP date. */
function parseRetryAfter(value: unknown, at: Timestamp): number | undefined {
  const seconds = numberOf(value)
  if (seconds !== undefined) return limitWait(seconds * 1000)
  const text = typeof value === 'string' && value.length <= 100 ? value.trim() : ''
  return httpDate.test(text) ? limitWait(Date.parse(text) - toMs(at)) : undefined
}

function limitWait(ms: unknown): number | undefined {
  return typeof ms === 'number' && ms >= 0 ? Math.min(Math.ceil(ms), maxRetryAfterMs) : undefined
}

const maxHeaders = 1000

/** Headers may be a plain object in any case, a Map, or a Headers object. */
export function header(headers: unknown, wanted: string): unknown {
  if (!isObject(headers)) return undefined
  try {
    const names = Symbol.iterator in headers ? (headers as Iterable<unknown>) : Object.keys(headers)
    let seen = 0
    for (const entry of names) {
      const name = typeof entry === 'string' ? entry : read(entry, 0)
      if (typeof name === 'string' && name.toLowerCase() === wanted) {
        const value = typeof entry === 'string' ? read(headers, entry) : read(entry, 1)
        return isList(value) ? read(value, 0) : value
      }
      if (++seen >= maxHeaders) break
    }
  } catch {
    // Headers that cannot be read are ignored.
  }
  return undefined
}

function lengthOf(list: object): number {
  const length = read(list, 'length')
  return typeof length === 'number' && Number.isSafeInteger(length) && length > 0 ? length : 0
}

const encoder = new TextEncoder()
const decoder = new TextDecoder('utf-8', { ignoreBOM: true })

/** A well-formed, bounded copy: a slice would keep the whole long string in memory. */
function limitText(text: string, limit: number): string {
  if (text.length <= limit) return text.toWellFormed()
  const splitsPair = (text.charCodeAt(limit - 1) & 0xfc00) === 0xd800
  const cut = decoder.decode(encoder.encode(text.slice(0, splitsPair ? limit - 1 : limit)))
  return `${cut}… [cut, ${text.length} characters]`
}

const maxPreviewed = 20

/** A short preview of any value, one level deep. */
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

/** Computing the digits of a huge bigint can take minutes. */
function smallBigInt(value: bigint): string {
  return BigInt.asIntN(4096, value) === value ? value.toString() : 'a bigint of over 4096 bits'
}
