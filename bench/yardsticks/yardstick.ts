import type { Ground, StoreKind } from '../ground.ts'
import { rawPostgres } from './postgres.ts'
import { rawRedis } from './redis.ts'
import { rawSqlite } from './sqlite.ts'

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
