import { remembered } from './remembered.ts'

/**
 * A moment as it stands in a letter: ISO-8601, UTC, milliseconds. Such strings sort as the moments
 * do.
 */
export type Timestamp = string

/** Years beyond 9999 are written with a sign, and would no longer sort as text. */
const lastMs = Date.UTC(9999, 11, 31, 23, 59, 59, 999)

/**
 * A whole minute up to its seconds: "2026-01-04T09:30:". Moments come in bursts: the minutes of
 * now, and of when to try again, are asked for over and over.
 */
const minuteOf = remembered(100, (ms: number) => new Date(ms).toISOString().slice(0, 17))

/**
 * The last millisecond of which there is a date at all. What comes from outside and lies beyond is
 * no moment.
 */
export const latestMs = 8.64e15

/** Milliseconds to a moment. Moments before 1970 or after 9999 are pulled back to those ends. */
export function toTimestamp(ms: number): Timestamp {
  const whole = Math.min(Math.max(Math.trunc(ms), 0), lastMs)
  const rest = whole % 60_000
  const second = Math.floor(rest / 1000)
  return `${minuteOf(whole - rest)}${digits(second, 2)}.${digits(rest - second * 1000, 3)}Z`
}

const digits = (value: number, count: number): string => String(value).padStart(count, '0')

/** A moment to milliseconds. NaN when the text is no moment. */
export function toMs(at: Timestamp): number {
  return Date.parse(at)
}

/** Whether a string is a timestamp in the one form that letters use: 2026-01-01T00:00:00.000Z. */
export function isTimestamp(value: string): boolean {
  const ms = Date.parse(value)
  return !Number.isNaN(ms) && new Date(ms).toISOString() === value
}
