import assert from 'node:assert/strict'
import { createClient } from 'redis'
import { afterEach, beforeEach, describe, it } from 'vitest'
import type { DeadLetter } from '../../../src/letter/letter.ts'
import { resolve } from '../../../src/letter/moves.ts'
import { toTimestamp } from '../../../src/letter/time.ts'
import type { Store } from '../../../src/store.ts'
import { redisStore } from '../../../src/stores/redis/redis.ts'
import { aLetter } from '../../../src/testing/index.ts'
import { redisPlace, type Place } from '../../servers/places.ts'
import { single } from './redis-bench.ts'

const worker = { at: toTimestamp(1_800_000_000_000), actor: 'w', guard: 'epoch' } as const

describe.skipIf(single.missing !== undefined)('concurrent clients of redisStore', () => {
  let place: Place
  let stores: Store[]

  beforeEach(async () => {
    place = redisPlace(single.url)
    stores = Array.from({ length: 8 }, () => redisStore({ url: single.url, prefix: place.name }))
    await Promise.all(stores.map((store) => store.open()))
  })

  afterEach(async () => {
    await Promise.all(stores.map((store) => store.close()))
    await place.clear()
  })

  it('store one letter per dedupe key, and count every occurrence', async () => {
    const adds = stores.flatMap((store) =>
      Array.from({ length: 125 }, () => store.add([aLetter({ dedupeKey: 'k' })])),
    )
    const kinds = (await Promise.all(adds)).flat().map((result) => result.kind)
    assert.equal(kinds.filter((kind) => kind === 'added').length, 1)
    const { items } = await stores[0]!.find({ payload: true })
    assert.equal(items.length, 1)
    assert.equal(items[0]!.occurrences, 1000)
    assert.equal(items[0]!.history.length + items[0]!.historyOmitted, 1000)
  })

  it('give each letter to one of them, and accept one result for each lease', async () => {
    const letters = Array.from({ length: 300 }, (_, n) =>
      aLetter({ queue: `q${n % 3}`, ...(n % 4 === 0 ? { lane: `l${n % 5}` } : {}) }),
    )
    await stores[0]!.add(letters)
    const ran: string[] = []
    const drain = async (store: Store, name: string): Promise<void> => {
      for (;;) {
        const { letters: claimed } = await store.claim({ worker: name, limit: 7, leaseMs: 60_000 })
        if (claimed.length === 0 && ran.length >= letters.length) return
        const results = await Promise.all(
          claimed.map((letter) => store.apply([resolve(letter, worker), resolve(letter, worker)])),
        )
        for (const result of results) assert.deepEqual(result, ['written', 'conflict'])
        ran.push(...claimed.map(({ id }) => id))
      }
    }
    await Promise.all(stores.map((store, n) => drain(store, `w${n}`)))
    assert.deepEqual(ran.toSorted(), letters.map(({ id }) => id).toSorted())
    assert.deepEqual(await stores[0]!.tally('state'), new Map([['resolved', letters.length]]))
  })

  it('count a contended letter exactly: each claim is one epoch and one retry', async () => {
    await stores[0]!.add([aLetter({ policy: { kind: 'immediate' } })])
    const epochs: number[] = []
    const retries: number[] = []
    const hammer = async (store: Store, name: string): Promise<void> => {
      while (epochs.length < 120) {
        const { letters } = await store.claim({ worker: name, limit: 1, leaseMs: 60_000 })
        for (const letter of letters) {
          epochs.push(letter.epoch)
          retries.push(letter.retries)
          assert.deepEqual(await store.apply([again(letter)]), ['written'])
        }
      }
    }
    await Promise.all(stores.map((store, n) => hammer(store, `w${n}`)))
    const counted = epochs.map((_, n) => n + 1)
    assert.deepEqual(
      epochs.toSorted((a, b) => a - b),
      counted,
    )
    assert.deepEqual(
      retries.toSorted((a, b) => a - b),
      counted,
    )
  })

  it.each([
    { odd: { retries: Number.NaN }, maxItems: 10, kind: 'INVALID_INPUT' },
    { odd: {}, maxItems: Number.NaN, kind: 'INVALID_INPUT' },
    { odd: {}, maxItems: Infinity, kind: 'added' },
  ])('are not affected by invalid input of one client: $odd $maxItems', async (given) => {
    const [store] = stores as [Store]
    const capacity = { maxItems: given.maxItems, overflow: 'reject' } as const
    const [before, odd, after] = await Promise.all([
      store.add([aLetter()]),
      store
        .add([aLetter(given.odd)], capacity)
        .catch(({ code }: { code: string }) => [{ kind: code }]),
      store.add([aLetter()]),
    ])
    assert.deepEqual([before, odd, after].flat(), [
      { kind: 'added' },
      { kind: given.kind },
      { kind: 'added' },
    ])
    const { items } = await store.find({})
    assert.deepEqual(await store.tally('state'), new Map([['pending', items.length]]))
  })

  it('continue when the server loses the scripts', async () => {
    const client = createClient({ url: single.url })
    await client.connect()
    try {
      for (let round = 0; round < 10; round++) {
        const adds = stores.map((store) => store.add([aLetter(), aLetter()]))
        await client.scriptFlush()
        await Promise.all(adds)
        const { letters } = await stores[0]!.claim({ worker: 'w', limit: 16, leaseMs: 60_000 })
        await client.scriptFlush()
        const results = await stores[1]!.apply(letters.map((letter) => resolve(letter, worker)))
        assert.ok(results.every((result) => result === 'written'))
      }
      assert.deepEqual(await stores[0]!.tally('state'), new Map([['resolved', 160]]))
    } finally {
      client.destroy()
    }
  })

  it('are woken by letters that another client added', async () => {
    // A hint may come late or never while the connection for it is being made, so letters go on
    // coming.
    const calls: true[] = []
    stores[1]!.watch(() => void calls.push(true))
    while (calls.length === 0) await stores[0]!.add([aLetter()])
    assert.equal(calls[0], true)
  })
})

/** Failed, and due again at once. */
function again(letter: DeadLetter): ReturnType<typeof resolve> {
  const change = resolve(letter, worker)
  const set = { lease: null, state: 'pending', retryAt: letter.deadLetteredAt } as const
  return { ...change, action: 'reschedule', set }
}
