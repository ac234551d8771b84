import { systemClock } from '../../clock.ts'
import { RedriveError } from '../../errors.ts'
import type { Database } from '../../sqlite/database.ts'
import type { Answer } from '../../sqlite/protocol.ts'
import { breaksConnection, troubleOf, type Tenant } from '../../sqlite/trouble.ts'
import { forgetAll, openBooks, type Books } from './books.ts'
import type { Call, Report } from './protocol.ts'
import { hasNothing, reads, sweep, writes } from './verbs.ts'

/** A wait for the lock that is longer than this is added to the caller's time. */
const longWaitMs = 1000

const tenant: Tenant = {
  noun: 'mailbox',
  unavailable: 'MAILBOX_UNAVAILABLE',
  whenBusy: 'another process held the write lock for too long: try again',
}

/** Does what batches ask, in the thread. All writes of a batch are one transaction; reads come after them. */
export class Clerk {
  readonly #path: string
  readonly #report: (report: Report) => void
  #books: Books | undefined

  constructor(path: string, report: (report: Report) => void) {
    this.#path = path
    this.#report = report
  }

  run(nowMs: number, calls: Call[]): void {
    this.#report(this.#done(nowMs, calls))
  }

  /** Lets go of the file, whatever state it is in. */
  close(): void {
    const books = this.#books
    this.#books = undefined
    try {
      books?.db.close()
    } catch {
      // A broken connection cannot be closed in order; the file is as the last commit left it.
    }
  }

  #done(nowMs: number, calls: Call[]): Report {
    try {
      const books = (this.#books ??= openBooks(this.#path))
      books.nowMs = nowMs
      return { answers: this.#carryOut(books, calls), done: true, expired: [...books.expired] }
    } catch (error) {
      if (this.#books) forgetAll(this.#books)
      if (breaksConnection(error)) this.close()
      const trouble = troubleOf(error, this.#path, tenant)
      return { answers: calls.map(([number]) => [number, null, trouble]), done: true, expired: [] }
    }
  }

  #carryOut(books: Books, calls: Call[]): Answer[] {
    const answers: Answer[] = []
    books.expired.clear()
    // Whoever waits looks again and again, and must not take the lock each time.
    const looks = calls.every((call) => isRead(call) || hasNothing(books, call))
    if (!looks) this.#write(books, calls, answers)
    for (const [number, verb, ask] of calls)
      if (looks || !(verb in writes)) answers.push([number, reads[verb]!(books, ask as never)])
    return answers
  }

  #write(books: Books, calls: Call[], answers: Answer[]): void {
    const askedMs = systemClock.mono()
    transaction(books.db, () => {
      const waitedMs = systemClock.mono() - askedMs
      if (waitedMs > longWaitMs) books.nowMs += Math.floor(waitedMs)
      books.n = undefined
      sweep(books, calls)
      for (const [number, verb, ask] of calls)
        if (writes[verb]) answers.push([number, writes[verb](books, ask as never)])
      if (books.n !== undefined)
        books.db.run('UPDATE counter SET n = ? WHERE n < ?', books.n, books.n)
    })
  }
}

/** All or nothing, and on disk when it returns. */
function transaction(db: Database, work: () => void): void {
  const misplaced = db.place.problem()
  if (misplaced !== undefined) throw new RedriveError(tenant.unavailable, misplaced)
  db.begin('write')
  try {
    work()
    db.commit()
  } catch (error) {
    db.rollback()
    throw error
  }
}

const isRead = ([, verb]: Call): boolean => verb in reads && !(verb in writes)
