import { openDatabase, type Database } from '../../backends/sqlite/database.ts'
import { migrations, schemaVersion } from './schema.ts'

const form = {
  busyTimeoutMs: 5000,
  // The dispatcher flushes.
  synchronous: 1,
  // The defaults of SQLite.
  pageBytes: 4096,
  cacheKib: 2000,
  schema: { meta: 'mail_meta', version: schemaVersion, migrations },
} as const

/** The open file and what is cached about it. Methods get it inside a transaction. */
export interface MailContext {
  readonly path: string
  readonly db: Database
  /** The time of the transaction. */
  nowMs: number
  /** The last number given out. Undefined: not read yet in this transaction. */
  n: number | undefined
  /** How many expired messages this transaction removed, by reporter. */
  readonly expired: Map<number, number>
  /** When a sweep last removed all expired messages of a mailbox. */
  readonly swept: Map<number, number>
  /** Mailboxes that got messages since a receiver last found too few. */
  readonly filled: Set<number>
}

export function openContext(path: string): MailContext {
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

/** A number that is larger than all numbers given out before. */
export function nextNumber(context: MailContext): number {
  context.n ??= Number(context.db.get('SELECT n FROM counter')![0])
  return ++context.n
}
