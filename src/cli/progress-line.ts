import type { WriteStream } from 'node:tty'
import type { Clock } from '../clock/clock.ts'
import { truncate } from './print.ts'

/** Shows the progress of a long operation. */
export interface ProgressLine {
  /** Shows a string and the share of the work that is done, from 0 to 1. */
  show(text: string, share: number): void
  /** Clears the line. May be called twice. */
  close(): void
}

const everyMs = 100
const clear = '\r\u001b[K'

/** On a terminal one line that is overwritten; otherwise a line at every 10 %. */
export function createProgressLine(
  stream: Pick<WriteStream, 'write'> & { isTTY?: boolean; columns?: number },
  clock: Clock,
): ProgressLine {
  return stream.isTTY ? createTerminalLine(stream, clock) : createPlainLine(stream)
}

function createTerminalLine(
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
      stream.write(clear + truncate(text, (stream.columns ?? 80) - 1))
    },
    close() {
      if (dirty) stream.write(clear)
      dirty = false
    },
  }
}

function createPlainLine(stream: Pick<WriteStream, 'write'>): ProgressLine {
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
