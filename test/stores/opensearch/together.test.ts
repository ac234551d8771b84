import assert from 'node:assert/strict'
import { afterAll, afterEach, beforeAll, describe, it } from 'vitest'
import { release, resolve } from '../../../src/letter/moves.ts'
import { toTimestamp } from '../../../src/letter/time.ts'
import { openSearchStore, type OpenSearchStore } from '../../../src/stores/opensearch/opensearch.ts'
import { aLetter } from '../../../src/testing/index.ts'
import { backend } from '../../servers/servers.ts'
import { Front, type Fate } from './front.ts'
import { request, Indices } from './opensearch-bench.ts'

const server = backend('opensearch')

// Each handle has its own client, clock and counts, like a process.
describe.skipIf(server.missing)('several handles, where searches lag by 30 seconds', () => {
  const indices = new Indices(server.url)
  const stores: OpenSearchStore[] = []

  beforeAll(async () => {
    for (let n = 0; n < 3; n++)
      stores.push(openSearchStore({ url: server.url, prefix: indices.prefix }))
    await Promise.all(stores.map((store) => store.open()))
    const settings = { index: { refresh_interval: '30s' } }
    await request(server.url, 'PUT', `/${indices.prefix}-letters/_settings`, settings)
  })
  afterEach(() => indices.clear())
  afterAll(async () => {
    await Promise.all(stores.map((store) => store.close()))
    await indices.remove()
  })

  it('never claim one letter twice, and leave none behind', async () => {
    const letters = Array.from({ length: 60 }, () => aLetter())
    await stores[0]!.add(letters)
    const taken: string[] = []
    await Promise.all(
      stores.map(async (store, n) => {
        for (;;) {
          const claim = await store.claim({ worker: `w${n}`, limit: 7, leaseMs: 60_000 })
          if (claim.letters.length === 0) return
          assert.ok(claim.letters.every(({ epoch }) => epoch === 1))
          taken.push(...claim.letters.map(({ id }) => id))
        }
      }),
    )
    assert.deepEqual(
      taken.toSorted(),
      letters.map(({ id }) => id),
    )
  })

  it('run one letter of a lane at a time, in order', async () => {
    const letters = Array.from({ length: 9 }, () => aLetter({ lane: 'l' }))
    await stores[0]!.add(letters.toReversed())
    const running = new Set<string>()
    const ran: string[] = []
    const work = async (store: OpenSearchStore, worker: string): Promise<void> => {
      while (ran.length < letters.length) {
        const { letters: got } = await store.claim({ worker, limit: 3, leaseMs: 60_000 })
        for (const letter of got) {
          assert.equal(running.size, 0, 'nothing else of the lane runs')
          running.add(letter.id)
          // The first run of every letter is released, so that the lane must return to it.
          const again = letter.epoch === 1
          const by = { at: toTimestamp(Date.now()), actor: worker, guard: 'epoch' } as const
          if (!again) ran.push(letter.id)
          running.delete(letter.id)
          const change = again ? release(letter, by) : resolve(letter, by)
          assert.deepEqual(await store.apply([change]), ['written'])
        }
      }
    }
    await Promise.all(stores.map((store, n) => work(store, `w${n}`)))
    assert.deepEqual(
      ran,
      letters.map(({ id }) => id),
    )
  })

  it('have room for a letter when another handle has just removed a candidate for eviction', async () => {
    const old = aLetter({ state: 'resolved' })
    await stores[0]!.add([old, aLetter()])
    const front = new Front(server.url)
    const far = openSearchStore({ url: await front.open(), prefix: indices.prefix })
    await far.open()
    let searches = 0
    front.fate = async (_, path): Promise<Fate> => {
      // It was counted, and is about to be searched.
      if (path.includes('/_search') && searches++ === 0) {
        await stores[0]!.remove({ ids: [old.id] })
        await indices.refresh()
      }
      return 'pass'
    }
    const results = await far.add([aLetter()], { maxItems: 2, overflow: 'evict-resolved' })
    assert.deepEqual(results, [{ kind: 'added' }])
    await far.close()
    await front.close()
  })

  it('share their counts, even after some have closed', async () => {
    const extra = Array.from({ length: 12 }, () =>
      openSearchStore({ url: server.url, prefix: indices.prefix }),
    )
    for (const store of extra) {
      await store.open()
      await store.add([aLetter(), aLetter({ queue: 'mail' })])
      await store.close()
    }
    const count = async (store: OpenSearchStore): Promise<unknown> =>
      (await store.totals()).map(({ queue, count: n }) => [queue, n])
    assert.deepEqual(await count(stores[1]!), [
      ['mail', 12],
      ['orders', 12],
    ])
    await indices.refresh()
    assert.ok((await indices.count('books')) < 20, 'documents of the gone were put together')
  })
})
