import type { Location, StoreKind } from '../location.ts'
import { rawPostgres } from './postgres.ts'
import { rawRedis } from './redis.ts'
import { rawSqlite, rawSqliteThread } from './sqlite.ts'

/** Throughput of the backend alone in letters per second, with a number of letters per write. */
export type Yardstick = (location: Location, count: number, perWrite: number) => Promise<number>

const yardsticks: Partial<Record<StoreKind, Yardstick>> = {
  sqlite: rawSqlite,
  postgres: rawPostgres,
  redis: rawRedis,
}

export function yardstickOf(kind: StoreKind): Yardstick | undefined {
  return yardsticks[kind]
}

/**
 * For a store with a worker thread: the throughput of single letters including the thread round
 * trip.
 */
export function threadYardstickOf(kind: StoreKind): Yardstick | undefined {
  return kind === 'sqlite' ? rawSqliteThread : undefined
}
