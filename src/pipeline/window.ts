/** Maximum number of records that are announced to the broker before they start. */
const widest = 2048
/** A window that is processed in less time is widened; one that takes longer is narrowed. */
const quickMs = 50
const slowMs = 500

/**
 * The number of records that are announced at once. An announcement costs a round trip, so fast
 * work is announced in large batches; slow work is announced as it starts, so that few records
 * count as started when the process dies.
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

  /** A full batch was processed in this time. */
  took(ms: number): void {
    if (ms < quickMs) this.#size = Math.max(this.#least, Math.min(widest, this.#size * 2))
    else if (ms > slowMs) this.#size = Math.max(this.#least, Math.floor(this.#size / 2))
  }
}
