import assert from 'node:assert/strict'
import { release, resolve } from '../../letter/moves.ts'
import { toMs } from '../../letter/time.ts'
import { aLetter } from '../a-letter.ts'
import { checkOn } from './check.ts'
import {
  claim,
  claimOne,
  person,
  expectSameLetter,
  shortLeaseMs,
  getLetter,
  worker,
} from './steps.ts'

const check = checkOn('renew')

export const renewChecks = [
  check('extends a lease, and changes nothing else', async (bench) => {
    const { store } = bench
    await store.add([aLetter()])
    const leased = await claimOne(bench, { leaseMs: shortLeaseMs })
    assert.deepEqual(await store.renew([{ id: leased.id, epoch: leased.epoch }], 60_000), [true])
    const after = await getLetter(store, leased.id)
    const extendedMs = toMs(after.lease!.expiresAt) - toMs(leased.lease!.expiresAt)
    assert.ok(extendedMs > 50_000, `the lease was extended by ${extendedMs} ms`)
    expectSameLetter(after, {
      ...leased,
      lease: { ...leased.lease!, expiresAt: after.lease!.expiresAt },
    })
    await bench.advance(shortLeaseMs + 50)
    assert.deepEqual(await claim(bench), [])
  }),

  check('never shortens a lease', async (bench) => {
    const { store } = bench
    await store.add([aLetter()])
    const leased = await claimOne(bench)
    assert.deepEqual(await store.renew([{ id: leased.id, epoch: leased.epoch }], 100), [true])
    expectSameLetter(await getLetter(store, leased.id), leased)
  }),

  check('rejects an invalid leaseMs, as claim does', async (bench) => {
    const { store } = bench
    await store.add([aLetter()])
    for (const leaseMs of [Number.NaN, -1]) {
      const rejection = { code: 'INVALID_INPUT', message: /leaseMs/ }
      await assert.rejects(store.claim({ worker: 'w-1', limit: 1, leaseMs }), rejection)
      await assert.rejects(store.renew([], leaseMs), rejection)
    }
    const { id, epoch } = await claimOne(bench)
    assert.equal(epoch, 1)
    assert.deepEqual(await store.renew([{ id, epoch }], Infinity), [true])
    assert.equal((await getLetter(store, id)).lease!.expiresAt, '9999-12-31T23:59:59.999Z')
  }),

  check('extends an expired lease if no other worker took over', async (bench) => {
    const { store } = bench
    await store.add([aLetter()])
    const leased = await claimOne(bench, { leaseMs: shortLeaseMs })
    await bench.advance(shortLeaseMs + 50)
    assert.deepEqual(await store.renew([{ id: leased.id, epoch: leased.epoch }], 60_000), [true])
    assert.deepEqual(await claim(bench), [])
  }),

  check('fails after another worker took over', async (bench) => {
    const { store } = bench
    await store.add([aLetter()])
    const old = await claimOne(bench, { leaseMs: shortLeaseMs })
    await bench.advance(shortLeaseMs + 50)
    const current = await claimOne(bench, { worker: 'w-2' })
    assert.deepEqual(await store.renew([{ id: old.id, epoch: old.epoch }], 600_000), [false])
    expectSameLetter(await getLetter(store, old.id), current)
  }),

  check('fails after the letter was settled, released or removed', async (bench) => {
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
    assert.equal('lease' in (await getLetter(store, released!.id)), false)
  }),

  check('returns one result per lease, in order', async (bench) => {
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
