import type { Clock } from '../../clock.ts'
import type { RedriveError } from '../../errors.ts'

/** What is wrong may soon be well again, and who asks over and over must not spin. */
const troubledMs = 500

/** Those who wait for messages. */
export class Waiting {
  readonly #clock: Clock
  readonly #all = new Set<(error?: RedriveError) => void>()
  #trouble: RedriveError | undefined

  constructor(clock: Clock) {
    this.#clock = clock
  }

  get size(): number {
    return this.#all.size
  }

  /** Resolves when something may have come, or the time is over; rejects when nothing can come at present. */
  news(ms: number, signal: AbortSignal): Promise<void> {
    const leftMs = this.#trouble ? Math.min(ms, troubledMs) : ms
    return new Promise((resolve, reject) => {
      const wake = (error?: RedriveError): void => {
        cancel()
        signal.removeEventListener('abort', abort)
        this.#all.delete(wake)
        if (error) reject(error)
        else resolve()
      }
      const abort = (): void => wake()
      const cancel = this.#clock.timer(leftMs, () => wake(this.#trouble))
      signal.addEventListener('abort', abort)
      this.#all.add(wake)
    })
  }

  wake(): void {
    for (const wake of this.#all) wake()
  }

  fail(error: RedriveError): void {
    this.#trouble = error
    for (const wake of this.#all) wake(error)
  }

  well(): void {
    this.#trouble = undefined
  }
}
