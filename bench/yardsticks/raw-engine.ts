import { systemClock } from '../../src/clock/clock.ts'
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
  /**
   * Makes the next items that are due before `dueMs` due at that time, in one write. Returns how
   * many.
   */
  reschedule(limit: number, dueMs: number): Promise<number>
  close(): Promise<void>
}

interface RawItem {
  id: string
  payload: string
}

const engines: Partial<Record<StoreKind, (location: Location) => Promise<RawEngine>>> = {
  sqlite: openRawSqlite,
  postgres: openRawPostgres,
  redis: openRawRedis,
}

export function hasRawEngine(kind: StoreKind): boolean {
  return engines[kind] !== undefined
}

/** Opens a new engine for one measurement. */
export async function withRawEngine<T>(
  kind: StoreKind,
  location: Location,
  measure: (engine: RawEngine) => Promise<T>,
): Promise<T> {
  const engine = await engines[kind]!(location)
  try {
    return await measure(engine)
  } finally {
    await engine.close()
  }
}

/** Adds items in writes of `perWrite` items. */
export async function addItems(engine: RawEngine, count: number, perWrite: number): Promise<void> {
  for (let n = 0; n < count; n += perWrite)
    await engine.add(
      Array.from({ length: Math.min(perWrite, count - n) }, (_, at) => itemOf(n + at)),
    )
}

const payloads = Array.from({ length: 1000 }, (_, n) => rawPayload(n))

function itemOf(n: number): RawItem {
  return { id: systemClock.id(), payload: payloads[n % payloads.length]! }
}

/** As many bytes as a captured letter has: its payload and its error. */
function rawPayload(n: number): string {
  const { name, message, stack } = failure(n)
  return JSON.stringify({ ...operation(n), error: { name, message, stack } })
}
