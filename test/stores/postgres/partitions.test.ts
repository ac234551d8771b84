import { Client } from 'pg'
import { afterEach, describe, expect, it } from 'vitest'
import { systemClock, type Clock } from '../../../src/clock/clock.ts'
import { connect } from '../../../src/connect/store.ts'
import { toTimestamp } from '../../../src/letter/time.ts'
import { postgresStore } from '../../../src/stores/postgres/postgres.ts'
import { aLetter, fakeClock } from '../../../src/testing/index.ts'
import { postgresPlace } from '../../servers/places.ts'
import { openMonthsBench } from './partitions-bench.ts'
import { ask, missing, openPostgresBench, url, type PostgresBench } from './postgres-bench.ts'

const dayMs = 86_400_000
const january = Date.UTC(2026, 0, 1)

/** Time stands still, but timers run: whoever waits for another writer goes on. */
const standing = (ms: number): Clock => ({ ...systemClock, now: () => ms })

describe.skipIf(missing)('postgresStore by month', { timeout: 60_000 }, () => {
  let bench: PostgresBench | undefined
  afterEach(() => bench?.close())

  const monthsOf = async (schema = bench!.schema): Promise<string[]> => {
    const sql = `SELECT right(relid::text, 7) FROM pg_partition_tree($1) WHERE level = 1 ORDER BY 1`
    const rows = await ask(sql, [`"${schema}".letters`])
    return rows.map(([name]) => name as string)
  }
  /** In which table each letter stands, and that its parts stand in those of the same month. */
  const tablesOf = async (id: string): Promise<string[]> => {
    const from = ['letters', 'bodies', 'tags', 'groups'].map(
      (table) => `SELECT tableoid::regclass::text AS name FROM @${table} WHERE id = $1`,
    )
    const rows = await bench!.ask(
      `SELECT DISTINCT right(name, 7) FROM (${from.join(' UNION ALL ')}) t`,
      [id],
    )
    return rows.map(([name]) => name as string)
  }

  it('creates the current month and the next three, and stores each letter by its id', async () => {
    const clock = fakeClock(january)
    bench = await openMonthsBench(clock)
    expect(await monthsOf()).toEqual(['2026_01', '2026_02', '2026_03', '2026_04', 's_other'])
    const last = fakeClock(Date.UTC(2026, 1, 1) - 1).id()
    const first = fakeClock(Date.UTC(2026, 1, 1)).id()
    const chosen = '6f1c2a34-0000-4000-8000-000000000001'
    const ids = [fakeClock(january).id(), last, first, fakeClock(january - 1).id(), chosen]
    await bench.store.add(ids.map((id) => aLetter({ id, tags: ['a'] })))
    const tables = await Promise.all(ids.map(tablesOf))
    expect(tables.flat()).toEqual(['2026_01', '2026_01', '2026_02', 's_other', 's_other'])
    expect((await bench.store.get(ids)).map(({ id }) => id)).toEqual(ids)
  })

  it('creates months as time passes, when letters are added', async () => {
    const clock = fakeClock(january)
    bench = await openMonthsBench(clock)
    await clock.advance(45 * dayMs)
    const store = await bench.another()
    await store.close()
    expect(await monthsOf()).toContain('2026_05')
    await clock.advance(61 * dayMs)
    const letter = aLetter({ id: clock.id() })
    await bench.store.add([letter])
    await bench.reopen()
    expect(await monthsOf()).toEqual([
      '2026_01',
      '2026_02',
      '2026_03',
      '2026_04',
      '2026_05',
      '2026_06',
      '2026_07',
      's_other',
    ])
    expect(await tablesOf(letter.id)).toEqual(['2026_04'])
  })

  it('creates months also when letters are added only in transactions of callers', async () => {
    const clock = fakeClock(january)
    bench = await openMonthsBench(clock)
    await clock.advance(45 * dayMs)
    const client = new Client({ connectionString: url })
    await client.connect()
    try {
      await client.query('BEGIN')
      await bench.store.within(client).add([aLetter({ id: clock.id() })])
      await client.query('COMMIT')
    } finally {
      await client.end()
    }
    await bench.store.close()
    expect(await monthsOf()).toContain('2026_05')
  })

  it('skips a month that has letters in the default partition, and creates the next one', async () => {
    const clock = fakeClock(january)
    bench = await openMonthsBench(clock)
    const early = aLetter({ id: fakeClock(Date.UTC(2026, 4, 3)).id() })
    await bench.store.add([early])
    await clock.advance(62 * dayMs)
    const store = await bench.another()
    const months = ['2026_01', '2026_02', '2026_03', '2026_04', '2026_06', 's_other']
    expect(await monthsOf()).toEqual(months)
    expect(await store.get([early.id])).toEqual([early])
    // Once they are gone, the month can be made.
    await store.remove({ ids: [early.id] })
    await clock.advance(dayMs)
    await store.add([aLetter({ id: clock.id() })])
    await store.close()
    expect(await monthsOf()).toContain('2026_05')
  })

  it('is decided when the schema is created', async () => {
    bench = await openPostgresBench()
    const wish = postgresStore({ url, schema: bench.schema, partitions: 'month' })
    await expect(wish.open()).rejects.toMatchObject({ code: 'INVALID_CONFIG' })
    await wish.close()
    await expect(bench.store.dropBefore('2026-01')).rejects.toMatchObject({
      code: 'INVALID_CONFIG',
    })
    const odd = (): unknown => postgresStore({ url: `${url}?partitions=week` })
    expect(odd).toThrow(expect.objectContaining({ code: 'INVALID_CONFIG' }) as Error)
  })

  it('is set by the URL, and remembered by the schema', async () => {
    const place = postgresPlace(url)
    const store = await connect(`${url}?schema=${place.name}&partitions=month`, systemClock)
    await store.open()
    await store.close()
    const next = postgresStore({ url, schema: place.name })
    await next.open()
    const letter = aLetter({ id: systemClock.id() })
    await next.add([letter])
    expect(await next.dropBefore(toTimestamp(systemClock.now()).slice(0, 7))).toEqual({
      dropped: [],
      kept: [],
    })
    expect(await next.get([letter.id])).toEqual([letter])
    await next.close()
    await place.clear()
  })

  it('creates the schema and its months once when several processes open at once', async () => {
    const place = postgresPlace(url)
    const open = async (startMs: number): Promise<void> => {
      const stores = Array.from({ length: 4 }, () =>
        postgresStore({ url, schema: place.name, partitions: 'month', clock: standing(startMs) }),
      )
      await Promise.all(stores.map((store) => store.open()))
      const letters = stores.map((_, n) => aLetter({ id: fakeClock(startMs, n + 2).id() }))
      const added = await Promise.all(stores.map((store, n) => store.add([letters[n]!])))
      expect(added.flat()).toEqual(stores.map(() => ({ kind: 'added' })))
      await Promise.all(stores.map((store) => store.close()))
    }
    await open(january)
    await open(january + 120 * dayMs)
    expect((await monthsOf(place.name)).length).toBe(9)
    await place.clear()
  })

  it('stores letters while months are created', async () => {
    bench = await openMonthsBench(fakeClock(january))
    const writer = await bench.another({ clock: standing(january) })
    const ids = Array.from({ length: 200 }, (_, n) => fakeClock(january, n + 2).id())
    const adding = Promise.all(ids.map((id) => writer.add([aLetter({ id, tags: ['a'] })])))
    const late = [40, 75, 100].map((days) =>
      bench!.another({ clock: standing(january + days * dayMs) }),
    )
    expect((await adding).flat().every(({ kind }) => kind === 'added')).toBe(true)
    await Promise.all(late)
    expect(await bench.store.tally('tag')).toEqual(new Map([['a', 200]]))
    expect(await monthsOf()).toContain('2026_07')
  })
})
