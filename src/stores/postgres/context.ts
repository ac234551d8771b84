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

/** Whether a letter with one of these due times is claimable now, by the clock of this machine. */
export function isAnyDue(context: StoreContext, dueTimes: readonly (number | null)[]): boolean {
  const soon = (context.now() ?? context.clock.now()) + 2000
  return dueTimes.some((at) => at !== null && at <= soon)
}

/**
 * SQL for the time in milliseconds: the parameter, or the time of the server. Not `now()`, which
 * does not advance within a transaction.
 */
export const nowMs = (param: string): string =>
  `coalesce(${param}::bigint, floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint)`

/** The last time that can be written as a timestamp. */
export const lastMs = 253_402_300_799_999

/** A duration as an integer for the server, limited to about 8,000 years. */
export const wholeMs = (ms: number): number => Math.trunc(Math.min(ms, lastMs))

/** SQL for milliseconds as a timestamp. */
export const isoOf = (ms: string): string =>
  `to_char(to_timestamp(least(${ms}, ${lastMs}) / 1000.0) AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"')`
