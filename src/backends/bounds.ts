import { RedriveError } from '../errors.ts'
import { lineage } from '../letter/lineage.ts'

/** Twelve hours. */
export const maxVisibilitySeconds = 43_200
export const maxNameLength = 200

/** Returns a number within its bounds, or throws INVALID_INPUT with the bounds. */
export function bounded(what: string, value: number, most: number, least = 0): number {
  if (typeof value === 'number' && value >= least && value <= most) return value
  throw new RedriveError(
    'INVALID_INPUT',
    `${what} must be from ${least} to ${most}, got ${formatValue(value)}`,
  )
}

/** Like `bounded`, for integers. */
export function whole(what: string, value: number, most: number, least = 1): number {
  if (Number.isInteger(bounded(what, value, most, least))) return value
  throw new RedriveError(
    'INVALID_INPUT',
    `${what} must be a whole number, got ${formatValue(value)}`,
  )
}

// oxlint-disable-next-line no-control-regex -- control characters are what is looked for
const controlCharacter = /[\u0000-\u001f\u007f]/
const allControlCharacters = new RegExp(controlCharacter, 'g')

/**
 * Names, ids and headers go through many protocols: they are strings without control characters or
 * lone surrogates.
 */
function isPortable(value: unknown, most: number, least = 1): value is string {
  return (
    typeof value === 'string' &&
    value.length >= least &&
    value.length <= most &&
    !controlCharacter.test(value) &&
    value.isWellFormed()
  )
}

/** Returns a string that every protocol can carry, or throws INVALID_INPUT. */
export function printable(what: string, value: string, most: number = maxNameLength): string {
  if (isPortable(value, most)) return value
  throw new RedriveError(
    'INVALID_INPUT',
    `${what} must have 1 to ${most} characters without control characters, got ${formatValue(value)}`,
  )
}

/** Percent-encodes the characters of a foreign string that some protocol cannot carry. */
export function toPortable(text: string): string {
  return text
    .toWellFormed()
    .replaceAll(allControlCharacters, (character) => encodeURIComponent(character))
}

/** A foreign content type if every protocol can carry it, otherwise that of bytes. */
export function toPortableType(contentType: string): string {
  return isPortable(contentType, maxNameLength) ? contentType : 'application/octet-stream'
}

/**
 * Lineage headers of a replay. They do not count, since the message may have as many headers as
 * allowed.
 */
const lineageHeaders = new Set<string>(Object.values(lineage))

/** Checks the number of headers, and that every protocol can carry them. */
export function checkHeaders(headers: Record<string, string>): void {
  const names = Object.keys(headers)
  const count = names.filter((name) => !lineageHeaders.has(name)).length
  if (count > 100)
    throw new RedriveError('INVALID_INPUT', `a message has at most 100 headers, got ${count}`)
  for (const name of names) {
    printable('the name of a header', name, 100)
    if (!isPortable(headers[name], 8192, 0))
      throw new RedriveError(
        'INVALID_INPUT',
        `header ${name} must be a string of at most 8,192 characters without control characters`,
      )
  }
}

/** Formats a rejected value, shortened, if it is a string or a number. */
function formatValue(value: unknown): string {
  return typeof value === 'string' || typeof value === 'number'
    ? JSON.stringify(value).slice(0, 40)
    : typeof value
}
