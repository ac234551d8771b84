import type { Database } from '../../backends/sqlite/database.ts'
import { Counters } from './counters.ts'
import { openStoreDatabase, type DatabaseOptions } from './database.ts'
import { Disk } from './disk.ts'
import { QueueNames } from './queue-names.ts'

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
    disk: new Disk(options.path, db.place),
    counters: new Counters(db),
    queues: new QueueNames(db),
    nowMs: 0,
    woke: false,
  }
}
