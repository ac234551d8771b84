/**
 * Header values of AMQP: strings, numbers, booleans, null, bytes, timestamps, decimals, arrays and
 * tables. The client reads them as JavaScript values, and marks timestamps and decimals as `{ '!':
 * type, value }`. It does not tell apart: integers of different width, a double or float without a
 * fraction from an integer, a float from a double.
 */
import type { Json } from '../../letter/letter.ts'

/**
 * Encodes a value as JSON that `fromJson` decodes. Bytes become `{ "!": "bytes", "value": base64
 * }`.
 */
export function toJson(value: unknown): Json {
  if (Buffer.isBuffer(value)) return { '!': 'bytes', value: value.toString('base64') }
  if (typeof value === 'number' && !Number.isFinite(value))
    return { '!': 'double', value: String(value) }
  if (Array.isArray(value)) return value.map(toJson)
  if (typeof value === 'object' && value !== null)
    return Object.fromEntries(Object.entries(value).map(([key, inner]) => [key, toJson(inner)]))
  return value as Json
}

/**
 * Decodes a value for the client. Integers get the width that most clients use: 32 bits, or 64 if
 * needed.
 */
export function fromJson(json: unknown): unknown {
  if (typeof json === 'number' && Number.isInteger(json))
    return { '!': json === (json | 0) ? 'int' : 'long', value: json }
  if (Array.isArray(json)) return json.map(fromJson)
  if (typeof json !== 'object' || json === null) return json
  const { '!': type, value } = json as { '!'?: unknown; value?: unknown }
  if (type === 'bytes' && typeof value === 'string') return Buffer.from(value, 'base64')
  if (type === 'double') return { '!': 'double', value: Number(value) }
  if (type === 'timestamp' || type === 'decimal') return json
  return Object.fromEntries(Object.entries(json).map(([key, inner]) => [key, fromJson(inner)]))
}

/** Formats a value as a string: a string itself, anything else as JSON. */
export function formatValue(value: unknown): string {
  return typeof value === 'string' ? value : JSON.stringify(toJson(value))
}

/**
 * Why the value that was read differs from the one that was sent, or undefined if it does not. The
 * client reads 64-bit integers as numbers, replaces invalid UTF-8 in strings, and cannot send a
 * table with the key `!`.
 */
export function lossOf(value: unknown): string | undefined {
  if (typeof value === 'number')
    return Number.isInteger(value) && !Number.isSafeInteger(value)
      ? 'a 64-bit integer beyond 2^53 was rounded'
      : undefined
  if (typeof value === 'string')
    return value.includes('\ufffd') ? 'a string was not UTF-8' : undefined
  if (typeof value !== 'object' || value === null || Buffer.isBuffer(value)) return undefined
  if (Object.hasOwn(value, '!')) return lossOfMarked(value as { '!': unknown; value?: unknown })
  if (!Array.isArray(value) && Object.getPrototypeOf(value) !== Object.prototype)
    return 'a table has the key "__proto__"'
  for (const inner of Object.values(value)) {
    const loss = lossOf(inner)
    if (loss !== undefined) return loss
  }
  return undefined
}

function lossOfMarked({ '!': type, value }: { '!': unknown; value?: unknown }): string | undefined {
  if (type === 'timestamp')
    return Number.isSafeInteger(value) ? undefined : 'a timestamp beyond 2^53 was rounded'
  if (type !== 'decimal') return 'a table has the key "!"'
  const { digits } = value as { digits: number }
  return digits > 0x7fffffff ? 'the sign of a decimal was lost' : undefined
}
