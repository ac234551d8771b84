import type { Ground, StoreKind } from '../ground.ts'
import { rawPostgres } from './postgres.ts'
import { rawRedis } from './redis.ts'
import { rawSqlite, rawSqliteThread } from './sqlite.ts'

/** What the backend alone gives, in letters a second, with so many letters to a write. */
export type Yardstick = (ground: Ground, count: number, perWrite: number) => Promise<number>

const yardsticks: Partial<Record<StoreKind, Yardstick>> = {
  sqlite: rawSqlite,
  postgres: rawPostgres,
  redis: rawRedis,
}

export function yardstickOf(kind: StoreKind): Yardstick | undefined {
  return yardsticks[kind]
}

/** For a store that keeps its file in a thread: what the way there and back leaves of one letter to a write. */
export function threadYardstickOf(kind: StoreKind): Yardstick | undefined {
  return kind === 'sqlite' ? rawSqliteThread : undefined
}
