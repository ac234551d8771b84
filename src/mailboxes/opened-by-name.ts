import type { Clock } from '../clock/clock.ts'
import type { Mailbox, MailboxResolver } from '../mailbox.ts'

/** Whoever asks for a mailbox sends to it at once, and no send takes this long. */
const idleMs = 60_000

interface Opened {
  mailbox: Promise<Mailbox>
  askedMs: number
}

/**
 * Opens what is asked for, once for each name, and closes it when this closes. Callers may each want their replies at an address of their
 * own, and never come back: one that nobody asked for in a minute is closed when others are asked for.
 */
export function openedByName(
  open: (name: string) => Promise<Mailbox>,
  clock: Clock,
): Required<MailboxResolver> {
  /** Whoever was asked for last stands last. */
  const opened = new Map<string, Opened>()
  const closing = new Set<Promise<void>>()

  const shut = (name: string, { mailbox }: Opened): void => {
    opened.delete(name)
    const end = mailbox
      .then((one) => one.close())
      .catch(() => {
        // It could not be opened, or its broker is gone: there is nothing left to close.
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
        // The broker may be there the next time.
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
