import type { WriteStream } from 'node:tty'

/** A live picture that takes the whole terminal. */
export interface Screen {
  /** Shows these lines; what does not fit below is left out. */
  draw(lines: readonly string[]): void
  /** Gives the terminal back as it was. Safe twice. */
  close(): void
}

const enter = '\u001b[?1049h\u001b[?25l'
const leave = '\u001b[?25h\u001b[?1049l'
/** Terminals that know it show nothing half-drawn between these two; others take no notice. */
const begin = '\u001b[?2026h\u001b[H'
const end = '\u001b[J\u001b[?2026l'
const restOfLine = '\u001b[K'

export function openScreen(stream: WriteStream): Screen {
  return new TerminalScreen(stream)
}

class TerminalScreen implements Screen {
  readonly #stream: WriteStream
  #last = ''
  #open = true
  readonly #close = (): void => this.close()

  constructor(stream: WriteStream) {
    this.#stream = stream
    stream.write(enter)
    process.once('exit', this.#close)
  }

  /** Writes over what is there instead of clearing it, in one write, and only when something changed. */
  draw(lines: readonly string[]): void {
    if (!this.#open) return
    const shown = lines.slice(0, Math.max(1, this.#stream.rows - 1))
    const frame = shown.map((line) => line + restOfLine).join('\r\n')
    const drawn = `${this.#stream.columns}x${this.#stream.rows} ${frame}`
    if (drawn === this.#last) return
    this.#last = drawn
    this.#stream.write(`${begin}${frame}\r\n${end}`)
  }

  close(): void {
    if (!this.#open) return
    this.#open = false
    process.removeListener('exit', this.#close)
    this.#stream.write(leave)
  }
}
