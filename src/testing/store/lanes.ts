import assert from 'node:assert/strict'
import type { DeadLetter } from '../../letter/letter.ts'
import { archive, exhaust, park, release, reschedule, resolve, retry } from '../../letter/moves.ts'
import { aLetter } from '../a-letter.ts'
import { checkOn, type StoreBench } from './check.ts'
import {
  ago,
  ahead,
  claim,
  claimOne,
  claimWhenDue,
  ids,
  newFailure,
  person,
  shortLeaseMs,
  stored,
  worker,
} from './stage.ts'

const check = checkOn('lanes')

const inLane = (overrides: Partial<DeadLetter> = {}): DeadLetter =>
  aLetter({ lane: 'l', ...overrides })

export const laneChecks = [
  check('gives one letter of a lane at a time, in the order of capture', async (bench) => {
    const letters = [inLane({ priority: 'low' }), inLane({ priority: 'critical' }), inLane()]
    await bench.store.add(letters.toReversed())
    for (const expected of letters) {
      const head = await claimOne(bench)
      assert.equal(head.id, expected.id)
      await bench.store.apply([resolve(head, worker(bench))])
    }
    assert.deepEqual(await claim(bench), [])
  }),

  check('waits for a head that is not due, or fails and is to run again', async (bench) => {
    const { store } = bench
    const [head, next] = [inLane(), inLane()]
    await store.add([head, next])
    const claimed = await claimOne(bench)
    assert.equal(claimed.id, head.id)
    const again = { judged: newFailure(bench), retryAt: ahead(bench, 80), backoffMs: 80 }
    await store.apply([reschedule(claimed, worker(bench), again)])
    assert.deepEqual(ids(await claimWhenDue(bench, again.retryAt)), [head.id])
  }),

  check('goes on when the head is exhausted, parked, archived or removed', async (bench) => {
    const { store } = bench
    const letters = [1, 2, 3, 4, 5].map(() => inLane())
    await store.add(letters)
    const judged = newFailure(bench)
    await store.apply([exhaust(await claimOne(bench), worker(bench), { judged })])
    await store.apply([park(await claimOne(bench), worker(bench), { reason: 'operator' })])
    await store.apply([archive(letters[2]!, person(bench))])
    await store.remove({ ids: [letters[3]!.id] })
    assert.equal((await claimOne(bench)).id, letters[4]!.id)
  }),

  check('gives the lapsed head again, and not the next one', async (bench) => {
    await bench.store.add([inLane(), inLane()])
    const head = await claimOne(bench, { leaseMs: shortLeaseMs })
    await bench.advance(shortLeaseMs + 50)
    const again = await claimOne(bench)
    assert.equal(again.id, head.id)
    assert.equal(again.epoch, head.epoch + 1)
  }),

  check('gives the lane back to an older letter that is active again', async (bench) => {
    const { store } = bench
    const [older, younger] = [inLane({ state: 'parked' }), inLane()]
    await store.add([older, younger])
    await store.apply([retry(older, person(bench))])
    const head = await claimOne(bench)
    assert.equal(head.id, older.id)
    await store.apply([resolve(head, worker(bench))])
    assert.equal((await claimOne(bench)).id, younger.id)
  }),

  check(
    'gives nothing of a lane while one of it is in flight, though an older one is active again',
    async (bench) => {
      const { store } = bench
      const [older, younger] = [inLane({ state: 'parked' }), inLane()]
      await store.add([older, younger])
      const running = await claimOne(bench)
      assert.equal(running.id, younger.id)
      await store.apply([retry(older, person(bench))])
      assert.deepEqual(ids(await claim(bench)), [])
      await store.apply([release(running, worker(bench))])
      assert.equal((await claimOne(bench)).id, older.id)
    },
  ),

  check('gives a lapsed letter again before an older one that is active again', async (bench) => {
    const { store } = bench
    const [older, younger] = [inLane({ state: 'parked' }), inLane()]
    await store.add([older, younger])
    await claimOne(bench, { leaseMs: shortLeaseMs })
    await store.apply([retry(older, person(bench))])
    await bench.advance(shortLeaseMs + 50)
    assert.deepEqual(ids(await claim(bench)), [younger.id])
  }),

  check('gives the lane to an older letter that is added later', async (bench) => {
    const { store } = bench
    const [older, younger] = [inLane(), inLane()]
    await store.add([younger])
    await store.add([older])
    assert.equal((await claimOne(bench)).id, older.id)
  }),

  check('lets other lanes, other queues and letters without a lane pass', async (bench) => {
    const letters = [
      inLane(),
      inLane({ lane: 'm' }),
      inLane({ queue: 'other' }),
      aLetter(),
      aLetter(),
    ]
    await bench.store.add([...letters, inLane(), inLane({ lane: 'm' })])
    assert.deepEqual(ids(await claim(bench)).toSorted(), ids(letters))
  }),

  check('does not let held letters use up the limit', async (bench) => {
    await bench.store.add([inLane({ retryAt: ahead(bench, 3_600_000) })])
    await bench.store.add(Array.from({ length: 30 }, () => inLane({ priority: 'critical' })))
    const free = aLetter({ priority: 'low', retryAt: ago(bench, 1) })
    await bench.store.add([free])
    assert.deepEqual(ids(await claim(bench, { limit: 1 })), [free.id])
  }),

  check('does not announce letters that wait for their lane', async (bench) => {
    const { store } = bench
    const headDueAt = ahead(bench, 3_600_000)
    await store.add([
      inLane({ retryAt: headDueAt }),
      inLane(),
      inLane({ retryAt: ahead(bench, 1000) }),
    ])
    const { nextDueAt } = await store.claim({ worker: 'w', limit: 5, leaseMs: 100 })
    assert.equal(nextDueAt, headDueAt)
  }),

  check('holds a failing head until its budget is spent, then goes on in order', async (bench) => {
    const { store } = bench
    const letters = [1, 2, 3].map(() => inLane({ maxRetries: 2 }))
    await store.add(letters)
    const ran: string[] = []
    for (let run = 0; run < 5; run++) ran.push(await runHead(bench, letters[0]!.id))
    const [poison, second, third] = ids(letters)
    assert.deepEqual(ran, [poison, poison, second, third, 'none'])
    assert.equal((await stored(store, poison!)).state, 'exhausted')
  }),
]

/** One turn of a worker for which the poison letter always fails. Answers which letter ran. */
async function runHead(bench: StoreBench, poison: string): Promise<string> {
  const [head] = await claim(bench, { limit: 1 })
  if (!head) return 'none'
  const by = worker(bench)
  const judged = newFailure(bench)
  const again = { judged, retryAt: by.at, backoffMs: 0 }
  const failed =
    head.retries < head.maxRetries ? reschedule(head, by, again) : exhaust(head, by, { judged })
  await bench.store.apply([head.id === poison ? failed : resolve(head, by)])
  return head.id
}
