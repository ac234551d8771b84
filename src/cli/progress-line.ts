import type { WriteStream } from 'node:tty'
import type { Clock } from '../clock/clock.ts'
import { formatDuration, truncate } from './print.ts'

/** How far a long operation is. */
export interface Progress {
  /** What is done, such as "copy". */
  label: string
  done: number
  /** Absent: the total is unknown. */
  total?: number
  /** The share of the work that is done, from 0 to 1. Default: `done` of `total`. */
  share?: number
  /** More about it, such as "3 failed". */
  note?: string
}

/** Shows the progress of a long operation. */
export interface ProgressLine {
  show(progress: Progress): void
  /** Clears the line. May be called twice. */
  close(): void
}

const everyMs = 100
const clear = '\r\u001b[K'
const barWidth = 20

/** One line of a terminal, which is overwritten. Programs that read the output get nothing. */
export function createProgressLine(
  stream: Pick<WriteStream, 'write'> & { isTTY?: boolean; columns?: number },
  clock: Clock,
): ProgressLine {
  if (!stream.isTTY) return { show() {}, close() {} }
  let shownMs = -Infinity
  let isDirty = false
  let first: { progress: Progress; atMs: number } | undefined
  return {
    show(progress) {
      const nowMs = clock.mono()
      // The rate of another step says nothing about this one.
      if (first?.progress.label !== progress.label) first = { progress, atMs: nowMs }
      if (nowMs - shownMs < everyMs) return
      shownMs = nowMs
      isDirty = true
      const text = formatProgress(progress, first.progress, nowMs - first.atMs)
      stream.write(clear + truncate(text, (stream.columns ?? 80) - 1))
    },
    close() {
      if (isDirty) stream.write(clear)
      isDirty = false
    },
  }
}

/** A bar, the share, the numbers, the rate and the remaining time, in less than 80 columns. */
export function formatProgress(progress: Progress, first: Progress, elapsedMs: number): string {
  const { label, done, total, note } = progress
  const share = shareOf(progress)
  const rate = elapsedMs > 0 ? (1000 * (done - first.done)) / elapsedMs : 0
  const gained = (share ?? 0) - (shareOf(first) ?? 0)
  const leftMs = share !== undefined && gained > 0 ? (elapsedMs * (1 - share)) / gained : undefined
  return [
    share === undefined ? label : `${label} ${formatBar(share)} ${Math.floor(100 * share)} %`,
    `${done.toLocaleString('en')}${total === undefined ? '' : ` of ${total.toLocaleString('en')}`}`,
    ...(rate > 0 ? [`${Math.round(rate).toLocaleString('en')}/s`] : []),
    ...(leftMs === undefined ? [] : [`${formatDuration(leftMs)} left`]),
    ...(note === undefined ? [] : [note]),
  ].join('  ')
}

function shareOf({ done, total, share }: Progress): number | undefined {
  if (share === undefined && total === undefined) return undefined
  return Math.min(1, share ?? (total === 0 ? 1 : done / total!))
}

function formatBar(share: number): string {
  const filled = Math.round(share * barWidth)
  return '█'.repeat(filled) + '░'.repeat(barWidth - filled)
}
