import { Client } from 'pg'
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { systemClock } from '../../../src/clock/clock.ts'
import { resolve } from '../../../src/letter/moves.ts'
import { toTimestamp } from '../../../src/letter/time.ts'
import { plannerSettings } from '../../../src/stores/postgres/planner.ts'
import type { PostgresStore } from '../../../src/stores/postgres/postgres.ts'
import { aLetter, fakeClock } from '../../../src/testing/index.ts'
import { openMonthsBench } from './partitions-bench.ts'
import { missing, url, type PostgresBench } from './postgres-bench.ts'

const january = Date.UTC(2026, 0, 1)

interface Plan {
  'Node Type': string
  'Relation Name'?: string
  'Actual Loops'?: number
  Plans?: Plan[]
}

interface Sent {
  text: string
  values: unknown[]
}

const nodesOf = (plan: Plan): Plan[] => [plan, ...(plan.Plans ?? []).flatMap(nodesOf)]

describe.skipIf(missing)('plans of postgresStore by month', { timeout: 60_000 }, () => {
  let bench: PostgresBench
  let store: PostgresStore
  const ids = [0, 1, 2, 3].map((month) => {
    const clock = fakeClock(Date.UTC(2026, month, 5))
    return Array.from({ length: 500 }, () => clock.id())
  })

  beforeEach(async () => {
    bench = await openMonthsBench(fakeClock(january))
    store = await bench.another({ clock: { ...systemClock, now: () => january } })
    await store.add(ids.flat().map((id) => aLetter({ id })))
    await bench.ask('ANALYZE @letters, @bodies')
  })
  afterEach(() => bench.close())

  /** The first statement with these words that a call sends. */
  async function sent(call: () => Promise<unknown>, part: string): Promise<Sent> {
    const spy = vi.spyOn(Client.prototype, 'query')
    try {
      await call()
      const all = spy.mock.calls.map(([first]) => first as unknown as Sent)
      return all.find(({ text }) => typeof text === 'string' && text.includes(part))!
    } finally {
      spy.mockRestore()
    }
  }

  /** Scans of tables that were carried out, when the statement is sent once more and taken back. */
  async function scansOf({ text, values }: Sent): Promise<[kind: string, table: string][]> {
    const client = new Client({ connectionString: url })
    await client.connect()
    try {
      await client.query('BEGIN')
      for (const setting of plannerSettings) await client.query(`SET LOCAL ${setting}`)
      const explain = { text: `EXPLAIN (ANALYZE, FORMAT JSON) ${text}`, values }
      const result = await client.query<{ 'QUERY PLAN': { Plan: Plan }[] }>(explain)
      await client.query('ROLLBACK')
      const [{ Plan: plan }] = result.rows[0]!['QUERY PLAN'] as [{ Plan: Plan }]
      return nodesOf(plan)
        .filter((node) => node['Relation Name'] !== undefined && node['Actual Loops']! > 0)
        .filter((node) => node['Node Type'].includes('Scan'))
        .map((node) => [node['Node Type'], node['Relation Name']!])
    } finally {
      await client.end()
    }
  }

  const tablesIn = (scans: [string, string][], table: string): string[] => [
    ...new Set(scans.map(([, name]) => name).filter((name) => name.startsWith(table))),
  ]

  it.each([1, 250])('reads %i letters by id only in their month', async (count) => {
    const some = ids[2]!.slice(0, count)
    const scans = await scansOf(await sent(() => store.get(some), 'letters l'))
    expect(tablesIn(scans, 'letters')).toEqual(['letters_2026_03'])
    expect(tablesIn(scans, 'bodies')).toEqual(['bodies_2026_03'])
  })

  it('claims by the index of every month, and updates letters only in their month', async () => {
    const claim = (): Promise<unknown> => store.claim({ worker: 'w', limit: 5, leaseMs: 1000 })
    const scans = await scansOf(await sent(claim, 'SKIP LOCKED'))
    const walked = scans.filter(([kind]) => kind === 'Seq Scan').map(([, name]) => name)
    expect(walked.filter((name) => /_2026_/.test(name))).toEqual([])
    expect(tablesIn(scans, 'bodies')).toEqual(['bodies_2026_01'])
    const times = scans.filter(([, name]) => name === 'letters_2026_01').length
    expect(scans.filter(([, name]) => name === 'letters_2026_02').length).toBeLessThan(times)
  })

  it.each([1, 250])('settles %i letters only in their month', async (count) => {
    const { letters } = await store.claim({ worker: 'w', limit: count, leaseMs: 60_000 })
    const by = { at: toTimestamp(january), actor: 'w', guard: 'epoch' } as const
    const settle = (): Promise<unknown> => store.apply(letters.map((one) => resolve(one, by)))
    const scans = await scansOf(await sent(settle, 'guard_epoch'))
    expect(tablesIn(scans, 'letters')).toEqual(['letters_2026_01'])
  })
})
