import type { Action, DeadLetter } from '../../letter/letter.ts'
import type { Total } from '../../store.ts'

/** What happened, added up as it happens. */
export class Totals {
  readonly #totals = new Map<string, Total>()

  count(action: Action, letter: DeadLetter): void {
    const { queue, priority, retries, backoffMs } = letter
    const key = `${action} ${priority} ${queue}`
    const total = this.#totals.get(key)
    if (!total)
      this.#totals.set(key, {
        action,
        queue,
        priority,
        count: 1,
        retries,
        maxRetries: retries,
        backoffMs,
      })
    else {
      total.count += 1
      total.retries += retries
      total.maxRetries = Math.max(total.maxRetries, retries)
      total.backoffMs += backoffMs
    }
  }

  all(): Total[] {
    return [...this.#totals.values()].map((total) => ({ ...total }))
  }
}
