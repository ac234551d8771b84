import { postgresStore } from '../../../src/stores/postgres/postgres.ts'
import { redisStore } from '../../../src/stores/redis/redis.ts'
import { sqliteStore } from '../../../src/stores/sqlite/sqlite.ts'
import type { Store } from '../../../src/store.ts'

/** Where a store is, as JSON for another process. */
export type StorePlace =
  | { kind: 'sqlite'; path: string }
  | { kind: 'postgres'; url: string; schema: string }
  | { kind: 'redis'; url: string; prefix: string }

export function openPlace({ kind, ...options }: StorePlace): Store {
  if (kind === 'sqlite') return sqliteStore(options as { path: string })
  if (kind === 'redis') return redisStore(options as { url: string; prefix: string })
  return postgresStore(options as { url: string; schema: string })
}
