import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { systemClock } from '../../../src/clock/clock.ts'
import type { DeadLetter } from '../../../src/letter/letter.ts'
import { archive, edit, resolve, restore, type Change } from '../../../src/letter/moves.ts'
import { toTimestamp } from '../../../src/letter/time.ts'
import type { PostgresStore } from '../../../src/stores/postgres/postgres.ts'
import type { Store, TallyKey } from '../../../src/store.ts'
import { aLetter, fakeClock } from '../../../src/testing/index.ts'
import { openMonthsBench } from './partitions-bench.ts'
import { meanwhile, missing, openPostgresBench, type PostgresBench } from './postgres-bench.ts'

const january = Date.UTC(2026, 0, 1)
const april = Date.UTC(2026, 3, 15)
const by = { at: toTimestamp(april), actor: 'ada', guard: 'version' } as const

const ids = [0, 1, 2].map((month) => {
  const clock = fakeClock(Date.UTC(2026, month, 20), month + 1)
  return Array.from({ length: 30 }, () => clock.id())
})

/** Letters of all kinds: every second of them archived, the others resolved. */
const lettersOf = (month: number): DeadLetter[] =>
  ids[month]!.map((id, n) =>
    aLetter({
      id,
      state: n % 2 === 0 ? 'resolved' : 'archived',
      queue: ['orders', 'mail', 'od\0d'][n % 3]!,
      priority: (['critical', 'high', 'medium', 'low'] as const)[n % 4]!,
      category: n % 5 === 0 ? 'timeout' : 'transient',
      fingerprint: `f${n % 4}\0`,
      tags: ['a', 'b\0', 'c'].slice(0, n % 4),
      retries: n,
      backoffMs: n * 10,
      ...(n % 7 === 0 ? { lane: `l${n}`, dependsOn: ['nobody', ids[1]![0]!] } : {}),
    }),
  )

const keys: TallyKey[] = ['queue', 'state', 'category', 'priority', 'policy', 'group', 'tag']

/** All that is counted, and where letters are found. */
const accounts = async (store: Store): Promise<unknown> => ({
  tallies: await Promise.all(
    keys.map((key) => store.tally(key, { state: ['pending', 'retrying', 'resolved', 'archived'] })),
  ),
  totals: await store.totals(),
  tagged: (await store.find({ tag: 'a', state: ['resolved', 'archived', 'pending'] })).items,
})

describe.skipIf(missing)('postgresStore that drops months', { timeout: 60_000 }, () => {
  let bench: PostgresBench
  let store: PostgresStore
  const clock = { ...systemClock, now: () => april }

  beforeEach(async () => {
    bench = await openMonthsBench(fakeClock(january))
    store = await bench.another({ clock })
    for (const month of [0, 1, 2]) await store.add(lettersOf(month))
  })
  afterEach(async () => {
    vi.restoreAllMocks()
    await bench.close()
  })

  const apply = async (id: string, move: (letter: DeadLetter) => Change): Promise<void> => {
    const [letter] = await bench.store.get([id])
    expect(await bench.store.apply([move(letter!)])).toEqual(['written'])
  }

  it('counts as if the letters were removed one by one, and keeps a month with open letters', async () => {
    const open = aLetter({ id: fakeClock(Date.UTC(2026, 1, 3)).id(), tags: ['a'] })
    const other = await openPostgresBench(fakeClock(january))
    try {
      for (const month of [0, 1, 2]) await other.store.add(lettersOf(month))
      await Promise.all([store.add([open]), other.store.add([open])])
      expect(await accounts(store)).toEqual(await accounts(other.store))
      await other.store.remove({ ids: [...ids[0]!, ...ids[2]!] })
      expect(await store.dropBefore('2026-04')).toEqual({
        dropped: [
          { month: '2026-01', letters: 30 },
          { month: '2026-03', letters: 30 },
        ],
        kept: [{ month: '2026-02', open: 1 }],
      })
      expect(await accounts(store)).toEqual(await accounts(other.store))
      expect(await store.get([...ids[0]!, ...ids[2]!])).toEqual([])
      expect((await store.get(ids[1]!)).length).toBe(30)
    } finally {
      await other.close()
    }
  })

  it('deletes everything that belongs to the letters', async () => {
    const edited = aLetter({ id: fakeClock(january + 1).id(), state: 'parked' })
    await store.add([edited])
    await apply(edited.id, (letter) =>
      edit(letter, by, { payload: { ...letter.payload, bytes: new Uint8Array(3), size: 3 } }),
    )
    await apply(edited.id, (letter) => archive(letter, by))
    await store.dropBefore('2026-04')
    const tables = ['letters', 'bodies', 'tags', 'groups', 'deps']
    const counts = tables.map((table) => `(SELECT count(*)::int FROM @${table})`)
    expect(await bench.ask(`SELECT ${counts.join(', ')}`)).toEqual([tables.map(() => 0)])
    expect(await store.tally('tag', { state: ['resolved', 'archived'] })).toEqual(new Map())
    // What went may come back, and is found elsewhere.
    expect(await store.add(lettersOf(0).slice(0, 1))).toEqual([{ kind: 'added' }])
    expect(await store.dropBefore('2026-04')).toEqual({ dropped: [], kept: [] })
  })

  it('never drops the current month, and rejects an invalid month', async () => {
    await store.dropBefore('2027-01')
    const present = aLetter({ id: fakeClock(april).id(), state: 'resolved' })
    await store.add([present])
    expect(await store.dropBefore('2027-01')).toEqual({ dropped: [], kept: [] })
    expect((await store.get([present.id])).length).toBe(1)
    await expect(store.dropBefore('2026-13')).rejects.toMatchObject({ code: 'INVALID_INPUT' })
  })

  it('counts again when a letter changed after it was counted', async () => {
    meanwhile('LOCK TABLE ONLY', () => apply(ids[0]![0]!, (letter) => archive(letter, by)))
    expect(await store.dropBefore('2026-02')).toEqual({
      dropped: [{ month: '2026-01', letters: 30 }],
      kept: [],
    })
    const states = await store.tally('state', { state: ['resolved', 'archived'] })
    expect(states).toEqual(
      new Map([
        ['resolved', 30],
        ['archived', 30],
      ]),
    )
  })

  it('keeps a month in which a letter was reopened after it was counted', async () => {
    const parked = aLetter({
      id: fakeClock(january + 1).id(),
      state: 'archived',
      archivedFrom: 'parked',
    })
    await store.add([parked])
    meanwhile('LOCK TABLE ONLY', () => apply(parked.id, (letter) => restore(letter, by)))
    const { dropped, kept } = await store.dropBefore('2026-02')
    expect([dropped, kept]).toEqual([[], [{ month: '2026-01', open: 1 }]])
    expect((await store.get([parked.id, ...ids[0]!])).length).toBe(31)
  })

  it('drops a month once when two processes do it', async () => {
    const another = await bench.another({ clock })
    const answers = await Promise.all([store.dropBefore('2026-04'), another.dropBefore('2026-04')])
    const months = answers.flatMap(({ dropped }) => dropped.map(({ month }) => month))
    expect(months.toSorted()).toEqual(['2026-01', '2026-02', '2026-03'])
    const totals = (await store.totals()).filter(({ action }) => action === 'remove')
    expect(totals.reduce((sum, { count }) => sum + count, 0)).toBe(90)
    expect(await store.tally('state', { state: ['resolved', 'archived'] })).toEqual(new Map())
  })

  it('does not block captures, claims and settles', async () => {
    const workers = await Promise.all([1, 2].map(() => bench.another({ clock })))
    const race = { over: false }
    const settled: string[] = []
    const work = async (worker: PostgresStore, n: number): Promise<void> => {
      const maker = fakeClock(april, n + 10)
      do {
        await worker.add([aLetter({ id: maker.id(), tags: ['a'] })])
        const { letters } = await worker.claim({ worker: `w${n}`, limit: 5, leaseMs: 60_000 })
        const changes = letters.map((one) => resolve(one, { ...by, guard: 'epoch' }))
        expect(await worker.apply(changes)).toEqual(letters.map(() => 'written'))
        settled.push(...letters.map(({ id }) => id))
      } while (!race.over)
    }
    const all = Promise.all(workers.map(work))
    const { dropped } = await store.dropBefore('2026-04')
    race.over = true
    await all
    expect(dropped.length).toBe(3)
    expect(new Set(settled).size).toBe(settled.length)
    expect(await store.tally('state')).toEqual(new Map([['resolved', settled.length]]))
    expect(await store.tally('tag')).toEqual(new Map([['a', settled.length]]))
  })
})
