import type { Pool } from 'pg'
import type { Clock } from '../../clock/clock.ts'
import { keysOf } from '../../check/keys.ts'

export interface PostgresStoreOptions {
  /**
   * `postgres://user@host:5432/database`. May contain other options, as in `?schema=…`. Either
   * `url` or `pool` is required.
   */
  url?: string
  /**
   * A pool of the application, which stays open when the store closes. One more connection, with
   * its options, listens.
   */
  pool?: Pool
  /** The schema of the tables. Default: `redrive`. Also `?schema=` in the URL. */
  schema?: string
  /**
   * Connections of this store, half of them only for capture, claim, renew and settle; one more
   * listens. Default: 10. Also `?poolSize=` in the URL. Not with `pool`.
   */
  poolSize?: number
  /**
   * Opens the store even if the server's settings would break a guarantee. Also `?allowUnsafe=true`
   * in the URL.
   */
  allowUnsafe?: boolean
  /**
   * Stores the letters of each month in tables of their own, for `dropBefore`. Only for a new
   * schema; an existing schema without partitions is rejected. Also `?partitions=` in the URL.
   */
  partitions?: 'month'
  /** For tests: the time for leases and due times. Default: the clock of the server. */
  clock?: Clock
}

export const optionKeys: readonly string[] = keysOf<PostgresStoreOptions>({
  url: true,
  pool: true,
  schema: true,
  poolSize: true,
  allowUnsafe: true,
  partitions: true,
  clock: true,
})
