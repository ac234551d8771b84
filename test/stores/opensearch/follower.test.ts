import assert from 'node:assert/strict'
import { join } from 'node:path'
import { afterAll, afterEach, describe, it } from 'vitest'
import { passThrough } from '../../../src/stores/pass-through.ts'
import { resolve } from '../../../src/letter/moves.ts'
import type { DriftReport, Store } from '../../../src/store.ts'
import { DeadLetterQueue } from '../../../src/index.ts'
import { memoryStore } from '../../../src/stores/memory/memory.ts'
import { follow, type FollowedStore } from '../../../src/stores/opensearch/follower.ts'
import { openSearchIndex, type SearchIndex } from '../../../src/stores/opensearch/search-index.ts'
import { sqliteStore } from '../../../src/stores/sqlite/sqlite.ts'
import { aLetter, fakeClock } from '../../../src/testing/index.ts'
import {
  checksOf,
  runStoreContract,
  type ClosableBench,
} from '../../contract/run-store-contract.ts'
import { backend } from '../../servers/servers.ts'
import { temporaryDirectory } from '../sqlite/sqlite-bench.ts'
import { FaultyProxy } from './faulty-proxy.ts'
import { pausing } from '../bench.ts'
import { request, Indices } from './opensearch-bench.ts'
import { waitFor } from '../../wait-for.ts'

const server = backend('opensearch')
const waitOptions = { timeout: 20_000 }

/** An index that accepts everything and finds nothing. */
const emptyIndex: SearchIndex = {
  name: 'empty',
  open: async () => {},
  close: async () => {},
  feed: async () => [],
  drop: async () => {},
  versions: async () => new Map(),
  search: async () => [],
}

const openFollowed = async (): Promise<ClosableBench> => {
  const clock = fakeClock()
  const store = follow(memoryStore({ clock }), emptyIndex, { clock })
  await store.open()
  // The first full comparison writes a record, which the contract does not expect.
  await store.caughtUp()
  await store.records.remove('search-index', 'empty')
  return {
    store,
    now: () => clock.now(),
    advance: (ms) => clock.advance(ms),
    close: () => store.close(),
  }
}

// The index is fed with what these change. Reads go to the store alone.
runStoreContract('a followed store', openFollowed, {
  inShort: checksOf('lifecycle', 'add', 'apply', 'applyAll', 'remove', 'keep'),
})

it('a followed store has the optional methods of its store, and no others', async () => {
  const report = { examples: ['one'] }
  const store = passThrough(memoryStore(), { fsck: async () => report as DriftReport })
  const followed = follow(store, emptyIndex)
  assert.equal(await followed.fsck?.(), report)
  assert.equal('within' in followed, false)
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
  const createIndex = (url = server.url): SearchIndex =>
    openSearchIndex({ url, prefix: indices.prefix, clock: pausing(clock) })
  const followStore = (store: Store, url?: string): FollowedStore => {
    const followed = follow(store, createIndex(url), { clock })
    opened.push(followed)
    return followed
  }
  const byPerson = { at: '2026-01-02T00:00:00.000Z', actor: 'ada', guard: 'version' } as const
  const letterWithMessage = (message: string) =>
    aLetter({
      failure: { name: 'E', message, causes: [], at: '2026-01-01T00:00:00.000Z' },
    })
  const searchIds = async (store: FollowedStore, text: string): Promise<string[]> => {
    await store.caughtUp()
    await indices.refresh()
    return (await store.search(text)).map(({ id }) => id)
  }

  it('finds added letters as the store has them, and not removed ones', async () => {
    const store = followStore(memoryStore({ clock }))
    await store.open()
    const [changed, removed] = [
      letterWithMessage('a crooked wheel'),
      letterWithMessage('another crooked wheel'),
    ]
    await store.add([changed, removed])
    assert.deepEqual((await searchIds(store, 'crooked')).toSorted(), [changed.id, removed.id])
    await store.remove({ ids: [removed.id] })
    await store.apply([resolve(changed, byPerson)])
    assert.deepEqual(await searchIds(store, 'wheel crooked'), [changed.id])
    const [letter] = await store.search('crooked')
    assert.equal(letter!.state, 'resolved')
    assert.deepEqual(await store.search('crooked', { among: { state: 'pending' } }), [])
  })

  it('finds no letters before the index is created', async () => {
    const store = followStore(memoryStore({ clock }))
    await store.open()
    assert.deepEqual(await store.search('crooked'), [])
  })

  it('drops letters that were removed by a filter', async () => {
    const store = followStore(memoryStore({ clock }))
    await store.open()
    await store.add([letterWithMessage('one crooked'), letterWithMessage('two crooked')])
    assert.equal((await searchIds(store, 'crooked')).length, 2)
    await store.remove({ queue: 'orders' })
    assert.deepEqual(await searchIds(store, 'crooked'), [])
    await indices.refresh()
    assert.equal(await indices.count('search'), 0)
  })

  it('never blocks the store while the index is unreachable, reports the outage, and catches up', async () => {
    const proxy = new FaultyProxy(server.url)
    const store = followStore(memoryStore({ clock }), await proxy.open())
    await store.open()
    await store.caughtUp()
    proxy.actionFor = () => 'cut'
    const letter = letterWithMessage('while away')
    assert.deepEqual(await store.add([letter]), [{ kind: 'added' }])
    const health = await waitFor(async () => {
      const current = await store.health()
      assert.match(current.problems[0] ?? '', /search: .*cannot be reached/)
      return current
    }, waitOptions)
    assert.equal(health.ok, true)
    assert.match(health.checks['search']!, /1 changes pending/)
    proxy.actionFor = () => 'pass'
    const caughtUp = store.caughtUp()
    await clock.advance(120_000)
    await caughtUp
    assert.deepEqual(await searchIds(store, 'away'), [letter.id])
    assert.deepEqual((await store.health()).problems, [])
    await store.close()
    await proxy.close()
  })

  it('finds missed changes after a restart, in both directions', async () => {
    const folder = await temporaryDirectory()
    const path = join(folder.path, 'letters.db')
    const first = followStore(sqliteStore({ path, clock }))
    await first.open()
    const [changed, removed] = [letterWithMessage('missed one'), letterWithMessage('missed two')]
    await first.add([changed, removed])
    await first.caughtUp()
    await first.close()
    const unfollowed = sqliteStore({ path, clock })
    await unfollowed.open()
    const added = letterWithMessage('missed three')
    await unfollowed.add([added])
    await unfollowed.remove({ ids: [removed.id] })
    await unfollowed.apply([resolve(changed, byPerson)])
    await unfollowed.close()
    const second = followStore(sqliteStore({ path, clock }))
    await second.open()
    assert.deepEqual((await searchIds(second, 'missed')).toSorted(), [changed.id, added.id])
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
    const index = createIndex()
    await index.open()
    const letter = letterWithMessage('the older')
    const newer = { ...letter, version: 5, failure: { ...letter.failure, message: 'the newer' } }
    await index.feed([newer])
    assert.deepEqual(await index.feed([letter]), [])
    assert.deepEqual(await index.versions(undefined, undefined), new Map([[letter.id, 5]]))
    await index.close()
  })

  it('does not reject a letter because the index is closed', async () => {
    const index = createIndex()
    await index.open()
    await request(server.url, 'POST', `/${index.name}/_close`)
    try {
      await assert.rejects(index.feed([aLetter()]), { code: 'STORE_UNAVAILABLE' })
    } finally {
      await request(server.url, 'POST', `/${index.name}/_open?wait_for_active_shards=1`)
      await index.close()
    }
  })

  it('is recreated with the same mappings when it is deleted while in use', async () => {
    const store = followStore(memoryStore({ clock }))
    await store.open()
    await store.caughtUp()
    const index = `/${indices.prefix}-search`
    interface IndexInfo {
      mappings: object
    }
    const [before] = Object.values(
      await request<Record<string, IndexInfo>>(server.url, 'GET', index),
    )
    await request(server.url, 'DELETE', index)
    const letter = letterWithMessage('after the removal')
    await store.add([letter])
    await waitFor(async () => {
      const { problems } = await store.health()
      assert.match(problems[0] ?? '', /search: .*deleted while in use/)
    }, waitOptions)
    const caughtUp = store.caughtUp()
    await clock.advance(120_000)
    await caughtUp
    assert.deepEqual(await searchIds(store, 'removal'), [letter.id])
    const [after] = Object.values(
      await request<Record<string, IndexInfo>>(server.url, 'GET', index),
    )
    assert.deepEqual(after!.mappings, before!.mappings)
  })

  it('resumes its full comparison after a restart', async () => {
    const store = memoryStore({ clock })
    const letters = Array.from({ length: 1100 }, () => aLetter())
    await store.add(letters)
    const name = `${indices.prefix}-search`
    const { cursor } = await store.find({ order: 'oldest', limit: 500 })
    await store.records.put('search-index', name, { cursor: cursor!, after: letters[499]!.id })
    const starts: (string | undefined)[] = []
    const index = createIndex()
    const versions = index.versions.bind(index)
    index.versions = (after, last) => {
      starts.push(after)
      return versions(after, last)
    }
    const followed = follow(store, index, { clock })
    opened.push(followed)
    await followed.open()
    await followed.caughtUp()
    const [middle, end] = [letters[499]!.id, letters[999]!.id]
    assert.deepEqual(
      starts,
      [middle, end, undefined, middle, end],
      'the rest, then a whole comparison',
    )
    await indices.refresh()
    assert.equal(await indices.count('search'), 1100)
  })

  it('is created by the option search of a queue', async () => {
    const url = new URL(server.url)
    const search = `opensearch://${url.host}/${indices.prefix}`
    const queue = await DeadLetterQueue.open('memory:', { search })
    const { id } = await queue.enqueue({ type: 'wheels', payload: 1 }, new Error('a bent spoke'))
    await waitFor(async () => {
      await indices.refresh()
      const letters = await queue.search('bent spoke')
      assert.deepEqual(
        letters.map((letter) => letter.id),
        [id],
      )
    }, waitOptions)
    await queue.close()
    const plain = await DeadLetterQueue.open('memory:')
    await assert.rejects(plain.search('bent'), { code: 'INVALID_CONFIG' })
    await plain.close()
  })
})
