import { sleep, systemClock } from '../../src/clock/clock.ts'
import type { Mailbox, MailboxResolver } from '../../src/mailbox.ts'
import type { FakeClock } from '../../src/testing/index.ts'
import type { ClosableMailboxBench } from '../contract/run-mailbox-contract.ts'

/** Who moves the time of a bench: the test, by a fake clock, or time itself. */
type Time = Pick<FakeClock, 'now' | 'advance'>

const realTime: Time = {
  now: () => systemClock.now(),
  advance: (ms) => sleep(systemClock, ms),
}

export interface MailboxBenchOptions {
  /** A mailbox of this name in the bench's place, with the retention among `more`. It is opened, and closed with the bench. */
  make: (name: string, resolver: MailboxResolver, more: { retentionSeconds?: number }) => Mailbox
  /** Put before every name, on a broker that others use too. Up to 50 characters, of its own for each bench. */
  prefix?: string
  time?: Time
  /** What becomes of the place when all mailboxes are closed. */
  leave?: (names: readonly string[]) => Promise<void>
}

/** A mailbox in its place, with all others that a check opens there. Replies find those of `elsewhere`. */
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
