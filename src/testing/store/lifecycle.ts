import assert from 'node:assert/strict'
import { resolve } from '../../letter/moves.ts'
import { aLetter } from '../a-letter.ts'
import { openAnother, checkOn, needsDurable, needsShared, reopen } from './check.ts'
import {
  claimOne,
  ids,
  person,
  expectRejection,
  expectSameLetter,
  getLetter,
  worker,
} from './steps.ts'

const check = checkOn('lifecycle')

export const lifecycleChecks = [
  check('can be opened twice', async ({ store }) => {
    const letter = aLetter()
    await store.add([letter])
    await store.open()
    expectSameLetter(await getLetter(store, letter.id), letter)
  }),

  check('is empty at first', async ({ store }) => {
    assert.deepEqual(await store.find({}), { items: [] })
    assert.deepEqual(await store.tally('state'), new Map())
    assert.deepEqual(await store.totals(), [])
    assert.deepEqual(await store.claim({ worker: 'w', limit: 5, leaseMs: 100 }), { letters: [] })
  }),

  check('has valid powers', async ({ store }) => {
    assert.equal(typeof store.powers.kind, 'string')
    assert.equal(typeof store.powers.durable, 'boolean')
    assert.equal(typeof store.powers.shared, 'boolean')
    assert.ok(['none', 'substring', 'full-text'].includes(store.powers.search))
    assert.ok(['none', 'local', 'all'].includes(store.powers.wakeups))
  }),

  check('is healthy while open, and unhealthy when closed', async ({ store }) => {
    const open = await store.health()
    assert.deepEqual({ ok: open.ok, problems: open.problems }, { ok: true, problems: [] })
    await store.close()
    const closed = await store.health()
    assert.equal(closed.ok, false)
    assert.ok(closed.problems.length > 0)
  }),

  check('can be closed twice, and rejects every call afterwards', async (bench) => {
    const { store } = bench
    const letter = aLetter()
    await store.add([letter])
    await store.close()
    await store.close()
    const change = resolve(letter, person(bench))
    const calls: (() => Promise<unknown>)[] = [
      () => store.add([aLetter()]),
      () => store.get([letter.id]),
      () => store.original(letter.id),
      () => store.find({}),
      () => store.tally('state'),
      () => store.totals(),
      () => store.claim({ worker: 'w', limit: 1, leaseMs: 100 }),
      () => store.renew([{ id: letter.id, epoch: 1 }], 100),
      () => store.apply([change]),
      () => store.applyAll([letter], {}),
      () => store.remove({ ids: [letter.id] }),
      () => store.records.get('kind', 'id'),
      () => store.records.put('kind', 'id', 1),
      () => store.records.list('kind'),
      () => store.records.remove('kind', 'id'),
    ]
    for (const call of calls) await expectRejection('CLOSED', call)
  }),

  check('waits for calls in flight before it closes', async ({ store }) => {
    const added = store.add([aLetter(), aLetter()])
    await store.close()
    assert.deepEqual(await added, [{ kind: 'added' }, { kind: 'added' }])
  }),

  check(
    'keeps all data across a restart',
    async (bench) => {
      const { store } = bench
      const letter = aLetter({
        dedupeKey: 'd',
        lane: 'l',
        tags: ['a', 'b'],
        metadata: { deep: [1] },
      })
      await store.add([letter, aLetter({ queue: 'other', state: 'parked' })])
      await store.records.put('kind', 'id', { a: 1 })
      await claimOne(bench)
      const before = {
        letter: await getLetter(store, letter.id),
        tally: await store.tally('queue'),
        totals: await store.totals(),
        record: await store.records.get('kind', 'id'),
      }
      const again = await reopen(bench)
      expectSameLetter(await getLetter(again, letter.id), before.letter)
      assert.deepEqual(await again.tally('queue'), before.tally)
      assert.deepEqual(await again.totals(), before.totals)
      assert.deepEqual(await again.records.get('kind', 'id'), before.record)
      const settled = await again.apply([resolve(before.letter, worker(bench))])
      assert.deepEqual(settled, ['written'], 'the lease survives the restart')
    },
    needsDurable,
  ),

  check(
    'shows the writes of one handle to another at once',
    async (bench) => {
      const other = await openAnother(bench)
      await other.open()
      const letter = aLetter()
      await bench.store.add([letter])
      expectSameLetter(await getLetter(other, letter.id), letter)
      const { letters } = await other.claim({ worker: 'w', limit: 1, leaseMs: 60_000 })
      assert.deepEqual(ids(letters), [letter.id])
      assert.equal((await getLetter(bench.store, letter.id)).state, 'retrying')
      await other.close()
      expectSameLetter(await getLetter(bench.store, letter.id), letters[0]!)
    },
    needsShared,
  ),
]
