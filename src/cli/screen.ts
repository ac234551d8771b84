import type { WriteStream } from 'node:tty'
import { terminal } from './terminal.ts'

/** A live view that uses the whole terminal. */
export interface Screen {
  /** Draws these lines; lines below the screen are left out. */
  draw(lines: readonly string[]): void
  /** Restores the terminal. May be called twice. */
  close(): void
}

const enter = '\u001b[?1049h\u001b[?25l'
const leave = '\u001b[?25h\u001b[?1049l'
/**
 * Synchronised output: terminals that support it draw everything between these sequences at once.
 */
const begin = '\u001b[?2026h\u001b[H'
const end = '\u001b[J\u001b[?2026l'
const restOfLine = '\u001b[K'

export function openScreen(stream: WriteStream): Screen {
  return new TerminalScreen(stream)
}

class TerminalScreen implements Screen {
  readonly #stream: WriteStream
  #lastKey = ''
  #open = true
  readonly #close = (): void => this.close()

  constructor(stream: WriteStream) {
    this.#stream = stream
    stream.write(enter)
    terminal.once('exit', this.#close)
  }

  /** Overwrites the screen without clearing it, in one write, and only if something changed. */
  draw(lines: readonly string[]): void {
    if (!this.#open) return
    const visible = lines.slice(0, Math.max(1, this.#stream.rows - 1))
    const frame = visible.map((line) => line + restOfLine).join('\r\n')
    const key = `${this.#stream.columns}x${this.#stream.rows} ${frame}`
    if (key === this.#lastKey) return
    this.#lastKey = key
    this.#stream.write(`${begin}${frame}\r\n${end}`)
  }

  close(): void {
    if (!this.#open) return
    this.#open = false
    terminal.removeListener('exit', this.#close)
    this.#stream.write(leave)
  }
}
