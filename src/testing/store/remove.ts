import assert from 'node:assert/strict'
import { matches, type LetterFilter } from '../../letter/query.ts'
import { aLetter } from '../a-letter.ts'
import { checkOn } from './check.ts'
import { filtersOfPart, mixedFilters, mixedLetters } from './mixed.ts'
import {
  ahead,
  claimOne,
  ids,
  expectRejection,
  expectSameLetter,
  shortLeaseMs,
  getLetter,
  totalOf,
} from './steps.ts'

const check = checkOn('remove')

export const removeChecks = [
  check('removes matching letters, and returns their number', async ({ store }) => {
    const letters = [aLetter(), aLetter({ state: 'parked' }), aLetter({ queue: 'mail' })]
    await store.add(letters)
    assert.equal(await store.remove({ queue: 'orders' }), 2)
    assert.deepEqual(ids(await store.get(ids(letters))), [letters[2]!.id])
    assert.equal(await store.remove({ queue: 'orders' }), 0)
    assert.equal(await totalOf(store, 'remove'), 2)
    assert.deepEqual(await store.tally('state'), new Map([['pending', 1]]))
    assert.equal(await store.original(letters[0]!.id), undefined)
  }),

  check('agrees with matches() on every kind of filter', async (bench) => {
    const { store } = bench
    const letters = mixedLetters(36)
    await store.add(letters)
    const filters = mixedFilters(letters, store.powers).filter(hasField)
    for (const filter of filtersOfPart(bench, filters, 0, 4)) {
      const expected = letters.filter((one) => one.state !== 'retrying' && matches(one, filter))
      assert.equal(await store.remove(filter), expected.length, JSON.stringify(filter))
      if (expected.length === 0) continue
      assert.deepEqual(ids(await store.get(ids(expected))), [], JSON.stringify(filter))
      await store.add(expected)
    }
  }),

  check('does not remove leased letters, even after the lease expired', async (bench) => {
    const { store } = bench
    await store.add([aLetter()])
    const leased = await claimOne(bench, { leaseMs: shortLeaseMs })
    const filters: LetterFilter[] = [
      { ids: [leased.id] },
      { state: 'retrying' },
      { queue: 'orders' },
    ]
    for (const filter of filters) assert.equal(await store.remove(filter), 0)
    await bench.advance(shortLeaseMs + 50)
    for (const filter of filters) assert.equal(await store.remove(filter), 0)
    expectSameLetter(await getLetter(store, leased.id), leased)
  }),

  check('rejects a filter without conditions', async ({ store }) => {
    await store.add([aLetter()])
    await expectRejection('INVALID_INPUT', () => store.remove({}))
    const empty = { queue: undefined, state: undefined } as unknown as LetterFilter
    await expectRejection('INVALID_INPUT', () => store.remove(empty))
    assert.deepEqual(await store.tally('state'), new Map([['pending', 1]]))
  }),

  check('removes archived letters only by state or id', async ({ store }) => {
    const archived = aLetter({ state: 'archived' })
    await store.add([archived])
    assert.equal(await store.remove({ queue: 'orders' }), 0)
    assert.equal(await store.remove({ queue: 'orders', state: 'archived' }), 1)
    await store.add([archived])
    assert.equal(await store.remove({ ids: [archived.id, archived.id] }), 1)
  }),

  check('removes more letters than one page', async ({ store }) => {
    await store.add(Array.from({ length: 1010 }, () => aLetter()))
    assert.equal(await store.remove({ queue: 'orders' }), 1010)
    assert.deepEqual(await store.find({}), { items: [] })
  }),

  check('allows the id to be used again', async (bench) => {
    const { store } = bench
    const letter = aLetter({ retryAt: ahead(bench, 60_000), dedupeKey: 'k', lane: 'l' })
    await store.add([letter])
    await store.remove({ ids: [letter.id] })
    assert.deepEqual(await store.claim({ worker: 'w', limit: 1, leaseMs: 100 }), { letters: [] })
    assert.deepEqual(await store.add([letter]), [{ kind: 'added' }])
    expectSameLetter(await getLetter(store, letter.id), letter)
  }),
]

function hasField(filter: LetterFilter): boolean {
  return Object.keys(filter).length > 0
}
