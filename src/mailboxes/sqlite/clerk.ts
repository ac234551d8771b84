import { systemClock } from '../../clock/clock.ts'
import { RedriveError } from '../../errors.ts'
import { breaksConnection, toRedriveError, type Tenant } from '../../backends/sqlite/errors.ts'
import { forgetAll, openBooks, type Books } from './books.ts'
import { sweep } from './expiring.ts'
import type { Call, Report, Verb } from './protocol.ts'
import { runsOf } from './runs.ts'
import { hasNothing, reads, writes } from './verbs.ts'

/** A wait for the lock that is longer than this is added to the caller's time. */
const longWaitMs = 1000

/** Before what has to be on disk it is checked each time whether the file is in its place, and else after so long. */
const betweenChecksMs = 5

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
  /** Whether something was written that is not on disk yet. */
  unflushed = false
  /** A flush failed, and what was committed by then may still not be on disk. */
  #inDoubt = false
  #checkAtMs = 0

  constructor(path: string, report: (report: Report) => void) {
    this.#path = path
    this.#report = report
  }

  run(nowMs: number, calls: Call[]): void {
    this.#report(this.#done(nowMs, calls))
  }

  /** Puts on disk what became of deliveries. Should that fail, the connection cannot be trusted any more, and some may come again. */
  flush(): void {
    this.unflushed = false
    try {
      if (this.#books) this.#flush(this.#books)
    } catch {
      this.close()
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

  #done(nowMs: number, calls: Call[]): Report {
    let books: Books | undefined
    try {
      books = this.#books ??= openBooks(this.#path)
      books.nowMs = nowMs
      return withExpired(books, this.#carryOut(books, calls))
    } catch (error) {
      if (books) forgetAll(books)
      if (breaksConnection(error)) this.close()
      const trouble = toRedriveError(error, this.#path, tenant)
      return withExpired(books, {
        answers: [],
        troubles: calls.map(([number]) => [number, trouble]),
      })
    }
  }

  #carryOut(books: Books, calls: Call[]): Pick<Report, 'answers' | 'commitMs'> {
    const answers: unknown[] = []
    books.expired.clear()
    // Whoever waits looks again and again, and must not take the lock each time.
    const looks = calls.every((call) => isRead(call) || hasNothing(books, call))
    const written = looks ? {} : this.#write(books, calls, answers)
    for (const [number, verb, ask] of calls)
      if (looks || !(verb in writes)) answers.push(number, reads[verb]!(books, ask as never))
    return { answers, ...written }
  }

  /** Answers how long it took to get what has to be on disk there. */
  #write(books: Books, calls: Call[], answers: unknown[]): Pick<Report, 'commitMs'> {
    const askedMs = systemClock.mono()
    const toDisk = calls.some(([, verb]) => verb in writes && !ofDeliveries.has(verb))
    if (toDisk || askedMs >= this.#checkAtMs) this.#checkPlace(books)
    transaction(books, () => {
      const waitedMs = systemClock.mono() - askedMs
      if (waitedMs > longWaitMs) books.nowMs += Math.floor(waitedMs)
      books.n = undefined
      sweep(books, calls)
      for (const run of runsOf(calls, isLike)) {
        const values = writes[run[0]![1]]?.(books, run as never) ?? []
        for (const [at, value] of values.entries()) answers.push(run[at]![0], value)
      }
      if (books.n !== undefined)
        books.db.run('UPDATE counter SET n = ? WHERE n < ?', books.n, books.n)
    })
    this.unflushed = true
    if (!toDisk) return {}
    const startMs = systemClock.mono()
    this.#flush(books)
    return { commitMs: systemClock.mono() - startMs }
  }

  #flush({ db }: Books): void {
    const isAnew = this.#inDoubt
    this.#inDoubt = true
    if (isAnew) db.flushAnew()
    else db.flush()
    this.#inDoubt = false
    this.unflushed = false
  }

  #checkPlace({ db }: Books): void {
    this.#checkAtMs = 0
    const misplaced = db.place.problem()
    if (misplaced !== undefined) throw new RedriveError(tenant.unavailable, misplaced)
    this.#checkAtMs = systemClock.mono() + betweenChecksMs
  }
}

/** All or nothing. */
function transaction({ db, expired }: Books, work: () => void): void {
  db.begin('write')
  try {
    work()
    db.commit()
  } catch (error) {
    db.rollback()
    expired.clear()
    throw error
  }
}

/** What was committed is gone, also when a flush or a look failed after it. */
function withExpired(books: Books | undefined, report: Report): Report {
  if (books && books.expired.size > 0) report.expired = [...books.expired]
  return report
}

/**
 * What becomes of a delivery does not wait for the disk. A loss of power that takes it also takes whoever held the message, who may have been
 * about to settle it as well: it comes again, as it may after any crash. It is put on disk soon all the same.
 */
const ofDeliveries: ReadonlySet<Verb> = new Set(['take', 'extend', 'nack', 'acknowledge'])

const isLike = ([, one]: Call, [, other]: Call): boolean => one === other

const isRead = ([, verb]: Call): boolean => verb in reads && !(verb in writes)
