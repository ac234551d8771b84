/** The most records that are told to the broker as begun before they are. */
const widest = 2048
/** A window that is worked off in less time may be wider; one that takes longer is too wide. */
const quickMs = 50
const slowMs = 500

/**
 * How many records are begun at once. Telling the broker costs a round trip, so quick work is told of in large lots; slow work is told of
 * as it begins, so that few records count as begun when the process dies.
 */
export class Window {
  readonly #least: number
  #size: number

  constructor(concurrency: number) {
    this.#least = concurrency
    this.#size = concurrency
  }

  get size(): number {
    return this.#size
  }

  /** A full lot was worked off in this time. */
  took(ms: number): void {
    if (ms < quickMs) this.#size = Math.max(this.#least, Math.min(widest, this.#size * 2))
    else if (ms > slowMs) this.#size = Math.max(this.#least, Math.floor(this.#size / 2))
  }
}
