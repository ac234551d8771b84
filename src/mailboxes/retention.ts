import type { Clock } from '../clock/clock.ts'
import type { Ask, Delivery, ExpiredListener, MailboxDriver } from '../mailbox.ts'

/** Counts the messages that one handle removed because of their age, and reports them to listeners. */
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

  /** The messages are gone: an error of a listener must not fail what the caller asked for. */
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
 * Receives for a driver that does not expire messages itself: removes what is too old, and goes on receiving for the rest of the time.
 * A message whose removal fails is not delivered; it stays in the broker and is removed when it is received again.
 */
export async function receiveUnexpired(
  driver: Pick<MailboxDriver, 'receive' | 'acknowledge'>,
  ask: Ask,
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

/** False for a message that does not say when it was sent: its age is unknown, so it is kept. */
function isOlder({ enqueuedMs }: Delivery, oldestMs: number): boolean {
  return enqueuedMs > 0 && enqueuedMs <= oldestMs
}
