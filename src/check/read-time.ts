import { RedriveError } from '../errors.ts'
import { toTimestamp, type Timestamp } from '../letter/time.ts'
import { describeValue } from './keys.ts'

/** What `isTime` accepts, for error messages. */
export const timeForm = 'a Date or an ISO-8601 time such as 2026-01-31T09:30:00Z'

const isoTime =
  /^((?:[+-]\d\d)?\d{4}-\d\d-(\d\d))(?:[T ]\d\d:\d\d(?::\d\d(?:\.\d+)?)?(?:Z|[+-]\d\d:?\d\d)?)?$/i

/**
 * The milliseconds of a time that a user gave. NaN if the value is neither a Date nor an ISO-8601
 * string with at least a date. A string without an offset is in local time.
 */
export function parseTime(value: unknown): number {
  if (value instanceof Date) return value.getTime()
  // Date.parse accepts almost anything with a number in it: "5" is a day in May 2001.
  const match = typeof value === 'string' ? isoTime.exec(value) : null
  if (!match) return Number.NaN
  const [time, date, day] = match
  // Date.parse turns February 30 into March 2.
  return new Date(date!).getUTCDate() === Number(day) ? Date.parse(time) : Number.NaN
}

export function isTime(value: unknown): value is string | Date {
  return !Number.isNaN(parseTime(value))
}

/** The timestamp of a time that a user gave as the option `name`. */
export function readTime(name: string, value: unknown): Timestamp {
  const ms = parseTime(value)
  if (!Number.isNaN(ms)) return toTimestamp(ms)
  throw new RedriveError(
    'INVALID_INPUT',
    `\`${name}\` must be ${timeForm}, got ${describeValue(value)}`,
  )
}
