import { resolve } from 'node:path'
import type { Clock } from '../../clock/clock.ts'
import { RedriveError } from '../../errors.ts'
import { Watchers } from '../../backends/watchers.ts'
import { workerBeside } from '../../backends/sqlite/channel.ts'
import { SqliteThread } from '../../backends/sqlite/thread.ts'
import type { ExpiredEvent, Methods } from './protocol.ts'

/** What the mailboxes of one file share: the thread, and the receivers that wait. */
export interface MailFile {
  readonly call: SqliteThread<Methods>['call']
  /** Watchers to notify when messages of this mailbox may have become visible. */
  waiting(mailbox: number): Watchers
  /**
   * Registers a handle. `report` gets the number of expired messages that its calls removed.
   */
  reporter(report: (count: number) => void): { reporter: number; leave: () => void }
  /** Closes the file after its last user. Call once for each `useFile`. */
  leave(): Promise<void>
}

/** Open files of this process by path. A different clock counts as a different process. */
const open = new WeakMap<Clock, Map<string, ThreadFile>>()

/** The file of this path, shared by all mailboxes of this process. */
export function useFile(path: string, clock: Clock): MailFile {
  const full = resolve(path)
  const files = open.get(clock) ?? new Map<string, ThreadFile>()
  open.set(clock, files)
  const file = files.get(full) ?? new ThreadFile(full, clock, () => files.delete(full))
  files.set(full, file)
  file.users += 1
  return file
}

const program = workerBeside(import.meta.url, 'redrive-mailboxes')

class ThreadFile implements MailFile {
  users = 0
  readonly call: MailFile['call']
  readonly #forget: () => void
  readonly #thread: SqliteThread<Methods>
  readonly #watchers = new Map<number, Watchers>()
  readonly #reporters = new Map<number, (count: number) => void>()
  #lastReporter = 0

  constructor(path: string, clock: Clock, forget: () => void) {
    this.#forget = forget
    const message = `sqlite ${path}: the thread of the mailbox died; calls in flight may or may not be done`
    this.#thread = new SqliteThread<Methods>({
      program,
      file: path,
      now: () => Math.floor(clock.now()),
      onEvent: (event) => this.#reportExpired(event as ExpiredEvent),
      toLossError: (cause) => new RedriveError('MAILBOX_UNAVAILABLE', message, { cause }),
    })
    this.call = this.#thread.call.bind(this.#thread)
  }

  waiting(mailbox: number): Watchers {
    const found = this.#watchers.get(mailbox) ?? new Watchers()
    this.#watchers.set(mailbox, found)
    return found
  }

  reporter(report: (count: number) => void): { reporter: number; leave: () => void } {
    const reporter = ++this.#lastReporter
    this.#reporters.set(reporter, report)
    return { reporter, leave: () => void this.#reporters.delete(reporter) }
  }

  async leave(): Promise<void> {
    this.users -= 1
    if (this.users > 0) return
    this.#forget()
    await this.#thread.close()
  }

  #reportExpired(expired: ExpiredEvent): void {
    for (const [reporter, count] of expired) this.#reporters.get(reporter)?.(count)
  }
}
