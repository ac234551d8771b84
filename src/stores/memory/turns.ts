import { nextTurn } from '../../clock/clock.ts'

/** How many letters are written, at the most, before the event loop gets its turn. */
const lettersPerTurn = 50

/** Nothing here waits for a disk, so busy callers would never let the event loop turn. After so many letters, all wait for it. */
export class Turns {
  /** Letters written since the event loop last turned, and the turn that is awaited. */
  #unturned = 0
  #turning: Promise<void> | undefined

  /** Undefined: there is nothing to wait for yet. */
  after(letters: number): Promise<void> | undefined {
    this.#unturned += letters
    if (this.#unturned < lettersPerTurn) return undefined
    return (this.#turning ??= this.#turn())
  }

  async #turn(): Promise<void> {
    await nextTurn()
    this.#unturned = 0
    this.#turning = undefined
  }
}
