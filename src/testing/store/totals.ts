import assert from 'node:assert/strict'
import {
  archive,
  edit,
  exhaust,
  note,
  park,
  release,
  reschedule,
  resolve,
  restore,
  retry,
  review,
} from '../../letter/moves.ts'
import type { Store, Total } from '../../store.ts'
import { aLetter } from '../a-letter.ts'
import { checkOn } from './check.ts'
import { ahead, claim, claimOne, newFailure, person, getLetter, worker } from './steps.ts'

const check = checkOn('totals')

export const totalChecks = [
  check('counts captures by queue and priority, with retries and backoff', async ({ store }) => {
    await store.add([
      aLetter({ priority: 'high', retries: 5, backoffMs: 1000 }),
      aLetter({ priority: 'high', retries: 2, backoffMs: 500 }),
      aLetter({ priority: 'low' }),
      aLetter({ queue: 'mail', priority: 'high' }),
    ])
    assert.deepEqual(sortTotals(await store.totals()), [
      total('capture', 'mail', 'high', 1),
      total('capture', 'orders', 'high', 2, { retries: 7, maxRetries: 5, backoffMs: 1500 }),
      total('capture', 'orders', 'low', 1),
    ])
  }),

  check('counts a claim with its retry', async (bench) => {
    await bench.store.add([aLetter({ retries: 2 })])
    await claimOne(bench)
    assert.deepEqual(
      await findTotal(bench.store, 'claim'),
      total('claim', 'orders', 'medium', 1, { retries: 3, maxRetries: 3 }),
    )
  }),

  check('counts every move under its action, with the values after the move', async (bench) => {
    const { store } = bench
    await store.add([1, 2, 3, 4, 5].map(() => aLetter()))
    const [a, b, c, d, e] = await claim(bench)
    const by = worker(bench)
    const judged = newFailure(bench)
    await store.apply([
      resolve(a!, by),
      reschedule(b!, by, { judged, retryAt: ahead(bench, 60_000), backoffMs: 700 }),
      exhaust(c!, by, { judged }),
      park(d!, by, { reason: 'permanent' }),
      release(e!, by),
    ])
    const me = person(bench)
    const now = async (letter: { id: string } | undefined) => getLetter(store, letter!.id)
    await store.apply([archive(await now(a), me)])
    await store.apply([restore(await now(a), me)])
    await store.apply([retry(await now(c), me)])
    await store.apply([review(await now(d), me, 'requeue')])
    await store.apply([edit(await now(e), me, { priority: 'critical' })])
    await store.apply([note(await now(e), { ...me, note: 'seen' })])
    await store.remove({ ids: [b!.id] })
    const one = { retries: 1, maxRetries: 1 }
    assert.deepEqual(sortTotals(await store.totals()), [
      total('archive', 'orders', 'medium', 1, one),
      total('capture', 'orders', 'medium', 5),
      total('claim', 'orders', 'medium', 5, { retries: 5, maxRetries: 1 }),
      total('edit', 'orders', 'critical', 1),
      total('exhaust', 'orders', 'medium', 1, one),
      total('note', 'orders', 'critical', 1),
      total('park', 'orders', 'medium', 1, one),
      total('release', 'orders', 'medium', 2, one),
      total('remove', 'orders', 'medium', 1, { ...one, backoffMs: 700 }),
      total('reschedule', 'orders', 'medium', 1, { ...one, backoffMs: 700 }),
      total('resolve', 'orders', 'medium', 1, one),
      total('restore', 'orders', 'medium', 1, one),
      total('retry', 'orders', 'medium', 2),
      total('review', 'orders', 'medium', 1),
    ])
  }),

  check(
    'counts a letter captured as parked as capture and as park-at-capture',
    async ({ store }) => {
      await store.add([
        aLetter({ state: 'parked' }),
        aLetter({ state: 'parked', dedupeKey: 'k' }),
        aLetter({ state: 'parked', dedupeKey: 'k' }),
        aLetter(),
      ])
      assert.deepEqual(sortTotals(await store.totals()), [
        total('capture', 'orders', 'medium', 3),
        total('occur', 'orders', 'medium', 1),
        total('park-at-capture', 'orders', 'medium', 2),
      ])
    },
  ),

  check('counts a failed run that was reported for a pending letter', async (bench) => {
    const { store } = bench
    const letters = [1, 2, 3, 4].map(() => aLetter())
    await store.add(letters)
    const [a, b, c] = letters.map((letter) => ({ ...letter, retries: 1 }))
    const me = person(bench)
    const to = { judged: newFailure(bench) }
    await store.apply([
      reschedule(a!, me, { ...to, retryAt: ahead(bench, 60_000), backoffMs: 500 }),
      exhaust(b!, me, to),
      park(c!, me, { ...to, reason: 'permanent' }),
      // This letter did not run.
      park(letters[3]!, me, { reason: 'operator' }),
    ])
    const one = { retries: 1, maxRetries: 1 }
    assert.deepEqual(sortTotals(await store.totals()), [
      total('capture', 'orders', 'medium', 4),
      total('exhaust', 'orders', 'medium', 1, one),
      total('fail', 'orders', 'medium', 3, { retries: 3, maxRetries: 1, backoffMs: 500 }),
      total('park', 'orders', 'medium', 2, one),
      total('reschedule', 'orders', 'medium', 1, { ...one, backoffMs: 500 }),
    ])
  }),

  check('counts the decision of a review in addition to the review', async (bench) => {
    const { store } = bench
    const letters = [1, 2, 3].map(() => aLetter({ state: 'parked' }))
    await store.add(letters)
    const me = person(bench)
    const decisions = ['requeue', 'resolve', 'discard'] as const
    await store.apply(letters.map((letter, at) => review(letter, me, decisions[at]!)))
    assert.deepEqual(sortTotals(await store.totals()), [
      total('archive', 'orders', 'medium', 1),
      total('capture', 'orders', 'medium', 3),
      total('park-at-capture', 'orders', 'medium', 3),
      total('resolve', 'orders', 'medium', 1),
      total('retry', 'orders', 'medium', 1),
      total('review', 'orders', 'medium', 3),
    ])
  }),

  check('counts an occurrence with the values of the stored letter', async ({ store }) => {
    await store.add([aLetter({ dedupeKey: 'k', priority: 'low', retries: 2, backoffMs: 30 })])
    await store.add([aLetter({ dedupeKey: 'k', priority: 'high' })])
    const expected = total('occur', 'orders', 'low', 1, {
      retries: 2,
      maxRetries: 2,
      backoffMs: 30,
    })
    assert.deepEqual(await findTotal(store, 'occur'), expected)
  }),

  check('does not count calls that changed nothing', async (bench) => {
    const { store } = bench
    const letter = aLetter()
    await store.add([letter])
    const before = await store.totals()
    await store.add([letter])
    await store.add([aLetter()], { maxItems: 1, overflow: 'reject' })
    const stale = { ...resolve(letter, person(bench)), guard: { version: 99 } }
    await store.apply([stale, { ...stale, id: '00000000-0000-7000-8000-000000000000' }])
    await store.claim({ worker: 'w', limit: 0, leaseMs: 100 })
    await store.remove({ queue: 'nowhere' })
    assert.deepEqual(await store.totals(), before)
  }),

  check('keeps totals after letters are removed', async ({ store }) => {
    const letter = aLetter()
    await store.add([letter])
    await store.remove({ ids: [letter.id] })
    assert.deepEqual(sortTotals(await store.totals()), [
      total('capture', 'orders', 'medium', 1),
      total('remove', 'orders', 'medium', 1),
    ])
  }),
]

function total(
  action: Total['action'],
  queue: string,
  priority: Total['priority'],
  count: number,
  sums: Partial<Total> = {},
): Total {
  return { action, queue, priority, count, retries: 0, maxRetries: 0, backoffMs: 0, ...sums }
}

async function findTotal(store: Store, action: Total['action']): Promise<Total> {
  const totals = (await store.totals()).filter((one) => one.action === action)
  assert.equal(totals.length, 1)
  return totals[0]!
}

function sortTotals(totals: Total[]): Total[] {
  const key = (one: Total): string => JSON.stringify([one.action, one.queue, one.priority])
  return totals.toSorted((a, b) => (key(a) < key(b) ? -1 : 1))
}
