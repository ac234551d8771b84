import assert from 'node:assert/strict'
import { afterEach, beforeEach, describe, it } from 'vitest'
import type { DeadLetter } from '../../../src/letter/letter.ts'
import { orders, sortKey } from '../../../src/letter/query.ts'
import type { AddResult, Store } from '../../../src/store.ts'
import { redisStore } from '../../../src/stores/redis/redis.ts'
import { aLetter } from '../../../src/testing/index.ts'
import { redisPlace, type Place } from '../../servers/places.ts'
import { single } from './redis-bench.ts'

const day = (n: number): string => `2026-01-${String((n % 28) + 1).padStart(2, '0')}T00:00:00.000Z`

describe.skipIf(single.missing !== undefined)('a search', () => {
  let place: Place
  let store: Store

  beforeEach(async () => {
    place = redisPlace(single.url)
    store = redisStore({ url: single.url, prefix: place.name })
    await store.open()
  })

  afterEach(async () => {
    await store.close()
    await place.clear()
  })

  const walked = async (order: (typeof orders)[number], state?: 'parked'): Promise<string[]> => {
    const seen: string[] = []
    let cursor: string | undefined
    do {
      const query = {
        order,
        limit: 100,
        ...(state ? { state } : {}),
        ...(cursor ? { cursor } : {}),
      }
      const page = await store.find(query)
      seen.push(...page.items.map(({ id }) => id))
      cursor = page.cursor
    } while (cursor !== undefined)
    return seen
  }

  it('is ordered over more queues than one script reads', async () => {
    const letters = Array.from({ length: 700 }, (_, n) =>
      aLetter({
        queue: `q${n % 350}`,
        ...(n % 3 === 0
          ? { state: 'parked', settledAt: day(n) }
          : { retryAt: day(n * 7), priority: n % 2 ? 'low' : 'high' }),
      }),
    )
    await store.add(letters)
    for (const order of orders) {
      const key = (letter: (typeof letters)[number]): string =>
        `${sortKey(letter.state === 'parked' ? { ...letter, retryAt: letter.retryAt! } : letter, order)} ${letter.id}`
      const expected = letters.toSorted((a, b) => (key(a) < key(b) ? -1 : 1)).map(({ id }) => id)
      if (order === 'newest') expected.reverse()
      assert.deepEqual(await walked(order), expected, order)
    }
    assert.equal(
      (await walked('oldest', 'parked')).length,
      letters.filter((_, n) => n % 3 === 0).length,
    )
    const { letters: claimed } = await store.claim({ worker: 'w', limit: 600, leaseMs: 60_000 })
    const due = letters.filter(({ state }) => state === 'pending')
    assert.equal(claimed.length, due.length)
    assert.ok(
      claimed.slice(0, 100).every(({ priority }) => priority === 'high' || priority === 'low'),
    )
  })

  it('returns letters of some queues only once the other queues are as far', async () => {
    const few = (queue: string) => aLetter({ queue, category: 'timeout' })
    await store.add(Array.from({ length: 250 }, (_, n) => aLetter({ queue: `q${n}` })))
    const many = Array.from({ length: 700 }, () => aLetter({ queue: 'q0', category: 'network' }))
    await store.add(many)
    const queues = Array.from({ length: 250 }, (_, n) => `q${n}`)
    const matching = queues.map(few)
    await store.add(matching)
    for (const order of ['oldest', 'newest'] as const) {
      await store.add(
        order === 'newest' ? Array.from({ length: 700 }, () => aLetter({ queue: 'q9' })) : [],
      )
      const { items } = await store.find({ category: 'timeout', order, limit: 1000 })
      const expected = matching.map(({ id }) => id)
      assert.deepEqual(
        items.map(({ id }) => id),
        order === 'oldest' ? expected : expected.toReversed(),
      )
    }
  })

  it('continues past a thousand letters that settled at the same time', async () => {
    const at = day(0)
    const letters = Array.from({ length: 1200 }, () => aLetter({ state: 'parked', settledAt: at }))
    await store.add(letters)
    assert.deepEqual(
      await walked('settled'),
      letters.map(({ id }) => id),
    )
  })

  it('finds few matching letters among many', async () => {
    await store.add(Array.from({ length: 1500 }, () => aLetter({ category: 'network' })))
    const few = [1, 2, 3].map(() => aLetter({ category: 'timeout', tags: ['x'] }))
    await store.add(few)
    await store.add(Array.from({ length: 700 }, () => aLetter({ category: 'network' })))
    const { items, cursor } = await store.find({ category: 'timeout', order: 'oldest' })
    assert.deepEqual(
      items.map(({ id }) => id),
      few.map(({ id }) => id),
    )
    assert.equal(cursor, undefined)
    assert.equal(await store.remove({ category: 'timeout', text: 'nowhere' }), 0)
    assert.equal(await store.remove({ category: 'timeout', tag: 'x' }), 3)
  })

  it('evicts in steps after the limit was lowered far', async () => {
    await store.add(Array.from({ length: 1300 }, () => aLetter({ state: 'resolved' })))
    const results = await store.add([aLetter()], { maxItems: 10, overflow: 'evict-resolved' })
    assert.deepEqual(results, [{ kind: 'added', evicted: 1291 }])
    assert.deepEqual(
      await store.tally('state'),
      new Map([
        ['resolved', 9],
        ['pending', 1],
      ]),
    )
  })

  it('evicts no more than necessary, however many letters are added to an overfull store', async () => {
    const resolved = (length: number): DeadLetter[] =>
      Array.from({ length }, () => aLetter({ state: 'resolved' }))
    const capacity = { maxItems: 600, overflow: 'evict-resolved' } as const
    const evicted = (result: AddResult): unknown =>
      result.kind === 'added' ? result.evicted : result.kind
    await store.add(resolved(1300))
    const letters = ['k', 'l', 'k'].map((dedupeKey) => aLetter({ dedupeKey }))
    const results = await store.add(letters, capacity)
    assert.deepEqual(results.map(evicted), [701, 1, 'duplicate'])
    await store.add(resolved(700))
    await Promise.all([aLetter(), aLetter()].map((letter) => store.add([letter], capacity)))
    assert.deepEqual(
      await store.tally('state'),
      new Map([
        ['resolved', 596],
        ['pending', 4],
      ]),
    )
  })
})
