import type { CountedAction, DeadLetter } from '../../letter/letter.ts'
import type { Total } from '../../store.ts'

/** What happened, added up as it happens. */
export class Totals {
  readonly #totals = new Map<string, Total>()

  count(action: CountedAction, letter: DeadLetter): void {
    const { queue, priority, retries, backoffMs } = letter
    const total = this.#totals.get(keyOf({ action, queue, priority }))
    if (!total)
      this.set({ action, queue, priority, count: 1, retries, maxRetries: retries, backoffMs })
    else {
      total.count += 1
      total.retries += retries
      total.maxRetries = Math.max(total.maxRetries, retries)
      total.backoffMs += backoffMs
    }
  }

  set(total: Total): void {
    this.#totals.set(keyOf(total), { ...total })
  }

  all(): Total[] {
    return [...this.#totals.values()].map((total) => ({ ...total }))
  }
}

function keyOf({ action, queue, priority }: Pick<Total, 'action' | 'queue' | 'priority'>): string {
  return `${action} ${priority} ${queue}`
}
