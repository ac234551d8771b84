import { Client } from 'pg'
import { vi } from 'vitest'
import type { Clock } from '../../../src/clock/clock.ts'
import {
  postgresStore,
  type PostgresStore,
  type PostgresStoreOptions,
} from '../../../src/stores/postgres/postgres.ts'
import type { FakeClock } from '../../../src/testing/index.ts'
import { afterFile } from '../../after-file.ts'
import { postgresPlace, type Place } from '../../servers/places.ts'
import { backend } from '../../servers/servers.ts'
import { openBench, pausing, type BenchOf } from '../bench.ts'

export const { url, missing } = backend('postgres')

export interface PostgresBench extends BenchOf<PostgresStore, Partial<PostgresStoreOptions>> {
  readonly schema: string
  /** Asks the server behind the store's back; `@` stands for the schema. */
  ask(sql: string, values?: unknown[]): Promise<unknown[][]>
}

/** Schemas that are made and empty: making one takes longer than most tests. */
const spare: Place[] = []

const dropSpare = (): Promise<unknown> => Promise.all(spare.splice(0).map(({ clear }) => clear()))

const tables = 'letters, bodies, tags, groups, deps, counters, records, ranges, queues'

/** Empties a schema, also of what an interrupted test left, and keeps it for the next. */
async function putBack(place: Place): Promise<void> {
  const clear = tables.split(', ').map((table) => `DELETE FROM "${place.name}".${table}`)
  await ask(clear.join('; '))
  spare.push(place)
  afterFile(dropSpare)
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
  const time: { clock?: Clock } = clock ? { clock: pausing(clock) } : {}
  const make = (options: Partial<PostgresStoreOptions> = {}): PostgresStore =>
    postgresStore({ url, schema, ...time, ...given, ...options })
  return {
    ...(await openBench(make, clock, leave)),
    schema,
    ask: (sql, values) => ask(sql.replaceAll('@', `"${schema}".`), values),
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

/**
 * Lets something happen to the store when a statement is about to be sent, once. Mocks are to be
 * restored afterwards.
 */
export function meanwhile(statement: string, happen: () => Promise<unknown>): void {
  const send = Reflect.get(Client.prototype, 'query') as (...args: unknown[]) => Promise<unknown>
  let done = false
  const spy = vi.spyOn(Client.prototype, 'query') as unknown as {
    mockImplementation(to: (this: Client, ...args: unknown[]) => Promise<unknown>): void
  }
  spy.mockImplementation(function (this: Client, ...args) {
    if (done || !(args[0] as { text?: string }).text?.includes(statement))
      return send.apply(this, args)
    done = true
    return happen().then(() => send.apply(this, args))
  })
}
