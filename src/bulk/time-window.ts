import type { TimeWindow } from '../letter/bulk-action.ts'

const minuteMs = 60_000
const dayMinutes = 24 * 60

/** Milliseconds until the window opens. 0: it is open. */
export function msUntilOpen(window: TimeWindow, nowMs: number): number {
  const from = minutesOf(window.from)
  const to = minutesOf(window.to)
  const now = minuteOfDay(nowMs, window.timeZone ?? 'UTC')
  const isOpen = from <= to ? now >= from && now < to : now >= from || now < to
  if (isOpen) return 0
  const minutes = (from - now + dayMinutes) % dayMinutes
  return minutes * minuteMs - (nowMs % minuteMs)
}

function minutesOf(time: string): number {
  const [hours, minutes] = time.split(':').map(Number)
  return hours! * 60 + minutes!
}

function minuteOfDay(nowMs: number, timeZone: string): number {
  const format = new Intl.DateTimeFormat('en-GB', {
    timeZone,
    hour: '2-digit',
    minute: '2-digit',
    hourCycle: 'h23',
  })
  return minutesOf(format.format(nowMs))
}
