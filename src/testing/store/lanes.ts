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
  getLetter,
  worker,
} from './steps.ts'

const check = checkOn('lanes')

const inLane = (overrides: Partial<DeadLetter> = {}): DeadLetter =>
  aLetter({ lane: 'l', ...overrides })

export const laneChecks = [
  check('claims one letter of a lane at a time, in the order of capture', async (bench) => {
    const letters = [inLane({ priority: 'low' }), inLane({ priority: 'critical' }), inLane()]
    await bench.store.add(letters.toReversed())
    for (const expected of letters) {
      const head = await claimOne(bench)
      assert.equal(head.id, expected.id)
      await bench.store.apply([resolve(head, worker(bench))])
    }
    assert.deepEqual(await claim(bench), [])
  }),

  check('waits for a head that is rescheduled', async (bench) => {
    const { store } = bench
    const [head, next] = [inLane(), inLane()]
    await store.add([head, next])
    const claimed = await claimOne(bench)
    assert.equal(claimed.id, head.id)
    const again = { judged: newFailure(bench), retryAt: ahead(bench, 80), backoffMs: 80 }
    await store.apply([reschedule(claimed, worker(bench), again)])
    assert.deepEqual(ids(await claimWhenDue(bench, again.retryAt)), [head.id])
  }),

  check('continues when the head is exhausted, parked, archived or removed', async (bench) => {
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

  check('claims a head with an expired lease again, not the next letter', async (bench) => {
    await bench.store.add([inLane(), inLane()])
    const head = await claimOne(bench, { leaseMs: shortLeaseMs })
    await bench.advance(shortLeaseMs + 50)
    const again = await claimOne(bench)
    assert.equal(again.id, head.id)
    assert.equal(again.epoch, head.epoch + 1)
  }),

  check('claims an older letter first when it becomes active again', async (bench) => {
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
    'claims nothing of a lane with a letter in flight, even if an older one becomes active',
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

  check(
    'claims a letter with an expired lease before an older one that became active',
    async (bench) => {
      const { store } = bench
      const [older, younger] = [inLane({ state: 'parked' }), inLane()]
      await store.add([older, younger])
      await claimOne(bench, { leaseMs: shortLeaseMs })
      await store.apply([retry(older, person(bench))])
      await bench.advance(shortLeaseMs + 50)
      assert.deepEqual(ids(await claim(bench)), [younger.id])
    },
  ),

  check('claims an older letter first even if it is added later', async (bench) => {
    const { store } = bench
    const [older, younger] = [inLane(), inLane()]
    await store.add([younger])
    await store.add([older])
    assert.equal((await claimOne(bench)).id, older.id)
  }),

  check('does not hold other lanes, other queues or letters without a lane', async (bench) => {
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

  check('does not count held letters towards the limit', async (bench) => {
    await bench.store.add([inLane({ retryAt: ahead(bench, 3_600_000) })])
    await bench.store.add(Array.from({ length: 30 }, () => inLane({ priority: 'critical' })))
    const free = aLetter({ priority: 'low', retryAt: ago(bench, 1) })
    await bench.store.add([free])
    assert.deepEqual(ids(await claim(bench, { limit: 1 })), [free.id])
  }),

  check('ignores letters that wait for their lane in nextDueAt', async (bench) => {
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

  check(
    'holds a lane until a failing head is exhausted, then continues in order',
    async (bench) => {
      const { store } = bench
      const letters = [1, 2, 3].map(() => inLane({ maxRetries: 2 }))
      await store.add(letters)
      const ran: string[] = []
      for (let run = 0; run < 5; run++) ran.push(await runHead(bench, letters[0]!.id))
      const [poison, second, third] = ids(letters)
      assert.deepEqual(ran, [poison, poison, second, third, 'none'])
      assert.equal((await getLetter(store, poison!)).state, 'exhausted')
    },
  ),
]

/** Runs the next letter; the poison letter always fails. Returns the id of the letter that ran. */
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
