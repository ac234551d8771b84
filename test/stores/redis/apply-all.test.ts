import assert from 'node:assert/strict'
import { afterEach, beforeEach, describe, it } from 'vitest'
import { bulkMovesFor } from '../../../src/letter/bulk-moves.ts'
import { maxHistory } from '../../../src/letter/history.ts'
import type { DeadLetter } from '../../../src/letter/letter.ts'
import { edit, resolve, withChange } from '../../../src/letter/moves.ts'
import { redisStore, type RedisStore } from '../../../src/stores/redis/redis.ts'
import { aLetter } from '../../../src/testing/index.ts'
import { redisPlace, type Place } from '../../servers/places.ts'
import { single } from './redis-bench.ts'

const at = '2026-01-02T00:00:00.000Z'
const ada = { at, actor: 'ada', guard: 'version' } as const

const parked = (overrides: Partial<DeadLetter> = {}): DeadLetter =>
  aLetter({ state: 'parked', ...overrides })

describe.skipIf(single.missing !== undefined)('changes of many letters', () => {
  let place: Place
  let store: RedisStore

  beforeEach(async () => {
    place = redisPlace(single.url)
    store = redisStore({ url: single.url, prefix: place.name })
    await store.open()
  })

  afterEach(async () => {
    await store.close()
    await place.clear()
  })

  const assertConsistent = async (): Promise<void> => {
    const { missing, strays, counts, examples } = await store.fsck()
    assert.deepEqual(
      { missing, strays, counts },
      { missing: 0, strays: 0, counts: 0 },
      examples.join(),
    )
  }

  it('continue over more letters than one script changes', async () => {
    const letters = Array.from({ length: 1300 }, () => parked())
    await store.add(letters)
    const results = await store.applyAll(letters, bulkMovesFor('retry', ada))
    assert.deepEqual([...new Set(results)], ['written'])
    assert.deepEqual(await store.tally('state'), new Map([['pending', 1300]]))
    await assertConsistent()
  })

  it('change a letter once that is named twice in one script', async () => {
    const letters = [parked({ lane: 'l', tags: ['a'] }), parked()]
    await store.add(letters)
    const results = await store.applyAll([...letters, ...letters], bulkMovesFor('retry', ada))
    assert.deepEqual(results, ['written', 'written', 'conflict', 'conflict'])
    await assertConsistent()
  })

  it('change letters with lanes, tags, dependents and without, in one batch', async () => {
    const root = parked()
    const letters = [
      root,
      parked({ lane: 'l', tags: ['a', 'b'] }),
      parked({ lane: 'l', tenant: 't', expiresAt: at }),
      parked({ dedupeKey: 'k', tags: ['a'] }),
      parked(),
      aLetter({ dependsOn: [root.id] }),
    ]
    await store.add(letters)
    const some = letters.slice(0, 5)
    const results = await store.applyAll(some, bulkMovesFor('resolve', ada))
    assert.deepEqual([...new Set(results)], ['written'])
    await assertConsistent()
    assert.deepEqual(
      await store.tally('tag'),
      new Map([
        ['a', 2],
        ['b', 1],
      ]),
    )
    const { letters: claimed } = await store.claim({ worker: 'w', limit: 9, leaseMs: 60_000 })
    assert.deepEqual(
      claimed.map(({ id }) => id),
      [letters[5]!.id],
    )
  })

  it('write two changes of one letter in order, and drop the second line of a full history', async () => {
    const [first] = aLetter().history
    const history = Array.from({ length: maxHistory }, () => first!)
    const letter = aLetter({ history, historyOmitted: 3 })
    await store.keep([{ letter }])
    const tagged = edit(letter, ada, { tags: ['new'] })
    const between = withChange(letter, tagged)
    const resolved = resolve(between, ada)
    assert.deepEqual(await store.apply([tagged, resolved, tagged]), [
      'written',
      'written',
      'conflict',
    ])
    const [stored] = await store.get([letter.id])
    const { payload: _, ...expected } = withChange(between, resolved)
    const { payload: __, ...found } = stored!
    assert.deepEqual(found, expected)
    assert.equal(found.history.length, maxHistory)
    assert.equal(found.historyOmitted, 5)
    await assertConsistent()
  })
})
