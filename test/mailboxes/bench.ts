import { sleep, systemClock } from '../../src/clock/clock.ts'
import type { Mailbox, MailboxResolver } from '../../src/mailbox.ts'
import type { FakeClock } from '../../src/testing/index.ts'
import type { ClosableMailboxBench } from '../contract/run-mailbox-contract.ts'

/** How time passes on a bench: by a fake clock that the test moves, or in real time. */
type Time = Pick<FakeClock, 'now' | 'advance'>

const realTime: Time = {
  now: () => systemClock.now(),
  advance: (ms) => sleep(systemClock, ms),
}

export interface MailboxBenchOptions {
  /**
   * Opens a mailbox of this name in the place of the bench, with the retention in `more`. It is
   * closed with the bench.
   */
  make: (name: string, resolver: MailboxResolver, more: { retentionSeconds?: number }) => Mailbox
  /** Prefix of every name, on a shared broker. Up to 50 characters, unique per bench. */
  prefix?: string
  time?: Time
  /** Cleans up the place when all mailboxes are closed. */
  leave?: (names: readonly string[]) => Promise<void>
}

/**
 * A mailbox in its place, with all others that a check opens there. Replies find those of
 * `elsewhere`.
 */
export async function openMailboxBench(
  options: MailboxBenchOptions,
): Promise<ClosableMailboxBench & Required<Pick<ClosableMailboxBench, 'another' | 'reopen'>>> {
  const { make, prefix = '', time = realTime, leave } = options
  const opened: Mailbox[] = []
  const known = new Map<string, Mailbox>()
  const resolver: MailboxResolver = { resolve: (name) => known.get(name) }
  const open = async (name: string, more: { retentionSeconds?: number } = {}): Promise<Mailbox> => {
    const made = make(`${prefix}${name}`, resolver, more)
    opened.push(made)
    await made.open()
    return made
  }
  let mailbox = await open('main')
  return {
    mailbox,
    now: () => time.now(),
    advance: (ms) => time.advance(ms),
    hasFakeTime: time !== realTime,
    withRetention: (retentionSeconds) => open('main', { retentionSeconds }),
    another: () => open('main'),
    reopen: async () => {
      await mailbox.close()
      mailbox = await open('main')
      return mailbox
    },
    elsewhere: async (name) => {
      const other = await open(name)
      known.set(other.name, other)
      return other
    },
    close: async () => {
      await Promise.all(opened.map((one) => one.close()))
      await leave?.([...new Set(opened.map((one) => one.name))])
    },
  }
}
