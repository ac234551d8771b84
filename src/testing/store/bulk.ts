import assert from 'node:assert/strict'
import { bulkMovesFor, type BulkMoveName } from '../../letter/bulk-moves.ts'
import type { State } from '../../letter/letter.ts'
import { archive, resolve, retry, withChange } from '../../letter/moves.ts'
import type { BulkMoves } from '../../letter/moves.ts'
import { matches } from '../../letter/query.ts'
import { aLetter } from '../a-letter.ts'
import { checkOn, type StoreBench } from './check.ts'
import { mixedFilters, mixedLetters } from './mixed.ts'
import {
  claim,
  claimOne,
  ids,
  longLeaseMs,
  person,
  expectRejection,
  expectSameLetter,
  getLetter,
  totalOf,
} from './steps.ts'

const check = checkOn('applyAll')

const changes = { retry, resolve, archive }

function movesOf(bench: StoreBench, name: BulkMoveName): BulkMoves {
  const { at, actor } = person(bench)
  return bulkMovesFor(name, { at, actor })
}

export const bulkChecks = [
  ...(['retry', 'resolve', 'archive'] as const).map((name) =>
    check(`makes ${name} on each letter as apply does`, async (bench) => {
      const { store } = bench
      const letters = (['pending', 'resolved', 'exhausted', 'parked', 'archived'] as State[]).map(
        (state) => aLetter({ state }),
      )
      await store.add(letters)
      const by = person(bench)
      const moves = bulkMovesFor(name, { at: by.at, actor: by.actor })
      const moved = letters.filter(({ state }) => moves[state])
      const states = letters.map(({ state }) => state)
      const request = { filter: { state: states }, moves, limit: 100 }
      assert.deepEqual(await store.applyAll(request), { written: moved.length })
      for (const letter of moved)
        expectSameLetter(
          await getLetter(store, letter.id),
          withChange(letter, changes[name](letter, by)),
        )
      for (const letter of letters)
        if (!moves[letter.state]) expectSameLetter(await getLetter(store, letter.id), letter)
      assert.equal(await totalOf(store, name), moved.length)
    }),
  ),

  check('moves the letters that match every filter, and counts them', async (bench) => {
    const { store } = bench
    const letters = mixedLetters(36)
    const filters = mixedFilters(letters, store.powers)
    for (const filter of filters) {
      await store.keep(letters.map((letter) => ({ letter })))
      const moves = movesOf(bench, 'archive')
      const moved = letters.filter((one) => moves[one.state] && matches(one, filter))
      const { written } = await store.applyAll({ filter, moves, limit: 100 })
      assert.equal(written, moved.length, JSON.stringify(filter))
      const archived = moved.map(({ id }) => id)
      const found = await store.get(archived)
      assert.ok(
        found.every(({ state }) => state === 'archived'),
        JSON.stringify(filter),
      )
      await store.remove({ ids: ids(letters) })
    }
  }),

  check('continues after an id until no letter is left', async (bench) => {
    const { store } = bench
    const letters = Array.from({ length: 7 }, () => aLetter({ state: 'parked' }))
    await store.add(letters)
    const request = { filter: { queue: 'orders' }, moves: movesOf(bench, 'retry'), limit: 3 }
    let written = 0
    let after: string | undefined
    for (let calls = 0; calls < 10; calls++) {
      const result = await store.applyAll({ ...request, ...(after === undefined ? {} : { after }) })
      assert.ok(result.written <= 3)
      written += result.written
      after = result.next
      if (after === undefined) break
    }
    assert.equal(after, undefined)
    assert.equal(written, 7)
    assert.deepEqual(await store.tally('state'), new Map([['pending', 7]]))
  }),

  check('makes retried letters claimable', async (bench) => {
    const { store } = bench
    const letters = [aLetter({ state: 'exhausted' }), aLetter({ state: 'parked' })]
    await store.add(letters)
    await store.applyAll({ filter: {}, moves: movesOf(bench, 'retry'), limit: 10 })
    assert.deepEqual(ids(await claim(bench)), ids(letters))
  }),

  check('keeps the order of a lane', async (bench) => {
    const { store } = bench
    const lane = { lane: 'customer-1', state: 'parked' } as const
    const letters = [aLetter(lane), aLetter(lane)]
    await store.add(letters)
    await store.applyAll({ filter: {}, moves: movesOf(bench, 'retry'), limit: 10 })
    assert.deepEqual(ids(await claim(bench)), [letters[0]!.id])
  }),

  check('releases letters that depend on a resolved one', async (bench) => {
    const { store } = bench
    const first = aLetter({ state: 'parked' })
    const second = aLetter({ dependsOn: [first.id] })
    await store.add([first, second])
    assert.deepEqual(await claim(bench), [])
    await store.applyAll({
      filter: { ids: [first.id] },
      moves: movesOf(bench, 'resolve'),
      limit: 10,
    })
    assert.deepEqual(ids(await claim(bench)), [second.id])
  }),

  check('leaves leased letters alone', async (bench) => {
    const { store } = bench
    await store.add([aLetter()])
    const leased = await claimOne(bench, { leaseMs: longLeaseMs })
    const request = { filter: { ids: [leased.id] }, moves: movesOf(bench, 'resolve'), limit: 10 }
    assert.deepEqual(await store.applyAll(request), { written: 0 })
    expectSameLetter(await getLetter(store, leased.id), leased)
  }),

  check('rejects an unknown key of the filter', async (bench) => {
    const filter = { colour: 'red' } as object
    const moves = movesOf(bench, 'retry')
    await expectRejection('INVALID_INPUT', () => bench.store.applyAll({ filter, moves, limit: 1 }))
  }),
]
