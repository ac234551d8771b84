import type { WriteStream } from 'node:tty'
import type { Clock } from '../clock/clock.ts'
import { cut } from './print.ts'

/** How far a long piece of work is. */
export interface ProgressLine {
  /** What to show, and which share of the work is done, from 0 to 1. */
  show(text: string, share: number): void
  /** Leaves the terminal as it was. Safe twice. */
  close(): void
}

const everyMs = 100
const clear = '\r\u001b[K'

/** On a terminal one line that is written over; elsewhere a plain line at each tenth of the way. */
export function progressLine(
  stream: Pick<WriteStream, 'write'> & { isTTY?: boolean; columns?: number },
  clock: Clock,
): ProgressLine {
  return stream.isTTY ? overwriting(stream, clock) : plain(stream)
}

function overwriting(
  stream: Pick<WriteStream, 'write'> & { columns?: number },
  clock: Clock,
): ProgressLine {
  let shownMs = -Infinity
  let dirty = false
  return {
    show(text) {
      if (clock.mono() - shownMs < everyMs) return
      shownMs = clock.mono()
      dirty = true
      stream.write(clear + cut(text, (stream.columns ?? 80) - 1))
    },
    close() {
      if (dirty) stream.write(clear)
      dirty = false
    },
  }
}

function plain(stream: Pick<WriteStream, 'write'>): ProgressLine {
  let tenth = 0
  return {
    show(text, share) {
      const now = Math.floor(share * 10)
      if (now === tenth) return
      tenth = now
      stream.write(`${text}\n`)
    },
    close() {},
  }
}
