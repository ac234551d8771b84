import { resolve } from 'node:path'
import type { Clock } from '../../clock/clock.ts'
import { RedriveError } from '../../errors.ts'
import { Watchers } from '../../backends/watchers.ts'
import { workerBeside } from '../../backends/sqlite/channel.ts'
import { openThread, type Thread } from '../../backends/sqlite/thread.ts'
import type { Report, Verbs } from './protocol.ts'

/** What the mailboxes of one file share: its thread, and who waits for news. */
export interface MailFile {
  readonly call: Thread<Verbs>['call']
  /** Who hears that messages of this mailbox may have become visible. */
  waiting(mailbox: number): Watchers
  /** A number for the calls of one handle, whose removals of expired messages go to `report`, and how to give it up. */
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
  readonly #thread: Thread<Verbs>
  readonly #watchers = new Map<number, Watchers>()
  readonly #reporters = new Map<number, (count: number) => void>()
  #lastReporter = 0

  constructor(path: string, clock: Clock, forget: () => void) {
    this.#forget = forget
    const message = `sqlite ${path}: the thread that keeps the file died; what was on its way may or may not be done`
    this.#thread = openThread<Verbs, Report>({
      program,
      file: path,
      now: () => Math.floor(clock.now()),
      // Sending, receiving and acknowledging one keep a caller's thread for about 0.02 ms.
      callerMs: 0.006,
      hear: (report) => this.#hear(report),
      lost: (cause) => new RedriveError('MAILBOX_UNAVAILABLE', message, { cause }),
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
    await this.#thread.end()
  }

  #hear({ expired = [] }: Report): void {
    for (const [reporter, count] of expired) this.#reporters.get(reporter)?.(count)
  }
}
