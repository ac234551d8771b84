import { memoize } from '../../letter/memoize.ts'
import { toTimestamp } from '../../letter/time.ts'

/*
 * Timestamps as columns: milliseconds. Memoized, because the letters of a batch share most of their
 * times.
 */

/** A timestamp in milliseconds. The string is the same again when it is read. */
export const encodeTime = memoize(100, (at: string) => {
  const ms = at.length === 24 && at.endsWith('Z') ? Date.parse(at) : NaN
  if (!Number.isNaN(ms)) return ms
  throw new TypeError(`${JSON.stringify(at)} is not a timestamp such as 2026-01-01T00:00:00.000Z`)
})

export function encodeOptionalTime(at: string | undefined | null): number | null {
  return at === undefined || at === null ? null : encodeTime(at)
}

/** The timestamp that was encoded. `toTimestamp` has none before 1970. */
export const decodeTime = memoize(100, (ms: number) =>
  ms < 0 ? new Date(ms).toISOString() : toTimestamp(ms),
)
