import { memoize } from './memoize.ts'

/**
 * A timestamp in a letter: ISO-8601, UTC, milliseconds. Such strings sort in the order of time.
 */
export type Timestamp = string

/** Years after 9999 are written with a sign, and would not sort as strings. */
const lastMs = Date.UTC(9999, 11, 31, 23, 59, 59, 999)

/**
 * The part of a timestamp before its seconds: "2026-01-04T09:30:". Memoized, because most
 * timestamps are in a few minutes: now, and the next retries.
 */
const minuteOf = memoize(100, (ms: number) => new Date(ms).toISOString().slice(0, 17))

/**
 * The last millisecond that a Date can represent. Larger values from outside are invalid.
 */
export const latestMs = 8.64e15

/** Milliseconds to a timestamp. Values before 1970 or after 9999 are clamped to that range. */
export function toTimestamp(ms: number): Timestamp {
  const whole = Math.min(Math.max(Math.trunc(ms), 0), lastMs)
  const rest = whole % 60_000
  const second = Math.floor(rest / 1000)
  return `${minuteOf(whole - rest)}${digits(second, 2)}.${digits(rest - second * 1000, 3)}Z`
}

const digits = (value: number, count: number): string => String(value).padStart(count, '0')

/** A timestamp to milliseconds. NaN if the string is not a timestamp. */
export function toMs(at: Timestamp): number {
  return Date.parse(at)
}

/** Whether a string is a timestamp in the one form that letters use: 2026-01-01T00:00:00.000Z. */
export function isTimestamp(value: string): boolean {
  const ms = Date.parse(value)
  return !Number.isNaN(ms) && new Date(ms).toISOString() === value
}
