import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import type { DeadLetter } from '../../../src/letter/letter.ts'
import { archive } from '../../../src/letter/moves.ts'
import { aLetter } from '../../../src/testing/index.ts'
import { missing, openPostgresBench, type PostgresBench } from './postgres-bench.ts'

describe.skipIf(missing)('postgresStore with a damaged letter', () => {
  let bench: PostgresBench
  let letters: DeadLetter[]

  beforeEach(async () => {
    bench = await openPostgresBench()
    letters = [1, 2, 3].map(() => aLetter({ metadata: { a: 1 } }))
    await bench.store.add(letters)
  })
  afterEach(() => bench.close())

  /** Writes over something of the second letter behind the store's back. */
  const damage = (sql: string): Promise<unknown> => bench.ask(sql, [letters[1]!.id])

  const damages: [what: string, sql: string, seenInLists: boolean][] = [
    ['a column that is not JSON', "UPDATE @letters SET failure = '{' WHERE id = $1", true],
    ['a column that is another JSON', "UPDATE @letters SET review = '3' WHERE id = $1", true],
    ['a history that is not JSON', "UPDATE @letters SET history = '[' WHERE id = $1", false],
    ['an origin that is not JSON', "UPDATE @bodies SET origin = 'x' WHERE id = $1", true],
    ['another payload', "UPDATE @bodies SET payload = 'x' WHERE id = $1", false],
    ['no payload', 'UPDATE @bodies SET payload = NULL WHERE id = $1', false],
    ['no body', 'DELETE FROM @bodies WHERE id = $1', true],
  ]

  it.each(damages)(
    'reports %s as corrupt, and returns the other letters',
    async (_, sql, seenInLists) => {
      await damage(sql)
      const ids = letters.map(({ id }) => id)
      const got = await bench.store.get(ids)
      expect(got.map(({ corrupt }) => corrupt !== undefined)).toEqual([false, true, false])
      expect(got[0]).toEqual(letters[0])
      expect(got[1]).toMatchObject({ id: letters[1]!.id, queue: 'orders' })
      const { items } = await bench.store.find({ ids, order: 'oldest' })
      expect(items.map(({ corrupt }) => corrupt !== undefined)).toEqual([false, seenInLists, false])
    },
  )

  it('lists a corrupt letter in its queue', async () => {
    await damage("UPDATE @letters SET failure = '{' WHERE id = $1")
    const { items } = await bench.store.find({ queue: 'orders', order: 'oldest' })
    expect(items.map(({ corrupt }) => corrupt !== undefined)).toEqual([false, true, false])
  })

  it('reports a missing original', async () => {
    await damage('DELETE FROM @bodies WHERE id = $1')
    expect(await bench.store.original(letters[1]!.id)).toBeUndefined()
    expect(await bench.store.original(letters[0]!.id)).toEqual(letters[0]!.payload)
  })

  it('claims a damaged letter, so that it can be parked', async () => {
    await damage("UPDATE @letters SET failure = '{' WHERE id = $1")
    const claim = await bench.store.claim({ worker: 'w', limit: 5, leaseMs: 1000 })
    expect(claim.letters.map(({ corrupt }) => corrupt !== undefined)).toEqual([false, true, false])
  })

  it('leaves a damaged letter as it is when writing', async () => {
    await damage("UPDATE @letters SET failure = '{' WHERE id = $1")
    const [seen] = await bench.store.get([letters[1]!.id])
    const by = { at: seen!.updatedAt, actor: 'ada', guard: 'version' } as const
    expect(await bench.store.apply([archive(seen!, by)])).toEqual(['written'])
    const [after] = await bench.store.get([letters[1]!.id])
    expect(after).toMatchObject({ state: 'archived', archivedFrom: 'pending' })
    expect(after!.corrupt).toBeDefined()
  })

  it('removes a damaged letter', async () => {
    await damage("UPDATE @letters SET failure = '{' WHERE id = $1")
    expect(await bench.store.remove({ ids: [letters[1]!.id] })).toBe(1)
    expect(await bench.store.tally('state')).toEqual(new Map([['pending', 2]]))
  })
})
