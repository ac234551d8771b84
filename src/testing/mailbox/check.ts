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
   * Lets time pass for the mailbox. If the broker has its own clock, this waits; no check needs
   * much more than 1.5 seconds in total.
   */
  advance(ms: number): Promise<void>
  /** True: `advance` moves a fake clock, so a check may let days pass. */
  readonly hasFakeTime?: boolean
  /** Another handle on the same mailbox, opened with this retention. */
  withRetention(retentionSeconds: number): Promise<Mailbox>
  /**
   * Another handle on the same mailbox, as another process would have. Required for a shared
   * mailbox.
   */
  another?(): Promise<Mailbox>
  /** Closes the mailbox and reopens its data. Required for a durable mailbox. */
  reopen?(): Promise<Mailbox>
  /**
   * Another mailbox on the same broker, open and empty. From then on the resolver of this bench's
   * mailbox resolves its name. The bench may put up to 50 characters before the name.
   */
  elsewhere(name: string): Promise<Mailbox>
}

/** One guarantee of the mailbox contract, and a function that throws if the mailbox breaks it. */
export interface MailboxCheck {
  topic: string
  title: string
  /** Why the check does not apply to a mailbox with these powers. Undefined: it applies. */
  needs?: (powers: MailboxPowers) => string | undefined
  run: (bench: MailboxBench) => Promise<void>
}

type Needs = NonNullable<MailboxCheck['needs']>

/** Creates checks with the same topic. */
export function checkOn(
  topic: string,
): (title: string, run: MailboxCheck['run'], needs?: Needs) => MailboxCheck {
  return (title, run, needs) => ({ topic, title, run, ...(needs ? { needs } : {}) })
}

/** Reasons to skip a check, by the power that the mailbox lacks. */
const skipReasons = {
  durable: 'the mailbox is not durable',
  shared: 'the mailbox is not shared between processes',
  visibility: 'the broker has one fixed visibility timeout',
  extend: 'receipts cannot be extended',
  delay: 'messages cannot be delayed',
  remembers: 'the broker stores neither failures nor the time of the first delivery',
  ordered: 'messages are not ordered',
  exactCount: 'messages are not counted exactly',
  purge: 'the mailbox cannot be purged',
  browse: 'messages cannot be browsed',
  deduplicates: 'the broker does not deduplicate ids',
} satisfies Partial<Record<keyof MailboxPowers, string>>

export function needs(...powers: (keyof typeof skipReasons)[]): Needs {
  return (has) => {
    const missing = powers.find((power) => !has[power])
    return missing && skipReasons[missing]
  }
}

/** Another handle on the mailbox of this bench. */
export function openAnother(bench: MailboxBench): Promise<Mailbox> {
  if (!bench.another) throw new Error('the mailbox is shared: its bench must implement another()')
  return bench.another()
}

/** Closes the mailbox of this bench and opens it again. */
export function reopen(bench: MailboxBench): Promise<Mailbox> {
  if (!bench.reopen) throw new Error('the mailbox is durable: its bench must implement reopen()')
  return bench.reopen()
}
