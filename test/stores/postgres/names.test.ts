import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { aLetter } from '../../../src/testing/index.ts'
import { missing, openPostgresBench, type PostgresBench } from './postgres-bench.ts'

describe.skipIf(missing)('postgresStore with names that Postgres rejects', () => {
  let bench: PostgresBench

  beforeEach(async () => (bench = await openPostgresBench()))
  afterEach(() => bench.close())

  it.each(['a\0b', '\ud800', 'x\udfff', '\u0010', '\u00100000'])(
    'keeps %j wherever it stands',
    async (name) => {
      const { store } = bench
      const letter = aLetter({
        queue: name,
        lane: name,
        tenant: name,
        fingerprint: name,
        tags: [name],
        dedupeKey: name,
      })
      await store.add([letter])
      expect(await store.get([letter.id])).toEqual([letter])
      for (const filter of [
        { queue: name },
        { lane: name },
        { tenant: name },
        { group: name },
        { tag: name },
      ])
        expect((await store.find(filter)).items.map(({ id }) => id)).toEqual([letter.id])
      for (const key of ['queue', 'group', 'tag'] as const)
        expect(await store.tally(key)).toEqual(new Map([[name, 1]]))
      const { letters } = await store.claim({ worker: name, limit: 1, leaseMs: 1, queues: [name] })
      expect(letters[0]?.lease?.worker).toBe(name)
      expect((await store.totals()).map(({ queue }) => queue)).toEqual([name, name])
      await store.records.put(name, name, name)
      expect(await store.records.list(name, { prefix: name })).toMatchObject([
        { id: name, value: name },
      ])
      expect(await store.records.kinds()).toEqual([name])
    },
  )

  it('rejects a name that is too long for an index, and stores the other letters', async () => {
    const { store } = bench
    const noise = Array.from({ length: 9000 }, (_, n) =>
      String.fromCharCode(0x4e00 + ((n * 7919) % 20_000)),
    ).join('')
    const long = store.add([aLetter({ lane: noise })])
    const short = store.add([aLetter()])
    await expect(long).rejects.toMatchObject({ code: 'INVALID_INPUT' })
    expect(await short).toEqual([{ kind: 'added' }])
    expect(await store.tally('state')).toEqual(new Map([['pending', 1]]))
  })
})
