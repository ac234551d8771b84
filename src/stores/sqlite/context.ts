import type { Database } from '../../backends/sqlite/database.ts'
import { counters, type Counters } from './counters.ts'
import { openStoreDatabase, type DatabaseOptions } from './database.ts'
import { diskOf, type Disk } from './disk.ts'
import { queueNames, type QueueNames } from './queue-names.ts'

/** The open file and what is cached about it. Methods get it inside a transaction. */
export interface StoreContext {
  readonly db: Database
  readonly disk: Disk
  readonly counters: Counters
  readonly queues: QueueNames
  readonly options: DatabaseOptions
  /** The time of this transaction. */
  nowMs: number
  /** Set by a write that may have made a letter claimable. */
  woke: boolean
}

export function openContext(options: DatabaseOptions): StoreContext {
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
