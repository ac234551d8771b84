import assert from 'node:assert/strict'
import { archive } from '../../letter/moves.ts'
import type { Capacity } from '../../store.ts'
import { aLetter } from '../a-letter.ts'
import { checkOn } from './check.ts'
import { ids, kinds, person, totalOf } from './steps.ts'

const check = checkOn('capacity')

const reject = (maxItems: number): Capacity => ({ maxItems, overflow: 'reject' })
const evict = (maxItems: number): Capacity => ({ maxItems, overflow: 'evict-resolved' })

export const capacityChecks = [
  check('returns full for each letter above the limit', async ({ store }) => {
    const letters = [1, 2, 3].map(() => aLetter())
    assert.deepEqual(kinds(await store.add(letters, reject(2))), ['added', 'added', 'full'])
    assert.deepEqual(await store.get([letters[2]!.id]), [])
    assert.equal(await totalOf(store, 'capture'), 2)
    assert.deepEqual(await store.tally('state'), new Map([['pending', 2]]))
  }),

  check('counts all queues and all states except archived', async (bench) => {
    const { store } = bench
    const pending = aLetter()
    await store.add([pending, aLetter({ queue: 'other', state: 'resolved' })])
    assert.deepEqual(kinds(await store.add([aLetter()], reject(2))), ['full'])
    await store.apply([archive(pending, person(bench))])
    assert.deepEqual(kinds(await store.add([aLetter()], reject(2))), ['added'])
  }),

  check('accepts letters again after a removal', async ({ store }) => {
    const letter = aLetter()
    await store.add([letter], reject(1))
    await store.remove({ ids: [letter.id] })
    assert.deepEqual(kinds(await store.add([aLetter()], reject(1))), ['added'])
  }),

  check('still detects duplicates when full', async ({ store }) => {
    const letter = aLetter({ dedupeKey: 'k' })
    await store.add([letter], reject(1))
    const results = await store.add([letter, aLetter({ dedupeKey: 'k' }), aLetter()], reject(1))
    assert.deepEqual(kinds(results), ['duplicate', 'duplicate', 'full'])
  }),

  check(
    'evicts the letters that were resolved first, and returns their number',
    async ({ store }) => {
      const resolved = [5, 1, 3].map((day) =>
        aLetter({ state: 'resolved', settledAt: `2026-01-0${day}T00:00:00.000Z` }),
      )
      await store.add(resolved)
      const results = await store.add([aLetter(), aLetter()], evict(3))
      assert.deepEqual(results, [
        { kind: 'added', evicted: 1 },
        { kind: 'added', evicted: 1 },
      ])
      assert.deepEqual(ids(await store.get(ids(resolved))), [resolved[0]!.id])
      assert.equal(await totalOf(store, 'evict'), 2)
      assert.equal(await totalOf(store, 'remove'), 0)
      const states = new Map([
        ['resolved', 1],
        ['pending', 2],
      ])
      assert.deepEqual(await store.tally('state'), states)
    },
  ),

  check('evicts by id among letters that were resolved at the same time', async ({ store }) => {
    const resolved = [1, 2, 3].map(() => aLetter({ state: 'resolved' }))
    await store.add(resolved.toReversed())
    await store.add([aLetter()], evict(3))
    assert.deepEqual(ids(await store.get(ids(resolved))), ids(resolved.slice(1)))
  }),

  check('evicts as many letters as needed after the limit was lowered', async ({ store }) => {
    await store.add([aLetter(), ...[1, 2, 3, 4].map(() => aLetter({ state: 'resolved' }))])
    assert.deepEqual(await store.add([aLetter()], evict(3)), [{ kind: 'added', evicted: 3 }])
  }),

  check('is full, and evicts nothing, if there are too few resolved letters', async ({ store }) => {
    await store.add([aLetter(), aLetter(), aLetter({ state: 'parked' })])
    await store.add([aLetter({ state: 'resolved' })])
    assert.deepEqual(await store.add([aLetter()], evict(3)), [{ kind: 'full' }])
    assert.equal((await store.tally('state')).get('resolved'), 1)
    assert.equal(await totalOf(store, 'evict'), 0)
  }),

  check('never stores more than the limit with concurrent adds', async ({ store }) => {
    const adds = Array.from({ length: 30 }, () => store.add([aLetter()], reject(10)))
    const results = (await Promise.all(adds)).flat()
    assert.equal(kinds(results).filter((kind) => kind === 'added').length, 10)
    assert.deepEqual(await store.tally('state'), new Map([['pending', 10]]))
  }),
]
