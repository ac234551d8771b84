/** A moment as it stands in a letter: ISO-8601, UTC, milliseconds. Such strings sort as the moments do. */
export type Timestamp = string

/** Years beyond 9999 are written with a sign, and would no longer sort as text. */
const lastMs = Date.UTC(9999, 11, 31, 23, 59, 59, 999)

/** Moments come in bursts: the last one made is often the next one asked for. */
let last = { ms: Number.NaN, at: '' }

/** Milliseconds to a moment. Moments before 1970 or after 9999 are pulled back to those ends. */
export function toTimestamp(ms: number): Timestamp {
  if (ms !== last.ms)
    last = { ms, at: new Date(Math.min(Math.max(Math.trunc(ms), 0), lastMs)).toISOString() }
  return last.at
}

/** A moment to milliseconds. NaN when the text is no moment. */
export function toMs(at: Timestamp): number {
  return Date.parse(at)
}
