import type { Clock } from '../clock/clock.ts'
import type { Mailbox, MailboxResolver } from '../mailbox.ts'

/** A resolved mailbox is used at once, and no send takes this long. */
const idleMs = 60_000

interface Opened {
  mailbox: Promise<Mailbox>
  askedMs: number
}

/**
 * Opens each mailbox once per name, and closes all when it closes. Callers may each have their own
 * reply address, and never return: a mailbox that was not resolved for a minute is closed when
 * others are resolved.
 */
export function openedByName(
  open: (name: string) => Promise<Mailbox>,
  clock: Clock,
): Required<MailboxResolver> {
  /** The mailbox that was resolved last is last. */
  const opened = new Map<string, Opened>()
  const closing = new Set<Promise<void>>()

  const shut = (name: string, { mailbox }: Opened): void => {
    opened.delete(name)
    const end = mailbox
      .then((one) => one.close())
      .catch(() => {
        // The mailbox could not be opened, or its broker is gone: there is nothing to close.
      })
      .finally(() => closing.delete(end))
    closing.add(end)
  }

  return {
    resolve(name) {
      const askedMs = clock.mono()
      const mailbox = opened.get(name)?.mailbox ?? open(name)
      opened.delete(name)
      opened.set(name, { mailbox, askedMs })
      for (const [other, one] of opened) {
        if (askedMs - one.askedMs < idleMs) break
        shut(other, one)
      }
      mailbox.catch(() => {
        // The broker may be reachable the next time.
        if (opened.get(name)?.mailbox === mailbox) opened.delete(name)
      })
      return mailbox
    },

    async close() {
      for (const [name, one] of opened) shut(name, one)
      await Promise.all(closing)
    },
  }
}
