import { mkdirSync } from 'node:fs'
import { rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { QueueOptions } from '../../src/options/options.ts'
import { DeadLetterQueue } from '../../src/queue/queue.ts'
import type { Store } from '../../src/store.ts'
import { memoryStore } from '../../src/stores/memory/memory.ts'
import { openSearchStore } from '../../src/stores/opensearch/opensearch.ts'
import { postgresStore } from '../../src/stores/postgres/postgres.ts'
import { redisStore } from '../../src/stores/redis/redis.ts'
import { sqliteStore } from '../../src/stores/sqlite/sqlite.ts'
import { opensearchPlace, postgresPlace, redisPlace } from '../servers/places.ts'
import { backend, freshName, type Backend } from '../servers/servers.ts'

/** A store in a separate place. Each call of `make` returns another handle. */
interface StorePlace {
  make: () => Store
  clear: () => Promise<void>
}

const urlOf = (name: Backend): string => {
  const { url, missing } = backend(name)
  if (missing !== undefined) throw new Error(missing)
  return url
}

const places = {
  memory: async () => ({ make: () => memoryStore(), clear: async () => {} }),
  sqlite: async () => {
    const folder = join(tmpdir(), freshName())
    mkdirSync(folder)
    return {
      make: () => sqliteStore({ path: join(folder, 'letters.db') }),
      clear: () => rm(folder, { recursive: true, force: true }),
    }
  },
  postgres: async () => {
    const url = urlOf('postgres')
    const { name: schema, clear } = postgresPlace(url)
    return { make: () => postgresStore({ url, schema }), clear }
  },
  redis: async () => {
    const url = urlOf('redis')
    const { name: prefix, clear } = redisPlace(url)
    return { make: () => redisStore({ url, prefix }), clear }
  },
  opensearch: async () => {
    const url = urlOf('opensearch')
    const { name: prefix, clear } = opensearchPlace(url)
    return { make: () => openSearchStore({ url, prefix }), clear }
  },
} satisfies Record<string, () => Promise<StorePlace>>

export type StoreKind = keyof typeof places
export const storeKinds = Object.keys(places) as StoreKind[]

/**
 * Passes a function that opens queues on the store; closes all of them and clears the place
 * afterwards.
 */
export async function onStore(
  kind: StoreKind,
  use: (open: (options?: QueueOptions) => Promise<DeadLetterQueue>) => Promise<void>,
): Promise<void> {
  const place = await places[kind]()
  const opened: DeadLetterQueue[] = []
  try {
    await use(async (options = {}) => {
      const queue = await DeadLetterQueue.open(place.make(), options)
      opened.push(queue)
      return queue
    })
  } finally {
    await Promise.all(opened.map((queue) => queue.close()))
    await place.clear()
  }
}
