import type { Clock } from '../clock/clock.ts'
import type { ReceiveRequest, Delivery, ExpiredListener, MailboxDriver } from '../mailbox.ts'

/**
 * Counts the messages that one handle removed because of their age, and reports them to listeners.
 */
export class Expiry {
  #count = 0
  readonly #listeners = new Set<ExpiredListener>()

  get count(): number {
    return this.#count
  }

  on(listener: ExpiredListener): () => void {
    // A wrapper, so that the same function added twice is called twice and removed once.
    const own: ExpiredListener = (expired) => listener(expired)
    this.#listeners.add(own)
    return () => void this.#listeners.delete(own)
  }

  /** The messages are removed: an error of a listener must not fail the call. */
  report(count: number): void {
    if (count === 0) return
    this.#count += count
    for (const listener of this.#listeners)
      try {
        const returned = listener({ count })
        if (returned instanceof Promise) returned.catch(() => {})
      } catch {
        // Errors of listeners are ignored.
      }
  }
}

export interface RetentionRule {
  clock: Clock
  retentionMs: number
  report: (count: number) => void
}

/**
 * Receives for a driver that does not expire messages itself: removes messages that are too old,
 * and continues to receive for the rest of the time. A message whose removal fails is not
 * delivered; it stays in the broker and is removed when it is received again.
 */
export async function receiveUnexpired(
  driver: Pick<MailboxDriver, 'receive' | 'acknowledge'>,
  ask: ReceiveRequest,
  { clock, retentionMs, report }: RetentionRule,
): Promise<Delivery[]> {
  const endMs = clock.mono() + ask.waitMs
  for (;;) {
    const waitMs = Math.max(0, Math.min(ask.waitMs, endMs - clock.mono()))
    const found = await driver.receive({ ...ask, waitMs })
    const oldestMs = clock.now() - retentionMs
    const fresh = found.filter((one) => !isOlder(one, oldestMs))
    const old = found.filter((one) => isOlder(one, oldestMs))
    if (old.length === 0) return fresh
    const removals = await Promise.allSettled(old.map((one) => driver.acknowledge(one.receipt)))
    const removed = removals.filter((one) => one.status === 'fulfilled' && one.value).length
    report(removed)
    if (fresh.length > 0 || removed === 0) return fresh
  }
}

/** False for a message without a time of sending: its age is unknown, so it is not removed. */
function isOlder({ enqueuedMs }: Delivery, oldestMs: number): boolean {
  return enqueuedMs > 0 && enqueuedMs <= oldestMs
}
