import type { Clock } from '../../clock/clock.ts'
import type { PostgresConnection } from '../../backends/postgres/connection.ts'
import type { QueueNames } from './queue-names.ts'

/** What the functions of an open store share. */
export interface StoreContext {
  readonly connection: PostgresConnection
  readonly queues: QueueNames
  readonly clock: Clock
  /** The time for leases and due times; null means the time of the server. */
  now(): number | null
  /** Lends a counter slot that no other transaction of this store is using. */
  withSlot<T>(use: (slot: number) => Promise<T>): Promise<T>
  /** Wakes watchers: letters may have become claimable. */
  wake(): void
}

/**
 * SQL for the time in milliseconds: the parameter, or the time of the server. Not `now()`, which
 * does not advance within a transaction.
 */
export const nowMs = (param: string): string =>
  `coalesce(${param}::bigint, floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint)`

/** A duration as an integer for the server, limited to about 30,000 years. */
export const wholeMs = (ms: number): number => Math.trunc(Math.min(ms, 1e15))

/** SQL for milliseconds as a timestamp. */
export const isoOf = (ms: string): string =>
  `to_char(to_timestamp(least(${ms}, 253402300799999) / 1000.0) AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"')`
