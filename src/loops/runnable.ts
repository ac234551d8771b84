import type { Mailbox } from '../mailbox.ts'
import type { Heartbeat } from './heartbeat.ts'

/** Something that runs until it is told to stop. */
export interface Runnable {
  /** For people. */
  readonly name: string
  /** Resolves when it has stopped, and rejects when it broke down. Once it has ended it can run again; twice at a time it cannot. */
  run(options?: RunOptions): Promise<void>
  /**
   * Takes nothing new, and waits for what is under way. True: all of it has ended. False: it did not within the time, and was
   * given back. Before `run` it is not lost: the next run ends at once.
   */
  shutdown(options?: ShutdownOptions): Promise<boolean>
  readonly running: boolean
  readonly heartbeat: Heartbeat
  /** Why it does no work at the moment, in words. */
  problems?(): string[]
  /** From where it takes, and where it puts what it cannot do. */
  readonly flow?: Flow
}

export interface RunOptions {
  /** How often to receive before it ends by itself. No limit unless said. */
  maxIterations?: number
  /** Instead of those of the loop, for this run. 0 counts. */
  visibilitySeconds?: number
  waitSeconds?: number
}

export interface ShutdownOptions {
  /** 30,000 unless said. In the last quarter of it, a second at most, the signals of what still runs abort. */
  timeoutMs?: number
}

export interface Flow {
  from: Mailbox
  to: Mailbox[]
}

/** Whether two are the same mailbox of the same broker, as far as their names tell. */
export function isSameMailbox(one: Mailbox, other: Mailbox): boolean {
  return one === other || keyOf(one) === keyOf(other)
}

export function keyOf(mailbox: Mailbox): string {
  return `${mailbox.powers.kind} ${mailbox.name}`
}
