import type { Mailbox } from '../mailbox.ts'
import type { Heartbeat } from './heartbeat.ts'

/** Something that runs until it is stopped. */
export interface Runnable {
  /** For people. */
  readonly name: string
  /**
   * Resolves when it has stopped, and rejects if it crashed. It can run again after it has ended,
   * but not twice at the same time.
   */
  run(options?: RunOptions): Promise<void>
  /**
   * Accepts nothing new, and waits for the work in process. Returns true if all of it has ended,
   * and false if some did not end in time and was released. A call before `run` ends the next run
   * at once.
   */
  shutdown(options?: ShutdownOptions): Promise<boolean>
  readonly running: boolean
  readonly heartbeat: Heartbeat
  /** Why it does no work at present. */
  problems?(): string[]
  /** The mailbox it reads from, and the mailboxes for its dead messages. */
  readonly flow?: Flow
}

export interface RunOptions {
  /** The number of receive calls before the run ends by itself. Default: no limit. */
  maxIterations?: number
  /** Overrides the option of the loop for this run. 0 is valid. */
  visibilitySeconds?: number
  waitSeconds?: number
}

export interface ShutdownOptions {
  /**
   * In the last quarter of this time, at most a second, the signals of running work abort. Default:
   * 30,000.
   */
  timeoutMs?: number
}

export interface Flow {
  from: Mailbox
  to: Mailbox[]
}

/** Whether both are the same mailbox of the same broker, judged by their names. */
export function isSameMailbox(one: Mailbox, other: Mailbox): boolean {
  return one === other || keyOf(one) === keyOf(other)
}

export function keyOf(mailbox: Mailbox): string {
  return `${mailbox.powers.kind} ${mailbox.name}`
}
