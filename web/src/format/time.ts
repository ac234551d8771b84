export type TimeZone = 'local' | 'UTC'

const secondMs = 1000
const minuteMs = 60 * secondMs
const hourMs = 60 * minuteMs
const dayMs = 24 * hourMs

const steps = [
  ['d', dayMs],
  ['h', hourMs],
  ['min', minuteMs],
  ['s', secondMs],
] as const

/** `250 ms`, `12 s`, `3 min`, `5 h 20 min`, `3 d 4 h`: the two largest units that matter. */
export function formatDuration(ms: number): string {
  if (ms < secondMs) return `${Math.max(0, Math.round(ms))} ms`
  const index = steps.findIndex(([, length]) => ms >= length)
  const [unit, length] = steps[index]!
  const whole = Math.floor(ms / length)
  const next = steps[index + 1]
  const rest = next ? Math.floor((ms - whole * length) / next[1]) : 0
  // Seconds beside minutes, and minutes beside many hours, are not what a person looks for.
  const isPrecise = next !== undefined && rest > 0 && (unit === 'h' || unit === 'd') && whole < 10
  return isPrecise ? `${whole} ${unit} ${rest} ${next[0]}` : `${whole} ${unit}`
}

/** `3 min ago`, `in 5 h`, `now` */
export function formatRelative(at: string, nowMs: number): string {
  const ms = Date.parse(at) - nowMs
  if (Math.abs(ms) < secondMs) return 'now'
  return ms < 0 ? `${formatDuration(-ms)} ago` : `in ${formatDuration(ms)}`
}

/** `2026-11-18 15:04:05 UTC` */
export function formatTimestamp(at: string | number, zone: TimeZone): string {
  const date = new Date(at)
  if (Number.isNaN(date.getTime())) return String(at)
  return `${formatDate(date, zone)} ${formatClock(date, zone)} ${zoneName(date, zone)}`
}

/** `11-18 15:04`, for places where the year is clear. */
export function formatMinute(at: number, zone: TimeZone): string {
  const date = new Date(at)
  return `${formatDate(date, zone).slice(5)} ${formatClock(date, zone).slice(0, 5)}`
}

/** `15:04:05` */
export function formatClock(date: Date, zone: TimeZone): string {
  return formatters[zone].clock.format(date)
}

/** `2026-11-18` */
export function formatDate(date: Date, zone: TimeZone): string {
  return formatters[zone].date.format(date)
}

function zoneName(date: Date, zone: TimeZone): string {
  const parts = formatters[zone].zone.formatToParts(date)
  return parts.find(({ type }) => type === 'timeZoneName')?.value ?? ''
}

/** Made once: a list has hundreds of times, and to make a formatter takes longer than to use it. */
const formatters = { local: formattersOf({}), UTC: formattersOf({ timeZone: 'UTC' }) }

function formattersOf(zone: { timeZone?: string }) {
  return {
    clock: new Intl.DateTimeFormat('en-GB', { timeStyle: 'medium', hour12: false, ...zone }),
    date: new Intl.DateTimeFormat('sv-SE', { dateStyle: 'short', ...zone }),
    zone: new Intl.DateTimeFormat('en', { timeZoneName: 'short', ...zone }),
  }
}
