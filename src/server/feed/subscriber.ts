import type { Viewer } from '../viewer.ts'

/** Text that waits for a client that reads slowly. More than this ends its connection. */
const maxWaiting = 2 * 1024 * 1024

export interface SubscriberOptions {
  caller: Viewer
  /** The position after which letters were not seen. Undefined: only new ones are wanted. */
  after?: string
  /** Ends the connection at once. */
  disconnect: () => void
}

/** A client of the feed: the text that it still has to read. */
export class Subscriber {
  readonly caller: Viewer
  readonly after: string | undefined
  readonly #disconnect: () => void
  #waiting: string[] = []
  #length = 0
  #isEnded = false
  #wake = (): void => {}

  constructor({ caller, after, disconnect }: SubscriberOptions) {
    this.caller = caller
    this.after = after
    this.#disconnect = disconnect
  }

  push(text: string): void {
    if (this.#isEnded) return
    this.#waiting.push(text)
    this.#length += text.length
    if (this.#length > maxWaiting) this.#abort()
    this.#wake()
  }

  /** The client gets what waits, and then the end. */
  end(): void {
    this.#isEnded = true
    this.#wake()
  }

  /** The text as it comes, until the end. */
  async *chunks(): AsyncGenerator<string> {
    for (;;) {
      if (this.#waiting.length > 0) {
        const text = this.#waiting.join('')
        this.#waiting = []
        this.#length = 0
        yield text
      } else if (this.#isEnded) return
      else await new Promise<void>((resolve) => (this.#wake = resolve))
    }
  }

  /** A client that cannot be told the end, because it does not read. It can come back. */
  #abort(): void {
    this.#waiting = []
    this.#length = 0
    this.#isEnded = true
    this.#disconnect()
  }
}
