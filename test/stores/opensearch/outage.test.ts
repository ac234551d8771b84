import assert from 'node:assert/strict'
import { afterAll, afterEach, beforeAll, describe, it } from 'vitest'
import { resolve } from '../../../src/letter/moves.ts'
import { openSearchStore, type OpenSearchStore } from '../../../src/stores/opensearch/opensearch.ts'
import { aLetter, fakeClock } from '../../../src/testing/index.ts'
import { backend } from '../../servers/servers.ts'
import { FaultyProxy } from './faulty-proxy.ts'
import { pausing } from '../bench.ts'
import { request, Indices } from './opensearch-bench.ts'

const server = backend('opensearch')
const codeOf = (error: unknown): unknown => (error as { code?: unknown }).code

// A proxy to the real server acts as the busy or unreachable server.
describe.skipIf(server.missing)('openSearchStore with a busy or unreachable server', () => {
  const indices = new Indices(server.url)
  const proxy = new FaultyProxy(server.url)
  const clock = fakeClock()
  let url: string
  let store: OpenSearchStore

  const createStore = (requestTimeout = 30_000): OpenSearchStore =>
    openSearchStore({
      url,
      prefix: indices.prefix,
      clock: pausing(clock),
      client: { requestTimeout },
    })

  beforeAll(async () => {
    url = await proxy.open()
    store = createStore()
    await store.open()
  })
  afterEach(() => {
    proxy.actionFor = () => 'pass'
    proxy.count = 0
  })
  afterAll(async () => {
    await store.close()
    await proxy.close()
    await indices.remove()
  })

  it.each([429, 503])('repeats a request after status %i', async (status) => {
    proxy.actionFor = (count) => (count <= 2 ? status : 'pass')
    const letter = aLetter()
    assert.deepEqual(await store.add([letter]), [{ kind: 'added' }])
    assert.equal((await store.get([letter.id])).length, 1)
  })

  it('gives up after a few attempts', async () => {
    proxy.actionFor = () => 429
    await assert.rejects(store.get(['a']), (error) => {
      assert.equal(codeOf(error), 'STORE_UNAVAILABLE')
      assert.match((error as Error).message, /too busy/)
      return true
    })
    assert.equal(proxy.count, 6)
  })

  it('fails when the server does not answer in time', async () => {
    const impatient = createStore(3000)
    await impatient.open()
    proxy.actionFor = () => 'hang'
    await assert.rejects(impatient.get(['a']), (error) => codeOf(error) === 'STORE_UNAVAILABLE')
    await impatient.close()
  })

  it('does not report a letter as a duplicate of itself when a response is lost', async () => {
    let lost = 0
    proxy.actionFor = (_, path) =>
      path.includes('-letters-writes/_bulk') && lost++ === 0 ? 'lose' : 'pass'
    const letter = aLetter()
    assert.deepEqual(await store.add([letter]), [{ kind: 'added' }])
  })

  it('does not report a change as a conflict with itself when a response is lost', async () => {
    const letter = aLetter()
    await store.add([letter])
    let lost = 0
    proxy.actionFor = (_, path) =>
      path.includes('-letters-writes/_bulk') && lost++ === 0 ? 'lose' : 'pass'
    const change = resolve(letter, { at: letter.updatedAt, actor: 'ada', guard: 'version' })
    assert.deepEqual(await store.apply([change]), ['written'])
    assert.equal((await store.get([letter.id]))[0]!.version, 2)
  })

  it('sends letters one by one when a request is too large, and rejects only a letter that is too large itself', async () => {
    const [large, small] = [aLetter(), aLetter()]
    let sent = 0
    proxy.actionFor = (_, path) =>
      path.includes('-letters-writes/_bulk') && sent++ < 2 ? 413 : 'pass'
    const [rejected, added] = await Promise.allSettled([store.add([large]), store.add([small])])
    assert.equal(codeOf((rejected as PromiseRejectedResult).reason), 'TOO_LARGE')
    assert.deepEqual(added, { status: 'fulfilled', value: [{ kind: 'added' }] })
  })

  it('writes the totals later when only the totals cannot be written', async () => {
    const before = (await store.totals()).find(({ action }) => action === 'capture')?.count ?? 0
    proxy.actionFor = (_, path) => (path.includes('-books-writes/_bulk') ? 500 : 'pass')
    assert.deepEqual(await store.add([aLetter()]), [{ kind: 'added' }])
    proxy.actionFor = () => 'pass'
    const after = (await store.totals()).find(({ action }) => action === 'capture')?.count
    assert.equal(after, before + 1)
  })

  it('does not report a document as missing when a shard cannot be read', async () => {
    const letter = aLetter({ dedupeKey: 'a key' })
    await store.add([letter])
    await store.records.put('kind', 'name', 1)
    const change = resolve(letter, { at: letter.updatedAt, actor: 'ada', guard: 'version' })
    const index = (name: string): string => `/${indices.prefix}-${name}`
    for (const name of ['letters', 'records'])
      await request(server.url, 'POST', `${index(name)}/_close`)
    try {
      for (const call of [
        () => store.get([letter.id]),
        () => store.original(letter.id),
        () => store.apply([change]),
        () => store.renew([{ id: letter.id, epoch: 1, worker: 'w' }], 1000),
        () => store.records.get('kind', 'name'),
        () => store.add([aLetter()]),
        () => store.add([aLetter({ dedupeKey: 'a key' })]),
      ])
        await assert.rejects(call, (error) => codeOf(error) === 'STORE_UNAVAILABLE')
    } finally {
      for (const name of ['letters', 'records'])
        await request(server.url, 'POST', `${index(name)}/_open?wait_for_active_shards=1`)
    }
    assert.deepEqual(await store.get([letter.id]), [letter])
  })

  it('reports an unreachable server in health, which never rejects', async () => {
    proxy.actionFor = () => 'cut'
    const health = await store.health()
    assert.equal(health.ok, false)
    assert.match(health.problems[0]!, /cannot be reached/)
  })
})
