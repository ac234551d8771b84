import { systemClock } from '../../../src/clock/clock.ts'
import type { PostgresStoreOptions } from '../../../src/stores/postgres/postgres.ts'
import { aLetter, fakeClock, type FakeClock } from '../../../src/testing/index.ts'
import { afterFile } from '../../after-file.ts'
import { postgresPlace, type Place } from '../../servers/places.ts'
import { ask, benchAt, url, type PostgresBench } from './postgres-bench.ts'

const parted = ['letters', 'bodies', 'tags', 'groups']
const others = ['deps', 'counters', 'records', 'ranges', 'queues']

/**
 * A store whose letters are kept by month, in a schema that is made for it and dropped afterwards.
 */
export function openMonthsBench(
  clock?: FakeClock,
  options: Partial<PostgresStoreOptions> = {},
): Promise<PostgresBench> {
  const place = postgresPlace(url)
  return benchAt(place, () => place.clear(), clock, { partitions: 'month', ...options })
}

const spare: Record<'contract' | 'model', Place[]> = { contract: [], model: [] }

const dropSpare = (): Promise<unknown> =>
  Promise.all(
    Object.values(spare).flatMap((places) => places.splice(0).map(({ clear }) => clear())),
  )

const partsOf = (name: string, from: string, to: string): string[] =>
  parted.map(
    (table) =>
      `CREATE TABLE @${table}_${name} PARTITION OF @${table} FOR VALUES FROM ('${from}') TO ('${to}')`,
  )

async function spareBench(
  kind: 'contract' | 'model',
  clock: FakeClock,
): Promise<[PostgresBench, boolean]> {
  const known = spare[kind].pop()
  const place = known ?? postgresPlace(url)
  const leave = async (): Promise<void> => {
    const tables = [...parted, ...others].map((table) => `DELETE FROM "${place.name}".${table}`)
    await ask(tables.join('; '))
    spare[kind].push(place)
    afterFile(dropSpare)
  }
  const bench = await benchAt(place, leave, clock, { partitions: 'month' })
  return [bench, known === undefined]
}

/**
 * Time is moved by hand, and timers run. It is long after the ids of `aLetter`, whose month so has
 * no tables.
 */
function heldClock(): FakeClock {
  const fake = fakeClock(Date.UTC(2026, 5, 1))
  return {
    ...systemClock,
    now: () => fake.now(),
    set: (ms) => fake.set(ms),
    advance: (ms) => fake.advance(ms),
    pending: () => fake.pending(),
  }
}

/**
 * A store with a part so narrow that few letters stand in it: of those that `aLetter` makes from
 * now on, the second and the third.
 */
export async function openNarrowBench(): Promise<PostgresBench> {
  const [bench] = await spareBench('contract', heldClock())
  const [, head, count] = /^(.{24})(.{4})/.exec(aLetter().id)!
  const nth = (n: number): string =>
    `${head!}${(Number.parseInt(count!, 16) + n).toString(16).padStart(4, '0')}00000000`
  const old = parted.map((table) => `DROP TABLE IF EXISTS @${table}_narrow`)
  await bench.ask([...old, ...partsOf('narrow', nth(2), nth(4))].join('; '))
  return bench
}

/**
 * A store for the model, whose ids begin at any of 256 places: two parts have many of them, and the
 * rest is elsewhere.
 */
export async function openModelBench(clock: FakeClock): Promise<PostgresBench> {
  const [bench, fresh] = await spareBench('model', clock)
  const place = (hex: string): string => `00000000-0000-7000-8000-000000${hex}0000`
  const parts = [
    ...partsOf('low', place('02'), place('40')),
    ...partsOf('high', place('40'), place('c0')),
  ]
  if (fresh) await bench.ask(parts.join('; '))
  return bench
}
