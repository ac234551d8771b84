import { RedriveError } from '../errors.ts'
import { lineage } from '../letter/lineage.ts'

/** Twelve hours. */
export const maxVisibilitySeconds = 43_200
export const maxNameLength = 200

/** A number within its bounds, or INVALID_INPUT that says which they are. */
export function bounded(what: string, value: number, most: number, least = 0): number {
  if (typeof value === 'number' && value >= least && value <= most) return value
  throw new RedriveError(
    'INVALID_INPUT',
    `${what} must be from ${least} to ${most}, got ${told(value)}`,
  )
}

/** The same for what comes in ones. */
export function whole(what: string, value: number, most: number, least = 1): number {
  if (Number.isInteger(bounded(what, value, most, least))) return value
  throw new RedriveError('INVALID_INPUT', `${what} must be a whole number, got ${told(value)}`)
}

// oxlint-disable-next-line no-control-regex -- control characters are what is looked for
const unfit = /[\u0000-\u001f\u007f]/
const everyUnfit = new RegExp(unfit, 'g')

/** Names, ids and headers go over many wires: they are text without control characters or half characters. */
function isFit(value: unknown, most: number, least = 1): value is string {
  return (
    typeof value === 'string' &&
    value.length >= least &&
    value.length <= most &&
    !unfit.test(value) &&
    value.isWellFormed()
  )
}

/** Text that any wire can carry, or INVALID_INPUT. */
export function printable(what: string, value: string, most: number = maxNameLength): string {
  if (isFit(value, most)) return value
  throw new RedriveError(
    'INVALID_INPUT',
    `${what} has 1 to ${most} characters without control characters, got ${told(value)}`,
  )
}

/** Text of others so that any wire can carry it: what cannot go stands there as in a URL. */
export function carried(text: string): string {
  return text.toWellFormed().replaceAll(everyUnfit, (character) => encodeURIComponent(character))
}

/** A content type of others, where any wire can carry it; else that of bytes. */
export function carriedType(said: string): string {
  return isFit(said, maxNameLength) ? said : 'application/octet-stream'
}

/** By these a replay tells of the past of a message, which may have as many of its own as there can be. */
const ours = new Set<string>(Object.values(lineage))

/** There is an end to headers, and each goes over any wire. */
export function checkHeaders(headers: Record<string, string>): void {
  const names = Object.keys(headers)
  const count = names.filter((name) => !ours.has(name)).length
  if (count > 100) throw new RedriveError('INVALID_INPUT', `100 headers at the most, got ${count}`)
  for (const name of names) {
    printable('the name of a header', name, 100)
    if (!isFit(headers[name], 8192, 0))
      throw new RedriveError(
        'INVALID_INPUT',
        `header ${name} must be a text of 8,192 characters at the most without control characters`,
      )
  }
}

/** What was given, short, and only if it is something simple. */
function told(value: unknown): string {
  return typeof value === 'string' || typeof value === 'number'
    ? JSON.stringify(value).slice(0, 40)
    : typeof value
}
