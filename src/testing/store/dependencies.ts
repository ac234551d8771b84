import assert from 'node:assert/strict'
import { archive, exhaust, resolve, restore } from '../../letter/moves.ts'
import { aLetter } from '../a-letter.ts'
import { checkOn } from './check.ts'
import {
  ahead,
  claim,
  claimOne,
  ids,
  kinds,
  newFailure,
  person,
  getLetter,
  worker,
} from './steps.ts'

const check = checkOn('dependencies')

const missing = '00000000-0000-7000-8000-000000000000'

export const dependencyChecks = [
  check('finds a letter as dependent only while it still waits for another', async (bench) => {
    const { store } = bench
    const first = aLetter()
    const second = aLetter({ dependsOn: [first.id] })
    await store.add([first, second])
    const findWaiting = async (): Promise<string[]> =>
      ids((await store.find({ state: 'pending', dependent: true })).items)
    assert.deepEqual(await findWaiting(), [second.id])
    await store.apply([resolve(first, person(bench))])
    await store.remove({ ids: [first.id] })
    assert.deepEqual(await findWaiting(), [])
    assert.deepEqual(ids((await store.find({ dependent: false })).items), [second.id])
  }),

  check('holds a letter until all its dependencies are resolved', async (bench) => {
    const { store } = bench
    const [first, second] = [aLetter({ queue: 'a' }), aLetter({ queue: 'b' })]
    const dependent = aLetter({ dependsOn: [first.id, second.id], priority: 'critical' })
    await store.add([first, second, dependent])
    const [one, two] = await claim(bench)
    assert.deepEqual(ids([one!, two!]), [first.id, second.id])
    await store.apply([resolve(one!, worker(bench))])
    assert.deepEqual(await claim(bench), [])
    await store.apply([resolve(two!, worker(bench))])
    assert.equal((await claimOne(bench)).id, dependent.id)
  }),

  check('holds a letter until its missing dependency is added and resolved', async (bench) => {
    const { store } = bench
    const late = aLetter()
    const dependent = aLetter({ dependsOn: [late.id] })
    await store.add([dependent, aLetter({ dependsOn: [missing] })])
    assert.deepEqual(await claim(bench), [])
    await store.add([late])
    const head = await claimOne(bench)
    assert.equal(head.id, late.id)
    await store.apply([resolve(head, worker(bench))])
    assert.equal((await claimOne(bench)).id, dependent.id)
  }),

  check('does not wait for a dependency that is already resolved', async (bench) => {
    const resolved = aLetter({ state: 'resolved' })
    const dependent = aLetter({ dependsOn: [resolved.id, resolved.id] })
    await bench.store.add([resolved, dependent, aLetter({ dependsOn: [resolved.id, missing] })])
    assert.deepEqual(ids(await claim(bench)), [dependent.id])
  }),

  check('stops waiting when a dependency is added as resolved', async (bench) => {
    const resolved = aLetter({ state: 'resolved' })
    const dependent = aLetter({ dependsOn: [resolved.id] })
    await bench.store.add([dependent])
    await bench.store.add([resolved])
    assert.deepEqual(ids(await claim(bench)), [dependent.id])
  }),

  check('waits for the stored letter, even if another one with its id is added', async (bench) => {
    const { store } = bench
    const head = aLetter({ state: 'parked' })
    await store.add([head])
    const other = { ...aLetter({ state: 'resolved' }), id: head.id }
    const dependent = aLetter({ dependsOn: [head.id] })
    assert.deepEqual(kinds(await store.add([other, dependent])), ['duplicate', 'added'])
    const late = aLetter({ dependsOn: [head.id] })
    const writes = [{ letter: other }, { letter: late, waitsFor: [head.id] }]
    assert.deepEqual(await store.keep(writes), ['conflict', 'written'])
    assert.deepEqual(await claim(bench), [])
    assert.equal((await store.find({ dependent: true })).items.length, 2)
  }),

  check(
    'treats exhausted, parked, archived and removed dependencies as unresolved',
    async (bench) => {
      const { store } = bench
      const head = aLetter()
      const others = [
        aLetter({ state: 'parked' }),
        aLetter({ state: 'archived', archivedFrom: 'parked' }),
      ]
      await store.add([head, ...others])
      await store.add([head, ...others].map(({ id }) => aLetter({ dependsOn: [id] })))
      const claimed = await claimOne(bench)
      await store.apply([exhaust(claimed, worker(bench), { judged: newFailure(bench) })])
      assert.deepEqual(await claim(bench), [])
      await store.remove({ ids: [head.id] })
      assert.deepEqual(await claim(bench), [])
    },
  ),

  check(
    'does not wait again when a resolved dependency is archived, restored or removed',
    async (bench) => {
      const { store } = bench
      const [first, second] = [aLetter({ queue: 'x' }), aLetter({ queue: 'x' })]
      const soon = ahead(bench, 80)
      await store.add([first, second])
      const dependents = [first, second].map(({ id }) =>
        aLetter({ dependsOn: [id], retryAt: soon }),
      )
      await store.add(dependents)
      const me = person(bench)
      await store.apply([resolve(first, me), resolve(second, me)])
      await store.apply([archive(await getLetter(store, first.id), me)])
      await store.remove({ ids: [second.id] })
      const late = aLetter({ dependsOn: [first.id] })
      await store.add([late])
      await bench.advance(120)
      assert.deepEqual(ids(await claim(bench)).toSorted(), ids([...dependents, late]))
      await store.apply([restore(await getLetter(store, first.id), me)])
      assert.equal((await getLetter(store, first.id)).state, 'resolved')
    },
  ),

  check('holds a lane while its head waits for a dependency', async (bench) => {
    const { store } = bench
    const dependency = aLetter({ queue: 'x', state: 'parked' })
    const [head, next] = [
      aLetter({ lane: 'l', dependsOn: [dependency.id] }),
      aLetter({ lane: 'l' }),
    ]
    await store.add([dependency, head, next])
    assert.deepEqual(await claim(bench), [])
    await store.apply([resolve(dependency, person(bench))])
    assert.equal((await claimOne(bench)).id, head.id)
  }),

  check('ignores letters that wait for others in nextDueAt', async ({ store }) => {
    await store.add([aLetter({ dependsOn: [missing] })])
    assert.deepEqual(await store.claim({ worker: 'w', limit: 5, leaseMs: 100 }), { letters: [] })
  }),

  check('releases many dependents at once', async (bench) => {
    const { store } = bench
    const root = aLetter({ state: 'parked' })
    const dependents = Array.from({ length: 20 }, () => aLetter({ dependsOn: [root.id] }))
    await store.add([root, ...dependents])
    assert.deepEqual(await claim(bench, { limit: 100 }), [])
    await store.apply([resolve(root, person(bench))])
    assert.deepEqual(ids(await claim(bench, { limit: 100 })), ids(dependents))
  }),
]
