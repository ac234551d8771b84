import assert from 'node:assert/strict'
import { release, resolve } from '../../letter/moves.ts'
import { toMs } from '../../letter/time.ts'
import { aLetter } from '../a-letter.ts'
import { checkOn } from './check.ts'
import { claim, claimOne, person, sameLetter, shortLeaseMs, stored, worker } from './stage.ts'

const check = checkOn('renew')

export const renewChecks = [
  check('moves the end of a lease, and nothing else', async (bench) => {
    const { store } = bench
    await store.add([aLetter()])
    const leased = await claimOne(bench, { leaseMs: shortLeaseMs })
    assert.deepEqual(await store.renew([{ id: leased.id, epoch: leased.epoch }], 60_000), [true])
    const after = await stored(store, leased.id)
    const later = toMs(after.lease!.expiresAt) - toMs(leased.lease!.expiresAt)
    assert.ok(later > 50_000, `the end moved by ${later} ms`)
    sameLetter(after, { ...leased, lease: { ...leased.lease!, expiresAt: after.lease!.expiresAt } })
    await bench.advance(shortLeaseMs + 50)
    assert.deepEqual(await claim(bench), [])
  }),

  check('never brings the end nearer', async (bench) => {
    const { store } = bench
    await store.add([aLetter()])
    const leased = await claimOne(bench)
    assert.deepEqual(await store.renew([{ id: leased.id, epoch: leased.epoch }], 100), [true])
    sameLetter(await stored(store, leased.id), leased)
  }),

  check('is refused, as a claim is, when leaseMs is no length of time', async (bench) => {
    const { store } = bench
    await store.add([aLetter()])
    for (const leaseMs of [Number.NaN, -1]) {
      const refused = { code: 'INVALID_INPUT', message: /leaseMs/ }
      await assert.rejects(store.claim({ worker: 'w-1', limit: 1, leaseMs }), refused)
      await assert.rejects(store.renew([], leaseMs), refused)
    }
    const { id, epoch } = await claimOne(bench)
    assert.equal(epoch, 1)
    assert.deepEqual(await store.renew([{ id, epoch }], Infinity), [true])
    assert.equal((await stored(store, id)).lease!.expiresAt, '9999-12-31T23:59:59.999Z')
  }),

  check('still works past the end while nobody took over', async (bench) => {
    const { store } = bench
    await store.add([aLetter()])
    const leased = await claimOne(bench, { leaseMs: shortLeaseMs })
    await bench.advance(shortLeaseMs + 50)
    assert.deepEqual(await store.renew([{ id: leased.id, epoch: leased.epoch }], 60_000), [true])
    assert.deepEqual(await claim(bench), [])
  }),

  check('fails once another worker took over', async (bench) => {
    const { store } = bench
    await store.add([aLetter()])
    const old = await claimOne(bench, { leaseMs: shortLeaseMs })
    await bench.advance(shortLeaseMs + 50)
    const current = await claimOne(bench, { worker: 'w-2' })
    assert.deepEqual(await store.renew([{ id: old.id, epoch: old.epoch }], 600_000), [false])
    sameLetter(await stored(store, old.id), current)
  }),

  check('fails once the letter was settled, released or removed', async (bench) => {
    const { store } = bench
    await store.add([aLetter(), aLetter(), aLetter({ state: 'parked', epoch: 3 })])
    const [settled, released] = await claim(bench)
    await store.apply([resolve(settled!, person(bench)), release(released!, worker(bench))])
    const refs = [
      { id: settled!.id, epoch: settled!.epoch },
      { id: released!.id, epoch: released!.epoch },
      { id: '00000000-0000-7000-8000-000000000000', epoch: 1 },
    ]
    assert.deepEqual(await store.renew(refs, 60_000), [false, false, false])
    assert.equal('lease' in (await stored(store, released!.id)), false)
  }),

  check('answers for each lease, in the order given', async (bench) => {
    const { store } = bench
    await store.add([aLetter(), aLetter()])
    const [a, b] = await claim(bench)
    const refs = [
      { id: b!.id, epoch: b!.epoch },
      { id: a!.id, epoch: a!.epoch + 1 },
      { id: a!.id, epoch: a!.epoch },
    ]
    assert.deepEqual(await store.renew(refs, 60_000), [true, false, true])
    assert.deepEqual(await store.renew([], 60_000), [])
  }),
]
