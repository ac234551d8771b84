import { systemClock } from '../../clock/clock.ts'
import {
  breaksConnection,
  concernsAll,
  isFull,
  toOpenError,
  toRedriveError,
  type Tenant,
} from '../../backends/sqlite/errors.ts'
import { forgetAll, openBooks, type Books } from './books.ts'
import type { DatabaseOptions } from './database.ts'
import type { Call, Report } from './protocol.ts'
import { verbs, type Steps } from './verbs.ts'

/** A wait for the lock that is longer than this is added to the caller's time. */
const longWaitMs = 1000

const tenant: Tenant = {
  noun: 'store',
  unavailable: 'STORE_UNAVAILABLE',
  whenBusy:
    'another process held the write lock for longer than busyTimeoutMs: try again, or raise it',
}

type Done = { value: unknown } | { steps: Steps<unknown> } | { error: unknown }

/** A verb that is not finished: its next step waits for a turn. */
interface Job {
  call: Call
  steps: Steps<unknown>
}

/**
 * Does what batches ask, in the thread. All writes of a batch are one transaction, and are answered after its commit.
 * Reads come after them, and what takes long is done in steps between batches.
 */
export class Clerk {
  readonly #options: DatabaseOptions
  readonly #report: (report: Report) => void
  #books: Books | undefined
  #jobs: Job[] = []
  #nowMs = 0
  /** How long the last commit took, if something was written since the last report. */
  #commitMs: number | undefined

  constructor(options: DatabaseOptions, report: (report: Report) => void) {
    this.#options = options
    this.#report = report
  }

  /** Whether there are steps left to do. */
  get busy(): boolean {
    return this.#jobs.length > 0
  }

  run(nowMs: number, calls: Call[]): void {
    this.#nowMs = nowMs
    const writes = calls.filter((call) => verbs[call[1]].kind === 'write')
    const reads = calls.filter((call) => verbs[call[1]].kind === 'read')
    if (writes.length > 0) this.#tell(writes, this.#write(writes), reads.length === 0)
    if (reads.length > 0)
      this.#tell(
        reads,
        reads.map((call) => this.#attempt('read', () => start(this.#open(), call))),
        true,
      )
  }

  /** One step of the job that has waited longest. */
  step(): void {
    const job = this.#jobs.shift()
    if (!job) return
    const kind = verbs[job.call[1]].kind
    this.#tell([job.call], [this.#attempt(kind, () => next(job.steps))], false)
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

  /**
   * All calls in one transaction. When one of them fails, nothing of it stays, and each is tried on its own, so that
   * it cannot spoil the others.
   */
  #write(calls: Call[]): Done[] {
    let done: Done[] = []
    const all = this.#attempt('write', () => {
      const books = this.#open()
      done = calls.map((call) => start(books, call))
      return { value: undefined }
    })
    if (!('error' in all)) return done
    if (isFull(all.error)) this.#books?.disk.problems()
    if (concernsAll(all.error) || (calls.length === 1 && !isFull(all.error)))
      return calls.map(() => all)
    return calls.map((call) => this.#attempt('write', () => start(this.#open(), call)))
  }

  /** Runs in a transaction and never throws. */
  #attempt(kind: 'read' | 'write', work: () => Done): Done {
    try {
      const books = this.#open()
      this.#begin(books, kind)
      const done = work()
      if (kind === 'write') books.counters.flush()
      const tookMs = books.db.commit()
      if (kind === 'write') this.#commitMs = tookMs
      return done
    } catch (error) {
      this.#recover(error)
      return { error }
    }
  }

  #begin(books: Books, kind: 'read' | 'write'): void {
    const { db, disk } = books
    if (kind === 'write') {
      disk.check()
      // When room runs short the WAL is emptied before each write, so that it is written over instead of growing.
      if (disk.isLow()) db.checkpoint()
    }
    const askedMs = systemClock.mono()
    db.begin(kind)
    const waitedMs = systemClock.mono() - askedMs
    books.nowMs = Math.floor(this.#nowMs + (waitedMs > longWaitMs ? waitedMs : 0))
  }

  #recover(error: unknown): void {
    const books = this.#books
    if (!books) return
    books.db.rollback()
    forgetAll(books)
    if (breaksConnection(error)) this.close()
  }

  #open(): Books {
    return (this.#books ??= openBooks(this.#options))
  }

  #tell(calls: Call[], results: Done[], done: boolean): void {
    const answers: unknown[] = []
    const troubles: Report['troubles'] = []
    for (const [at, call] of calls.entries()) {
      const result = results[at]!
      if ('steps' in result) this.#jobs.push({ call, steps: result.steps })
      else if ('error' in result) {
        const describe = call[1] === 'open' ? toOpenError : toRedriveError
        troubles.push([call[0], describe(result.error, this.#options.path, tenant)])
      } else answers.push(call[0], result.value)
    }
    if (!done && answers.length + troubles.length === 0) return
    const report: Report = { answers }
    if (troubles.length > 0) report.troubles = troubles
    if (!done) report.aside = true
    if (this.#books?.woke) report.woke = true
    if (this.#books) this.#books.woke = false
    if (this.#commitMs !== undefined) report.commitMs = this.#commitMs
    this.#commitMs = undefined
    this.#report(report)
  }
}

/** The answer, or the steps that remain after the first. */
function start(books: Books, [, verb, ask]: Call): Done {
  const work = verbs[verb].work as (books: Books, ask: unknown) => unknown
  const result = work(books, ask)
  return isSteps(result) ? next(result) : { value: result }
}

function next(steps: Steps<unknown>): Done {
  const { done, value } = steps.next()
  return done ? { value } : { steps }
}

function isSteps(result: unknown): result is Steps<unknown> {
  return (
    typeof result === 'object' && result !== null && Symbol.iterator in result && 'next' in result
  )
}
