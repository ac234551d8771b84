import type { Database } from '../../backends/sqlite/database.ts'
import { counters, type Counters } from './counters.ts'
import { openStoreDatabase, type DatabaseOptions } from './database.ts'
import { diskOf, type Disk } from './disk.ts'
import { queueNames, type QueueNames } from './queue-names.ts'

/** The open file with what is remembered about it. Every verb works on the books, inside a transaction. */
export interface Books {
  readonly db: Database
  readonly disk: Disk
  readonly counters: Counters
  readonly queues: QueueNames
  readonly options: DatabaseOptions
  /** The time of this transaction. */
  nowMs: number
  /** Set by a write that may have made a letter free to be claimed. */
  woke: boolean
}

export function openBooks(options: DatabaseOptions): Books {
  const db = openStoreDatabase(options)
  return {
    db,
    options,
    disk: diskOf(options.path, db.place),
    counters: counters(db),
    queues: queueNames(db),
    nowMs: 0,
    woke: false,
  }
}

/** Forgets what may no longer be true, after a rollback. */
export function forgetAll(books: Books): void {
  books.counters.forget()
  books.queues.forget()
}
