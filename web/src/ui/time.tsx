import { useNow, usePreferences } from '../app/preferences.tsx'
import { formatDuration, formatRelative, formatTimestamp } from '../format/time.ts'

/** A time as the distance from now. The exact time is in the tooltip. */
export function Time({ at }: { at: string }) {
  const { zone } = usePreferences()
  const now = useNow()
  return (
    <time dateTime={at} title={formatTimestamp(at, zone)} className="numbers">
      {formatRelative(at, now)}
    </time>
  )
}

/** A time in full, with the distance from now in the tooltip. */
export function Timestamp({ at }: { at: string }) {
  const { zone } = usePreferences()
  const now = useNow()
  return (
    <time dateTime={at} title={formatRelative(at, now)} className="numbers">
      {formatTimestamp(at, zone)}
    </time>
  )
}

/** How long ago a time was: `3 d 4 h`. */
export function Age({ since }: { since: string }) {
  const { zone } = usePreferences()
  const now = useNow()
  return (
    <time dateTime={since} title={formatTimestamp(since, zone)} className="numbers">
      {formatDuration(Math.max(0, now - Date.parse(since)))}
    </time>
  )
}
