import assert from 'node:assert/strict'
import { priorities, type DeadLetter } from '../../letter/letter.ts'
import { ageingMs } from '../../letter/order.ts'
import { toMs } from '../../letter/time.ts'
import type { Store } from '../../store.ts'
import { aLetter } from '../a-letter.ts'
import { openAnother, checkOn, needsShared } from './check.ts'
import {
  ago,
  ahead,
  claim,
  claimOne,
  claimWhenDue,
  ids,
  longLeaseMs,
  expectSameLetter,
  shortLeaseMs,
  getLetter,
} from './steps.ts'

const check = checkOn('claim')

/** Maximum difference between the clocks of the server and the bench. */
const toleranceMs = 5000
const minuteMs = 60_000

export const claimChecks = [
  check('leases a due letter, and counts the retry in the same write', async (bench) => {
    const { store } = bench
    const letter = aLetter({ retries: 1, epoch: 4, version: 7 })
    await store.add([letter])
    const claimed = await claimOne(bench, { worker: 'w-9', leaseMs: longLeaseMs })
    const { retryAt: _, ...rest } = letter
    const { lease, updatedAt } = claimed
    expectSameLetter(claimed, {
      ...rest,
      state: 'retrying',
      epoch: 5,
      retries: 2,
      version: 8,
      lease: { worker: 'w-9', epoch: 5, expiresAt: lease!.expiresAt },
      updatedAt,
    })
    const endsInMs = toMs(lease!.expiresAt) - bench.now()
    assert.ok(Math.abs(endsInMs - longLeaseMs) < toleranceMs, `the lease ends in ${endsInMs} ms`)
    expectSameLetter(await getLetter(store, letter.id), claimed)
  }),

  check('claims only pending letters that are due', async (bench) => {
    const due = aLetter({ retryAt: ago(bench, 1000) })
    await bench.store.add([
      due,
      aLetter({ retryAt: ahead(bench, 60 * minuteMs) }),
      aLetter({
        state: 'retrying',
        lease: { worker: 'w', epoch: 1, expiresAt: ahead(bench, minuteMs) },
      }),
      aLetter({ state: 'resolved' }),
      aLetter({ state: 'exhausted' }),
      aLetter({ state: 'parked' }),
      aLetter({ state: 'archived', archivedFrom: 'pending', retryAt: ago(bench, 1000) }),
    ])
    assert.deepEqual(ids(await claim(bench)), [due.id])
    assert.deepEqual(await claim(bench), [])
  }),

  check('treats a letter without retryAt as due since its capture', async (bench) => {
    const { retryAt: _, ...letter } = aLetter()
    await bench.store.add([letter])
    assert.deepEqual(ids(await claim(bench)), [letter.id])
  }),

  check('claims a letter as soon as it is due', async (bench) => {
    const retryAt = ahead(bench, 80)
    await bench.store.add([aLetter({ retryAt })])
    assert.equal((await claimWhenDue(bench, retryAt)).length, 1)
  }),

  check('never claims more than the limit, and nothing for limit 0', async (bench) => {
    await bench.store.add([1, 2, 3, 4, 5].map(() => aLetter()))
    assert.deepEqual(await claim(bench, { limit: 0 }), [])
    assert.equal((await claim(bench, { limit: 3 })).length, 3)
    assert.equal((await claim(bench, { limit: 3 })).length, 2)
    assert.equal((await claim(bench, { limit: 3 })).length, 0)
  }),

  check('claims by priority, then due time, then id', async (bench) => {
    const at = (ms: number): string => ago(bench, 10_000 - ms)
    const [first, second, third] = [0, 1, 2].map(() =>
      aLetter({ priority: 'high', retryAt: at(500) }),
    )
    const low = aLetter({ priority: 'low', retryAt: at(0) })
    const critical = aLetter({ priority: 'critical', retryAt: at(900) })
    const later = aLetter({ priority: 'critical', retryAt: at(901) })
    const medium = aLetter({ priority: 'medium', retryAt: at(0) })
    await bench.store.add([low, third!, later, medium, second!, critical, first!])
    assert.deepEqual(
      ids(await claim(bench)),
      ids([critical, later, first!, second!, third!, medium, low]),
    )
  }),

  check('claims by priority across all queues', async (bench) => {
    const letters = priorities.flatMap((priority) =>
      ['c', 'a', 'b'].map((queue) => aLetter({ priority, queue, retryAt: ago(bench, 1000) })),
    )
    await bench.store.add(letters.toReversed())
    const taken: string[] = []
    for (let n = 0; n < 4; n++) taken.push(...ids(await claim(bench, { limit: 3 })))
    assert.deepEqual(taken, ids(letters))
  }),

  check(
    'raises overdue letters: after three steps a low letter precedes a critical one',
    async (bench) => {
      const overdue = (priority: DeadLetter['priority'], ms: number): DeadLetter =>
        aLetter({ priority, retryAt: ago(bench, ms) })
      const critical = overdue('critical', minuteMs)
      const patient = overdue('low', 3 * ageingMs + 2 * minuteMs)
      const fresh = overdue('low', 3 * ageingMs - 2 * minuteMs)
      const medium = overdue('medium', ageingMs + 2 * minuteMs)
      const high = overdue('high', minuteMs)
      await bench.store.add([fresh, high, medium, critical, patient])
      assert.deepEqual(ids(await claim(bench)), ids([patient, critical, fresh, medium, high]))
    },
  ),

  check('claims only from the given queues, and not from excepted ones', async (bench) => {
    const [a, b, c] = ['a', 'b', "c'%"].map((queue) => aLetter({ queue }))
    await bench.store.add([a!, b!, c!])
    assert.deepEqual(await claim(bench, { queues: [] }), [])
    assert.deepEqual(await claim(bench, { queues: ['nowhere'] }), [])
    assert.deepEqual(await claim(bench, { except: ['a', 'b', "c'%"] }), [])
    assert.deepEqual(await claim(bench, { queues: ['a'], except: ['a'] }), [])
    assert.deepEqual(ids(await claim(bench, { queues: ["c'%", 'nowhere'] })), [c!.id])
    assert.deepEqual(ids(await claim(bench, { except: ['a'] })), [b!.id])
    assert.deepEqual(ids(await claim(bench, { queues: ['a', 'b'], except: [] })), [a!.id])
  }),

  check(
    'takes over an expired lease with a new epoch, a retry and a history entry',
    async (bench) => {
      const { store } = bench
      await store.add([aLetter()])
      const first = await claimOne(bench, { worker: 'w-1', leaseMs: shortLeaseMs })
      assert.deepEqual(await claim(bench, { worker: 'w-2' }), [], 'the lease is still valid')
      await bench.advance(shortLeaseMs + 50)
      const second = await claimOne(bench, { worker: 'w-2' })
      assert.equal(second.epoch, first.epoch + 1)
      assert.equal(second.retries, first.retries + 1)
      assert.equal(second.version, first.version + 1)
      assert.equal(second.lease!.worker, 'w-2')
      assert.equal(second.history.length, first.history.length + 1)
      const { actor, action, from, to, note } = second.history.at(-1)!
      assert.deepEqual(
        { actor, action, from, to },
        { actor: 'w-1', action: 'claim', from: 'retrying', to: 'retrying' },
      )
      assert.match(note!, /lapsed/)
      expectSameLetter(await getLetter(store, first.id), second)
    },
  ),

  check('finds one expired lease among many valid ones', async (bench) => {
    const letters = Array.from({ length: 50 }, () => aLetter())
    await bench.store.add(letters)
    const lapsing = await claim(bench, { limit: 1, leaseMs: shortLeaseMs })
    await claim(bench, { limit: 49 })
    await bench.advance(shortLeaseMs + 50)
    assert.deepEqual(ids(await claim(bench, { limit: 1 })), ids(lapsing))
  }),

  check('returns when the next letter becomes due', async (bench) => {
    const { store } = bench
    const soon = ahead(bench, 10 * minuteMs)
    await store.add([
      aLetter({ retryAt: ahead(bench, 20 * minuteMs), priority: 'critical' }),
      aLetter({ retryAt: soon, priority: 'low' }),
      aLetter({ retryAt: ahead(bench, 5 * minuteMs), queue: 'other' }),
    ])
    const request = { worker: 'w', limit: 1, leaseMs: longLeaseMs }
    const orders = await store.claim({ ...request, queues: ['orders'] })
    assert.deepEqual(orders, { letters: [], nextDueAt: soon })
    const others = await store.claim({ ...request, except: ['orders', 'other'] })
    assert.deepEqual(others, { letters: [] })
  }),

  check('omits nextDueAt when the limit was reached', async (bench) => {
    const { store } = bench
    await store.add([aLetter(), aLetter({ retryAt: ahead(bench, minuteMs) })])
    const full = await store.claim({ worker: 'w', limit: 1, leaseMs: longLeaseMs })
    assert.equal(full.letters.length, 1)
    assert.equal('nextDueAt' in full, false)
  }),

  check('gives each letter to one of many concurrent claims', async ({ store }) => {
    await expectEachOnce(
      store,
      Array.from({ length: 12 }, () => store),
    )
  }),

  check(
    'gives each letter to one of two handles',
    async (bench) => {
      const other = await openAnother(bench)
      await expectEachOnce(
        bench.store,
        Array.from({ length: 12 }, (_, n) => (n % 2 ? other : bench.store)),
      )
    },
    needsShared,
  ),
]

async function expectEachOnce(store: Store, handles: Store[]): Promise<void> {
  const letters = Array.from({ length: 100 }, () => aLetter())
  await store.add(letters)
  const claims = await Promise.all(
    handles.map((handle, n) => handle.claim({ worker: `w-${n}`, limit: 10, leaseMs: longLeaseMs })),
  )
  const taken = claims.flatMap((one) => ids(one.letters))
  assert.deepEqual(taken.toSorted(), ids(letters))
}
