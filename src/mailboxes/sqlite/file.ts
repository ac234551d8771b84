import { resolve } from 'node:path'
import type { Clock } from '../../clock/clock.ts'
import { RedriveError } from '../../errors.ts'
import { watchers, type Watchers } from '../../backends/watchers.ts'
import { workerBeside } from '../../backends/sqlite/channel.ts'
import { SqliteThread } from '../../backends/sqlite/thread.ts'
import type { ExpiredEvent, Methods } from './protocol.ts'

/** What the mailboxes of one file share: its thread, and who waits for news. */
export interface MailFile {
  readonly call: SqliteThread<Methods>['call']
  /** Who hears that messages of this mailbox may have become visible. */
  waiting(mailbox: number): Watchers
  /**
   * A number for the calls of one handle, whose removals of expired messages go to `report`, and
   * how to give it up.
   */
  reporter(report: (count: number) => void): { reporter: number; leave: () => void }
  /** Closes the file when nobody else uses it. Once for each `useFile`. */
  leave(): Promise<void>
}

/** Files that are open in this process, by path. Another clock stands for another process. */
const open = new WeakMap<Clock, Map<string, ThreadFile>>()

/** The file of this path, which all mailboxes of this process share. */
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
    const found = this.#watchers.get(mailbox) ?? watchers()
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
