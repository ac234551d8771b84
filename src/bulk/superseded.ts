import type { LetterSummary } from '../letter/letter.ts'
import type { Store } from '../store.ts'

/**
 * Finds letters of a lane in which a newer letter has succeeded: running them again could overwrite
 * its result. Each lane is read once.
 */
export class SupersededLetters {
  readonly #store: Store
  /** When the newest letter that succeeded was captured, by queue and lane. */
  readonly #newest = new Map<string, string>()

  constructor(store: Store) {
    this.#store = store
  }

  async has({ queue, lane, deadLetteredAt }: LetterSummary): Promise<boolean> {
    if (lane === undefined) return false
    const key = JSON.stringify([queue, lane])
    let newest = this.#newest.get(key)
    if (newest === undefined) {
      const query = { queue, lane, state: 'resolved', order: 'newest', limit: 1 } as const
      newest = (await this.#store.find(query)).items[0]?.deadLetteredAt ?? ''
      this.#newest.set(key, newest)
    }
    return newest > deadLetteredAt
  }
}
