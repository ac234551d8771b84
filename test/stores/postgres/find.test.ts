import { Client, type QueryConfig } from 'pg'
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { resolve } from '../../../src/letter/moves.ts'
import { orders } from '../../../src/letter/query.ts'
import { toTimestamp } from '../../../src/letter/time.ts'
import type { PostgresStore } from '../../../src/stores/postgres/postgres.ts'
import { aLetter } from '../../../src/testing/index.ts'
import { meanwhile, missing, openPostgresBench, type PostgresBench } from './postgres-bench.ts'

const by = { at: toTimestamp(Date.UTC(2026, 0, 2)), actor: 'me', guard: 'version' } as const

const found = async (items: ReturnType<PostgresStore['find']>): Promise<number> =>
  (await items).items.length

const searches: [name: string, search: (store: PostgresStore) => Promise<number>][] = [
  ...orders.map((order): (typeof searches)[number] => [
    `a list by ${order}`,
    (store) => found(store.find({ queue: 'moving', order })),
  ]),
  ['a search', (store) => found(store.find({ queue: 'moving', text: 'moving' }))],
  ['a count', async (store) => (await store.tally('queue', { text: 'moving' })).get('moving') ?? 0],
  ['a removal', (store) => store.remove({ queue: 'moving' })],
]

describe.skipIf(missing)('a search of postgresStore', () => {
  let bench: PostgresBench

  beforeEach(async () => {
    bench = await openPostgresBench()
  })
  afterEach(async () => {
    vi.restoreAllMocks()
    await bench.close()
  })

  it.each(searches)('finds a letter that moves concurrently: %s', async (_, search) => {
    const letter = aLetter({ queue: 'moving' })
    await bench.store.add([letter])
    meanwhile('AS fits', () => bench.store.apply([resolve(letter, by)]))
    expect(await search(bench.store)).toBe(1)
    expect((await bench.store.totals()).map(({ action }) => action)).toContain('resolve')
  })

  it('reads the index of queues and states for states without letters', async () => {
    const letters = Array.from({ length: 5000 }, (_, n) => aLetter({ queue: `queue-${n % 10}` }))
    await bench.store.add(letters)
    await bench.ask('ANALYZE @letters')
    const spy = vi.spyOn(Client.prototype, 'query')
    const { cursor } = await bench.store.find({ limit: 50 })
    await bench.store.find({ limit: 50, cursor: cursor! })
    const sent = spy.mock.calls.map(([query]) => query as unknown as QueryConfig<unknown[]>)
    const steps = sent.filter(({ text }) => text.includes('AS fits'))
    spy.mockRestore()
    expect(steps.length).toBe(2)
    for (const { text, values } of steps) {
      const plan = (await bench.ask(`EXPLAIN ${text}`, values)).flat().join('\n')
      expect(plan).toContain('using letters_list')
      expect(plan).not.toContain('letters_pkey')
    }
  })
})
