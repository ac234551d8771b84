import { systemClock } from '../../clock.ts'
import { RedriveError } from '../../errors.ts'
import type { Database } from '../../sqlite/database.ts'
import { breaksConnection, troubleOf, type Tenant } from '../../sqlite/trouble.ts'
import { openBooks, type Books } from './books.ts'
import type { Batch, Call, Report } from './protocol.ts'
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
  #books: Books | undefined

  constructor(path: string) {
    this.#path = path
  }

  run(batch: Batch): Report {
    try {
      const books = (this.#books ??= openBooks(this.#path))
      books.nowMs = batch.nowMs
      return this.#carryOut(books, batch.calls)
    } catch (error) {
      if (breaksConnection(error)) this.close()
      return { answers: troubleOf(error, this.#path, tenant), expired: [] }
    }
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

  #carryOut(books: Books, calls: Call[]): Report {
    const answers: unknown[] = []
    books.expired.clear()
    // Whoever waits looks again and again, and must not take the lock each time.
    const looks = calls.every((call) => isRead(call) || hasNothing(books, call))
    if (!looks) this.#write(books, calls, answers)
    for (const [at, { verb, ask }] of calls.entries())
      if (!(at in answers)) answers[at] = reads[verb]!(books, ask as never)
    return { answers, expired: [...books.expired] }
  }

  #write(books: Books, calls: Call[], answers: unknown[]): void {
    const askedMs = systemClock.mono()
    transaction(books.db, () => {
      const waitedMs = systemClock.mono() - askedMs
      if (waitedMs > longWaitMs) books.nowMs += Math.floor(waitedMs)
      books.n = undefined
      sweep(books, calls)
      for (const [at, { verb, ask }] of calls.entries())
        if (writes[verb]) answers[at] = writes[verb](books, ask as never)
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

const isRead = ({ verb }: Call): boolean => verb in reads && !(verb in writes)
