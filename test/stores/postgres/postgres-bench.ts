import { setTimeout as pause } from 'node:timers/promises'
import { Client } from 'pg'
import { afterAll } from 'vitest'
import type { Clock } from '../../../src/clock.ts'
import {
  postgresStore,
  type PostgresStore,
  type PostgresStoreOptions,
} from '../../../src/stores/postgres/postgres.ts'
import type { FakeClock } from '../../../src/testing/index.ts'
import type { ClosableBench } from '../../contract/run-store-contract.ts'
import { postgresPlace, type Place } from '../../servers/places.ts'
import { backend } from '../../servers/servers.ts'

export const { url, missing } = backend('postgres')

export interface PostgresBench extends ClosableBench {
  readonly store: PostgresStore
  readonly schema: string
  another(options?: Partial<PostgresStoreOptions>): Promise<PostgresStore>
  reopen(): Promise<PostgresStore>
  /** Asks the server behind the store's back; `@` stands for the schema. */
  ask(sql: string, values?: unknown[]): Promise<unknown[][]>
}

/** Schemas that are made and empty: making one takes longer than most tests. */
const spare: Place[] = []
afterAll(() => Promise.all(spare.splice(0).map(({ clear }) => clear())))

const tables = 'letters, bodies, edits, history, tags, deps, counters, records, ranges, queues'

/** Empties a schema, also of what an interrupted test left, and keeps it for the next. */
async function putBack(place: Place): Promise<void> {
  const clear = tables.split(', ').map((table) => `DELETE FROM "${place.name}".${table}`)
  await ask(clear.join('; '))
  spare.push(place)
}

/** A store in a schema of its own. Time is the server's, unless a clock is given. */
export async function openPostgresBench(clock?: FakeClock): Promise<PostgresBench> {
  const place = spare.pop() ?? postgresPlace(url)
  return benchAt(place, () => putBack(place), clock)
}

/** A store in a schema of its own that is given, and of what becomes of it. */
export async function benchAt(
  place: Place,
  leave: () => Promise<void>,
  clock?: FakeClock,
  given: Partial<PostgresStoreOptions> = {},
): Promise<PostgresBench> {
  const schema = place.name
  const opened: PostgresStore[] = []
  const open = async (options: Partial<PostgresStoreOptions> = {}): Promise<PostgresStore> => {
    const time: { clock?: Clock } = clock ? { clock } : {}
    const store = postgresStore({ url, schema, ...time, ...given, ...options })
    opened.push(store)
    await store.open()
    return store
  }
  const store = await open()
  return {
    store,
    schema,
    now: () => clock?.now() ?? Date.now(),
    advance: (ms) => (clock ? clock.advance(ms) : pause(ms)),
    another: open,
    reopen: async () => {
      await opened.at(-1)?.close()
      return open()
    },
    ask: (sql, values) => ask(sql.replaceAll('@', `"${schema}".`), values),
    close: async () => {
      await Promise.all(opened.map((one) => one.close()))
      await leave()
    },
  }
}

/** One statement on a connection of its own. */
export async function ask(text: string, values: unknown[] = []): Promise<unknown[][]> {
  const client = new Client({ connectionString: url })
  await client.connect()
  try {
    const query =
      values.length > 0
        ? { text, values, rowMode: 'array' as const }
        : { text, rowMode: 'array' as const }
    return (await client.query<unknown[]>(query)).rows
  } finally {
    await client.end()
  }
}
