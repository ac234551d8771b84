import { openDatabase, type Database } from '../../backends/sqlite/database.ts'
import { migrations, schemaVersion } from './schema.ts'

const form = {
  busyTimeoutMs: 5000,
  // The clerk flushes what has to be on disk.
  synchronous: 1,
  // As SQLite has them.
  pageBytes: 4096,
  cacheKib: 2000,
  schema: { meta: 'mail_meta', version: schemaVersion, migrations },
} as const

/** What the verbs work on. */
export interface Books {
  readonly path: string
  readonly db: Database
  /** The time of the batch. */
  nowMs: number
  /** The last number that was given out. Undefined: it was not looked up yet in this batch. */
  n: number | undefined
  /** How many expired messages this batch removed, by reporter. */
  readonly expired: Map<number, number>
  /** When a sweep of a mailbox last found all of its expired messages. */
  readonly swept: Map<number, number>
  /** Mailboxes that were given something since one who took found too little in them. */
  readonly filled: Set<number>
}

export function openBooks(path: string): Books {
  return {
    path,
    db: openDatabase({ path, ...form }),
    nowMs: 0,
    n: undefined,
    expired: new Map(),
    swept: new Map(),
    filled: new Set(),
  }
}

/** The last number that was given out. */
export function lastOf(books: Books): number {
  return (books.n ??= Number(books.db.get('SELECT n FROM counter')![0]))
}

/** Forgets what may no longer be true, after a rollback. */
export function forgetAll(books: Books): void {
  books.swept.clear()
  books.filled.clear()
}
