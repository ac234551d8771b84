import type { Mailbox, MailboxPowers } from '../../mailbox.ts'

/**
 * The environment of a check: an open, empty mailbox and control over its time. The creator of the
 * bench closes what was opened and clears its data afterwards.
 */
export interface MailboxBench {
  readonly mailbox: Mailbox
  /** The mailbox's time in milliseconds. */
  now(): number
  /**
   * Lets time pass for the mailbox. Where time is the broker's, this waits; no check asks for more
   * than 1.5 seconds or so in all.
   */
  advance(ms: number): Promise<void>
  /** True where `advance` moves a fake clock: a check may then let days pass. */
  readonly hasFakeTime?: boolean
  /** One more handle on the same mailbox, opened with this retention. */
  withRetention(retentionSeconds: number): Promise<Mailbox>
  /**
   * One more handle on the same mailbox, as another process has one. Required when it is shared.
   */
  another?(): Promise<Mailbox>
  /** Closes the mailbox and reopens its data. Required when it is durable. */
  reopen?(): Promise<Mailbox>
  /**
   * Another mailbox on the same broker, open and empty, which the resolver of this bench's mailbox
   * knows from then on. The bench may put up to 50 characters before the name.
   */
  elsewhere(name: string): Promise<Mailbox>
}

/** One guarantee of the mailbox contract, and a function that throws if the mailbox breaks it. */
export interface MailboxCheck {
  topic: string
  title: string
  /** Why the check does not apply to a mailbox with these powers. Undefined: it does. */
  needs?: (powers: MailboxPowers) => string | undefined
  run: (bench: MailboxBench) => Promise<void>
}

type Needs = NonNullable<MailboxCheck['needs']>

/** Names the topic once for all checks of a file. */
export function checkOn(
  topic: string,
): (title: string, run: MailboxCheck['run'], needs?: Needs) => MailboxCheck {
  return (title, run, needs) => ({ topic, title, run, ...(needs ? { needs } : {}) })
}

/** Why a mailbox without this power is left alone. */
const without = {
  durable: 'the mailbox is not durable',
  shared: 'the mailbox is not shared between processes',
  visibility: 'the broker has one visibility of its own for all',
  extend: 'a receipt cannot be made to last longer',
  delay: 'messages cannot be delayed',
  remembers: 'the broker counts no failures and does not know the first delivery',
  ordered: 'messages come in any order',
  exactCount: 'messages are not counted exactly',
  purge: 'the mailbox cannot be purged',
  browse: 'messages cannot be browsed',
  deduplicates: 'the broker does not know an id again',
} satisfies Partial<Record<keyof MailboxPowers, string>>

export function needs(...powers: (keyof typeof without)[]): Needs {
  return (has) => {
    const missing = powers.find((power) => !has[power])
    return missing && without[missing]
  }
}

/** One more handle on the mailbox of this bench. */
export function another(bench: MailboxBench): Promise<Mailbox> {
  if (!bench.another) throw new Error('the bench of a shared mailbox must offer another()')
  return bench.another()
}

/** The same mailbox after a close and an open. */
export function reopened(bench: MailboxBench): Promise<Mailbox> {
  if (!bench.reopen) throw new Error('the bench of a durable mailbox must offer reopen()')
  return bench.reopen()
}
