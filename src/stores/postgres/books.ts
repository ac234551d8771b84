import type { Clock } from '../../clock/clock.ts'
import type { PostgresConnection } from '../../backends/postgres/connection.ts'
import type { QueueNames } from './queue-names.ts'

/** The open store as the verbs see it. */
export interface Books {
  readonly connection: PostgresConnection
  readonly queues: QueueNames
  readonly clock: Clock
  /** The time by which leases and due times are judged; null: the server's. */
  now(): number | null
  /** A slot of the counters that no other transaction of this store uses at the moment. */
  withSlot<T>(use: (slot: number) => Promise<T>): Promise<T>
  /** Says that letters may have become free to be claimed. */
  wake(): void
}

/** The time in milliseconds, in SQL: that of the parameter, or the server's. Not `now()`, which stands still in a transaction. */
export const nowMs = (param: string): string =>
  `coalesce(${param}::bigint, floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint)`

/** A length of time as the server takes it. None means more than this. */
export const wholeMs = (ms: number): number => Math.trunc(Math.min(ms, 1e15))

/** Milliseconds as a moment, in SQL. */
export const isoOf = (ms: string): string =>
  `to_char(to_timestamp(least(${ms}, 253402300799999) / 1000.0) AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"')`
