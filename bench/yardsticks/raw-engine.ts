import type { Location, StoreKind } from '../location.ts'
import { failure, operation } from '../sample.ts'
import { openRawPostgres } from './raw-postgres.ts'
import { openRawRedis } from './raw-redis.ts'
import { openRawSqlite } from './raw-sqlite.ts'

/**
 * A backend without Redrive: a bare table with an id, a state, a due time and a payload. It shows
 * what the engine allows: no checks, classification, counts, history, lists or groups.
 */
export interface RawEngine {
  /** Adds items that are due, in one durable write. */
  add(items: readonly RawItem[]): Promise<void>
  /** Leases due items in one write, and marks them as done in another. Returns how many. */
  drain(limit: number): Promise<number>
  close(): Promise<void>
}

export interface RawItem {
  id: string
  payload: string
}

const engines: Partial<Record<StoreKind, (location: Location) => Promise<RawEngine>>> = {
  sqlite: openRawSqlite,
  postgres: openRawPostgres,
  redis: openRawRedis,
}

/** Undefined for a store without an engine. */
export function rawEngineOf(
  kind: StoreKind,
): ((location: Location) => Promise<RawEngine>) | undefined {
  return engines[kind]
}

/** As many bytes as a captured letter has: its payload and its error. */
export function rawPayload(n: number): string {
  const { name, message, stack } = failure(n)
  return JSON.stringify({ ...operation(n), error: { name, message, stack } })
}
