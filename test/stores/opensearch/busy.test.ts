import assert from 'node:assert/strict'
import { afterAll, afterEach, beforeAll, describe, it } from 'vitest'
import { resolve } from '../../../src/letter/moves.ts'
import { openSearchStore, type OpenSearchStore } from '../../../src/stores/opensearch/opensearch.ts'
import { aLetter, fakeClock } from '../../../src/testing/index.ts'
import { backend } from '../../servers/servers.ts'
import { Front } from './front.ts'
import { pausing } from '../bench.ts'
import { request, Indices } from './opensearch-bench.ts'

const server = backend('opensearch')
const codeOf = (error: unknown): unknown => (error as { code?: unknown }).code

// The busy server is a small proxy of our own in front of the real one that rejects requests.
describe.skipIf(server.missing)('a busy or distant server', () => {
  const indices = new Indices(server.url)
  const front = new Front(server.url)
  const clock = fakeClock()
  let store: OpenSearchStore

  beforeAll(async () => {
    const url = await front.open()
    store = openSearchStore({
      url,
      prefix: indices.prefix,
      clock: pausing(clock),
      client: { requestTimeout: 1000 },
    })
    await store.open()
  })
  afterEach(() => {
    front.fate = () => 'pass'
    front.count = 0
  })
  afterAll(async () => {
    await store.close()
    await front.close()
    await indices.remove()
  })

  it.each([429, 503])('is requested again after %i', async (status) => {
    front.fate = (count) => (count <= 2 ? status : 'pass')
    const letter = aLetter()
    assert.deepEqual(await store.add([letter]), [{ kind: 'added' }])
    assert.equal((await store.get([letter.id])).length, 1)
  })

  it('is given up after a few attempts', async () => {
    front.fate = () => 429
    await assert.rejects(store.get(['a']), (error) => {
      assert.equal(codeOf(error), 'STORE_UNAVAILABLE')
      assert.match((error as Error).message, /too busy/)
      return true
    })
    assert.equal(front.count, 6)
  })

  it('is not waited for when it does not answer', async () => {
    front.fate = () => 'hang'
    await assert.rejects(store.get(['a']), (error) => codeOf(error) === 'STORE_UNAVAILABLE')
  })

  it('does not make a letter a duplicate of itself when an answer is lost', async () => {
    let lost = 0
    front.fate = (_, path) =>
      path.includes('-letters-writes/_bulk') && lost++ === 0 ? 'lose' : 'pass'
    const letter = aLetter()
    assert.deepEqual(await store.add([letter]), [{ kind: 'added' }])
  })

  it('does not make a change conflict with itself when an answer is lost', async () => {
    const letter = aLetter()
    await store.add([letter])
    let lost = 0
    front.fate = (_, path) =>
      path.includes('-letters-writes/_bulk') && lost++ === 0 ? 'lose' : 'pass'
    const change = resolve(letter, { at: letter.updatedAt, actor: 'ada', guard: 'version' })
    assert.deepEqual(await store.apply([change]), ['written'])
    assert.equal((await store.get([letter.id]))[0]!.version, 2)
  })

  it('with a small request limit gets one letter at a time, and rejects one that is too large', async () => {
    const [large, small] = [aLetter(), aLetter()]
    let sent = 0
    front.fate = (_, path) => (path.includes('-letters-writes/_bulk') && sent++ < 2 ? 413 : 'pass')
    const [refused, kept] = await Promise.allSettled([store.add([large]), store.add([small])])
    assert.equal(codeOf((refused as PromiseRejectedResult).reason), 'TOO_LARGE')
    assert.deepEqual(kept, { status: 'fulfilled', value: [{ kind: 'added' }] })
  })

  it('keeps counts for later when only they cannot be written', async () => {
    const before = (await store.totals()).find((one) => one.action === 'capture')?.count ?? 0
    front.fate = (_, path) => (path.includes('-books-writes/_bulk') ? 500 : 'pass')
    assert.deepEqual(await store.add([aLetter()]), [{ kind: 'added' }])
    front.fate = () => 'pass'
    const after = (await store.totals()).find((one) => one.action === 'capture')?.count
    assert.equal(after, before + 1)
  })

  it('with an unreadable shard does not report that a document is missing', async () => {
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

  it('is reported by health, which never rejects', async () => {
    front.fate = () => 'cut'
    const health = await store.health()
    assert.equal(health.ok, false)
    assert.match(health.problems[0]!, /cannot be reached/)
  })
})
