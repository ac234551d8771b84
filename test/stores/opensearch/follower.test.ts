import assert from 'node:assert/strict'
import { join } from 'node:path'
import { afterAll, afterEach, describe, it, vi } from 'vitest'
import { passThrough } from '../../../src/stores/pass-through.ts'
import { resolve } from '../../../src/letter/moves.ts'
import type { DriftReport, Store } from '../../../src/store.ts'
import { DeadLetterQueue } from '../../../src/index.ts'
import { memoryStore } from '../../../src/stores/memory/memory.ts'
import { follow, type FollowedStore } from '../../../src/stores/opensearch/follower.ts'
import { openSearchIndex, type SearchIndex } from '../../../src/stores/opensearch/search-index.ts'
import { sqliteStore } from '../../../src/stores/sqlite/sqlite.ts'
import { aLetter, fakeClock } from '../../../src/testing/index.ts'
import { runStoreContract } from '../../contract/run-store-contract.ts'
import { backend } from '../../servers/servers.ts'
import { temporaryDirectory } from '../sqlite/sqlite-bench.ts'
import { Front } from './front.ts'
import { pausing } from '../bench.ts'
import { request, Indices } from './opensearch-bench.ts'

const server = backend('opensearch')
const patience = { timeout: 20_000 }

/** An index that accepts everything and finds nothing. */
const deafIndex: SearchIndex = {
  name: 'deaf',
  open: async () => {},
  close: async () => {},
  feed: async () => [],
  drop: async () => {},
  versions: async () => new Map(),
  search: async () => [],
}

runStoreContract('a followed store', async () => {
  const clock = fakeClock()
  const store = follow(memoryStore({ clock }), deafIndex, { clock })
  await store.open()
  // Its first full comparison writes a record, which no check expects.
  await store.caughtUp()
  await store.records.remove('search-index', 'deaf')
  return {
    store,
    now: () => clock.now(),
    advance: (ms) => clock.advance(ms),
    close: () => store.close(),
  }
})

it('a followed store has the methods of the store behind it, and no others', async () => {
  const report = { examples: ['one'] }
  const truth = passThrough(memoryStore(), { fsck: async () => report as DriftReport })
  const store = follow(truth, deafIndex)
  assert.equal(await store.fsck?.(), report)
  assert.equal('within' in store, false)
})

describe.skipIf(server.missing)('an index that follows a store', () => {
  const indices = new Indices(server.url)
  const opened: FollowedStore[] = []
  afterEach(async () => {
    for (const store of opened.splice(0)) await store.close()
    await indices.clear()
  })
  afterAll(() => indices.remove())

  const clock = fakeClock()
  const indexNow = (url = server.url): SearchIndex =>
    openSearchIndex({ url, prefix: indices.prefix, clock: pausing(clock) })
  const followed = (truth: Store, url?: string): FollowedStore => {
    const store = follow(truth, indexNow(url), { clock })
    opened.push(store)
    return store
  }
  const person = { at: '2026-01-02T00:00:00.000Z', actor: 'ada', guard: 'version' } as const
  const failing = (message: string) =>
    aLetter({
      failure: { name: 'E', message, causes: [], at: '2026-01-01T00:00:00.000Z' },
    })
  const idsOf = async (store: FollowedStore, text: string): Promise<string[]> => {
    await store.caughtUp()
    await indices.refresh()
    return (await store.search(text)).map(({ id }) => id)
  }

  it('finds added letters as the store has them, and not removed ones', async () => {
    const store = followed(memoryStore({ clock }))
    await store.open()
    const [kept, gone] = [failing('a crooked wheel'), failing('another crooked wheel')]
    await store.add([kept, gone])
    assert.deepEqual((await idsOf(store, 'crooked')).toSorted(), [kept.id, gone.id])
    await store.remove({ ids: [gone.id] })
    await store.apply([resolve(kept, person)])
    assert.deepEqual(await idsOf(store, 'wheel crooked'), [kept.id])
    const [found] = await store.search('crooked')
    assert.equal(found!.state, 'resolved')
    assert.deepEqual(await store.search('crooked', { among: { state: 'pending' } }), [])
  })

  it('answers a search before the index was created', async () => {
    const store = followed(memoryStore({ clock }))
    await store.open()
    assert.deepEqual(await store.search('crooked'), [])
  })

  it('notices letters removed by filter', async () => {
    const store = followed(memoryStore({ clock }))
    await store.open()
    await store.add([failing('one crooked'), failing('two crooked')])
    assert.equal((await idsOf(store, 'crooked')).length, 2)
    await store.remove({ queue: 'orders' })
    assert.deepEqual(await idsOf(store, 'crooked'), [])
    await indices.refresh()
    assert.equal(await indices.count('search'), 0)
  })

  it('never blocks the store while it is unreachable, reports it, and catches up', async () => {
    const front = new Front(server.url)
    const store = followed(memoryStore({ clock }), await front.open())
    await store.open()
    await store.caughtUp()
    front.fate = () => 'cut'
    const letter = failing('while away')
    assert.deepEqual(await store.add([letter]), [{ kind: 'added' }])
    const health = await vi.waitFor(async () => {
      const now = await store.health()
      assert.match(now.problems[0] ?? '', /search: .*cannot be reached/)
      return now
    }, patience)
    assert.equal(health.ok, true)
    assert.match(health.checks['search']!, /1 changes pending/)
    front.fate = () => 'pass'
    const caught = store.caughtUp()
    await clock.advance(120_000)
    await caught
    assert.deepEqual(await idsOf(store, 'away'), [letter.id])
    assert.deepEqual((await store.health()).problems, [])
    await store.close()
    await front.close()
  })

  it('finds missed changes after a restart, in both directions', async () => {
    const folder = await temporaryDirectory()
    const path = join(folder.path, 'letters.db')
    const first = followed(sqliteStore({ path, clock }))
    await first.open()
    const [changed, removed] = [failing('missed one'), failing('missed two')]
    await first.add([changed, removed])
    await first.caughtUp()
    await first.close()
    const behind = sqliteStore({ path, clock })
    await behind.open()
    const unseen = failing('missed three')
    await behind.add([unseen])
    await behind.remove({ ids: [removed.id] })
    await behind.apply([resolve(changed, person)])
    await behind.close()
    const second = followed(sqliteStore({ path, clock }))
    await second.open()
    assert.deepEqual((await idsOf(second, 'missed')).toSorted(), [changed.id, unseen.id])
    assert.deepEqual(
      (await second.search('missed', { among: { state: 'resolved' } })).map(({ id }) => id),
      [changed.id],
    )
    const record = await second.records.get('search-index', `${indices.prefix}-search`)
    assert.ok((record!.value as { completedAt?: string }).completedAt)
    await second.close()
    await folder.clear()
  })

  it('does not replace a newer version by an older one', async () => {
    const index = indexNow()
    await index.open()
    const letter = failing('the older')
    const newer = { ...letter, version: 5, failure: { ...letter.failure, message: 'the newer' } }
    await index.feed([newer])
    assert.deepEqual(await index.feed([letter]), [])
    assert.deepEqual(await index.versions(undefined, undefined), new Map([[letter.id, 5]]))
    await index.close()
  })

  it('does not reject a letter because the index is closed', async () => {
    const index = indexNow()
    await index.open()
    await request(server.url, 'POST', `/${index.name}/_close`)
    try {
      await assert.rejects(index.feed([aLetter()]), { code: 'STORE_UNAVAILABLE' })
    } finally {
      await request(server.url, 'POST', `/${index.name}/_open?wait_for_active_shards=1`)
      await index.close()
    }
  })

  it('is recreated unchanged when it is deleted while it follows', async () => {
    const store = followed(memoryStore({ clock }))
    await store.open()
    await store.caughtUp()
    const index = `/${indices.prefix}-search`
    interface Made {
      mappings: object
    }
    const [before] = Object.values(await request<Record<string, Made>>(server.url, 'GET', index))
    await request(server.url, 'DELETE', index)
    const letter = failing('after the removal')
    await store.add([letter])
    await vi.waitFor(async () => {
      const { problems } = await store.health()
      assert.match(problems[0] ?? '', /search: .*deleted while in use/)
    }, patience)
    const caught = store.caughtUp()
    await clock.advance(120_000)
    await caught
    assert.deepEqual(await idsOf(store, 'removal'), [letter.id])
    const [after] = Object.values(await request<Record<string, Made>>(server.url, 'GET', index))
    assert.deepEqual(after!.mappings, before!.mappings)
  })

  it('resumes its full comparison after a restart', async () => {
    const truth = memoryStore({ clock })
    const letters = Array.from({ length: 1100 }, () => aLetter())
    await truth.add(letters)
    const name = `${indices.prefix}-search`
    const { cursor } = await truth.find({ order: 'oldest', limit: 500 })
    await truth.records.put('search-index', name, { cursor: cursor!, after: letters[499]!.id })
    const asked: (string | undefined)[] = []
    const index = indexNow()
    const versions = index.versions.bind(index)
    index.versions = (after, last) => {
      asked.push(after)
      return versions(after, last)
    }
    const store = follow(truth, index, { clock })
    opened.push(store)
    await store.open()
    await store.caughtUp()
    const [middle, end] = [letters[499]!.id, letters[999]!.id]
    assert.deepEqual(asked, [middle, end, undefined, middle, end], 'the rest, and then all')
    await indices.refresh()
    assert.equal(await indices.count('search'), 1100)
  })

  it('is created by the option search of a queue', async () => {
    const url = new URL(server.url)
    const search = `opensearch://${url.host}/${indices.prefix}`
    const queue = await DeadLetterQueue.open('memory:', { search })
    const { id } = await queue.enqueue({ type: 'wheels', payload: 1 }, new Error('a bent spoke'))
    await vi.waitFor(async () => {
      await indices.refresh()
      const found = await queue.search('bent spoke')
      assert.deepEqual(
        found.map((letter) => letter.id),
        [id],
      )
    }, patience)
    await queue.close()
    const plain = await DeadLetterQueue.open('memory:')
    await assert.rejects(plain.search('bent'), { code: 'INVALID_CONFIG' })
    await plain.close()
  })
})
