import assert from 'node:assert/strict'
import { afterAll, afterEach, beforeAll, describe, it } from 'vitest'
import { release, resolve } from '../../../src/letter/moves.ts'
import { toTimestamp } from '../../../src/letter/time.ts'
import { openSearchStore, type OpenSearchStore } from '../../../src/stores/opensearch/opensearch.ts'
import { aLetter } from '../../../src/testing/index.ts'
import { backend } from '../../servers/servers.ts'
import { FaultyProxy, type ProxyAction } from './faulty-proxy.ts'
import { request, Indices } from './opensearch-bench.ts'

const server = backend('opensearch')

// Each store has its own client, clock and totals, like a process of its own.
describe.skipIf(server.missing)(
  'several stores on the same indices, whose searches lag by 30 seconds',
  () => {
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

    it('claim every letter exactly once', async () => {
      const letters = Array.from({ length: 60 }, () => aLetter())
      await stores[0]!.add(letters)
      const claimed: string[] = []
      await Promise.all(
        stores.map(async (store, n) => {
          for (;;) {
            const claim = await store.claim({ worker: `w${n}`, limit: 7, leaseMs: 60_000 })
            if (claim.letters.length === 0) return
            assert.ok(claim.letters.every(({ epoch }) => epoch === 1))
            claimed.push(...claim.letters.map(({ id }) => id))
          }
        }),
      )
      assert.deepEqual(
        claimed.toSorted(),
        letters.map(({ id }) => id),
      )
    })

    it('run one letter of a lane at a time, in order', async () => {
      const letters = Array.from({ length: 9 }, () => aLetter({ lane: 'l' }))
      await stores[0]!.add(letters.toReversed())
      const running = new Set<string>()
      const resolved: string[] = []
      const work = async (store: OpenSearchStore, worker: string): Promise<void> => {
        while (resolved.length < letters.length) {
          const { letters: claimed } = await store.claim({ worker, limit: 3, leaseMs: 60_000 })
          for (const letter of claimed) {
            assert.equal(running.size, 0, 'no other letter of the lane runs')
            running.add(letter.id)
            // The first run of every letter is released, so that the lane runs the letter again.
            const isFirstRun = letter.epoch === 1
            const by = { at: toTimestamp(Date.now()), actor: worker, guard: 'epoch' } as const
            if (!isFirstRun) resolved.push(letter.id)
            running.delete(letter.id)
            const change = isFirstRun ? release(letter, by) : resolve(letter, by)
            assert.deepEqual(await store.apply([change]), ['written'])
          }
        }
      }
      await Promise.all(stores.map((store, n) => work(store, `w${n}`)))
      assert.deepEqual(
        resolved,
        letters.map(({ id }) => id),
      )
    })

    it('accept a letter when another store has just removed the candidate for eviction', async () => {
      const candidate = aLetter({ state: 'resolved' })
      await stores[0]!.add([candidate, aLetter()])
      const proxy = new FaultyProxy(server.url)
      const delayed = openSearchStore({ url: await proxy.open(), prefix: indices.prefix })
      await delayed.open()
      let searches = 0
      proxy.actionFor = async (_, path): Promise<ProxyAction> => {
        // The candidate was counted, and the search for it is about to run.
        if (path.includes('/_search') && searches++ === 0) {
          await stores[0]!.remove({ ids: [candidate.id] })
          await indices.refresh()
        }
        return 'pass'
      }
      const results = await delayed.add([aLetter()], { maxItems: 2, overflow: 'evict-resolved' })
      assert.deepEqual(results, [{ kind: 'added' }])
      await delayed.close()
      await proxy.close()
    })

    it('share their totals, even after some have closed', async () => {
      const extra = Array.from({ length: 12 }, () =>
        openSearchStore({ url: server.url, prefix: indices.prefix }),
      )
      for (const store of extra) {
        await store.open()
        await store.add([aLetter(), aLetter({ queue: 'mail' })])
        await store.close()
      }
      const countsOf = async (store: OpenSearchStore): Promise<unknown> =>
        (await store.totals()).map(({ queue, count }) => [queue, count])
      assert.deepEqual(await countsOf(stores[1]!), [
        ['mail', 12],
        ['orders', 12],
      ])
      await indices.refresh()
      assert.ok((await indices.count('books')) < 20, 'documents of closed stores were folded')
    })
  },
)
