import assert from 'node:assert/strict'
import { afterEach, describe, it } from 'vitest'
import { openSearchStore, type OpenSearchStore } from '../../../src/stores/opensearch/opensearch.ts'
import { aLetter } from '../../../src/testing/index.ts'
import { backend } from '../../servers/servers.ts'
import { request, Indices } from './opensearch-bench.ts'

const server = backend('opensearch')
const codeOf = (error: unknown): unknown => (error as { code?: unknown }).code

describe('the URL of openSearchStore', () => {
  it('is rejected with the reason if invalid', () => {
    for (const url of ['nonsense', 'opensearch://', 'ftp://host', 'opensearch://host/UPPER'])
      assert.throws(
        () => openSearchStore({ url }),
        (error) => codeOf(error) === 'INVALID_INPUT',
      )
    assert.throws(
      () => openSearchStore({ url: 'opensearch://host/a?shards=3' }),
      /unknown key "shards" in OpenSearch URL/,
    )
    assert.throws(
      () => openSearchStore({ url: 'opensearch://host/a?alias=UPPER' }),
      /alias must consist of/,
    )
  })

  it('of an unreachable server fails the open with an error that hides the password', async () => {
    const store = openSearchStore({ url: 'opensearch://ada:sesame@127.0.0.1:1/x' })
    await assert.rejects(store.open(), (error) => {
      assert.equal(codeOf(error), 'STORE_UNAVAILABLE')
      assert.doesNotMatch((error as Error).message, /sesame/)
      assert.equal((error as Error).cause, undefined)
      return true
    })
    await store.close()
  })
})

describe.skipIf(server.missing)('open', () => {
  const created: Indices[] = []
  const createIndices = (): Indices => {
    const indices = new Indices(server.url)
    created.push(indices)
    return indices
  }
  const createStore = ({ url, prefix }: Indices) => openSearchStore({ url, prefix })
  const expectUnsafe = async (indices: Indices, reason: RegExp): Promise<void> => {
    const store = createStore(indices)
    await assert.rejects(store.open(), (error) => {
      assert.equal(codeOf(error), 'STORE_UNSAFE')
      assert.match((error as Error).message, reason)
      return true
    })
    await store.close()
  }

  afterEach(async () => {
    for (const indices of created.splice(0)) await indices.remove()
  })

  const readAliases = async ({ prefix }: Indices): Promise<string[]> => {
    type Aliases = Record<string, { aliases: object }>
    const aliases = await request<Aliases>(server.url, 'GET', `/${prefix}-letters/_alias`)
    return Object.keys(aliases[`${prefix}-letters`]!.aliases).toSorted()
  }

  it.each([
    ['', {}, ['mahavishnu_dlq']],
    ['?alias=off', {}, []],
    ['', { alias: false as const }, []],
  ])('adds the alias: %j %j', async (query, options, names) => {
    const indices = createIndices()
    const store = openSearchStore({ url: `${indices.url}/${indices.prefix}${query}`, ...options })
    await store.open()
    assert.deepEqual(
      await readAliases(indices),
      [...names, `${indices.prefix}-letters-writes`].toSorted(),
    )
    await store.close()
  })

  it('adds a configured alias, which hides drafts', async () => {
    const indices = createIndices()
    const { url, prefix } = indices
    const alias = `${prefix}-failed`
    const store = openSearchStore({ url, prefix, alias })
    await store.open()
    await store.add([aLetter()])
    await request(url, 'PUT', `/${prefix}-letters/_doc/draft?refresh=true`, { draft_ms: 1 })
    await indices.refresh()
    const { count } = await request<{ count: number }>(url, 'GET', `/${alias}/_count`)
    assert.equal(count, 1)
    assert.equal((await store.health()).checks['alias'], alias)
    await store.close()
  })

  it('does not change an index with the name of the alias', async () => {
    const indices = createIndices()
    const { url, prefix } = indices
    const alias = `${prefix}-taken`
    await request(url, 'PUT', `/${alias}/_doc/1?refresh=true`, { mine: true })
    const store = openSearchStore({ url, prefix, alias })
    await store.open()
    const { count } = await request<{ count: number }>(url, 'GET', `/${alias}/_count`)
    assert.equal(count, 1)
    assert.equal((await store.health()).checks['alias'], `${alias} belongs to another index`)
    assert.equal((await store.health()).ok, true)
    await store.close()
  })

  it('creates the indices, from several processes at once', async () => {
    const indices = createIndices()
    const stores = [1, 2, 3, 4].map(() => createStore(indices))
    await Promise.all(stores.map((store) => store.open()))
    const letter = aLetter()
    await stores[0]!.add([letter])
    assert.deepEqual((await stores[3]!.get([letter.id]))[0]!.id, letter.id)
    await Promise.all(stores.map((store) => store.close()))
  })

  it('keeps letters, totals, leases and records across a restart', async () => {
    const indices = createIndices()
    const first = createStore(indices)
    await first.open()
    const letters = [aLetter({ dedupeKey: 'k' }), aLetter({ state: 'parked' }), aLetter()]
    await first.add(letters)
    const { letters: claimed } = await first.claim({ worker: 'w', limit: 1, leaseMs: 60_000 })
    await first.records.put('kind', 'id', { a: 1 })
    const [stored, totals] = [await first.get(letters.map(({ id }) => id)), await first.totals()]
    await first.close()
    const second = createStore(indices)
    await second.open()
    assert.deepEqual(await second.get(letters.map(({ id }) => id)), stored)
    assert.deepEqual(await second.totals(), totals)
    assert.equal((await second.get([claimed[0]!.id]))[0]!.lease!.worker, 'w')
    assert.equal((await second.find({})).items.length, 3)
    assert.deepEqual((await second.records.get('kind', 'id'))!.value, { a: 1 })
    const [again] = await second.add([aLetter({ dedupeKey: 'k' })])
    assert.equal(again!.kind, 'duplicate')
    await second.close()
  })

  it('rejects an index of a newer version', async () => {
    const indices = createIndices()
    const mappings = { _meta: { redrive: 99 } }
    await request(server.url, 'PUT', `/${indices.prefix}-letters`, { mappings })
    await expectUnsafe(indices, /newer version/)
  })

  it('rejects an index that does not belong to Redrive', async () => {
    const indices = createIndices()
    await request(server.url, 'PUT', `/${indices.prefix}-letters`, {})
    await expectUnsafe(indices, /does not belong to Redrive/)
  })

  it('rejects an index that may lose acknowledged writes', async () => {
    const indices = createIndices()
    const settings = { index: { translog: { durability: 'async' } } }
    const mappings = { _meta: { redrive: 1 } }
    await request(server.url, 'PUT', `/${indices.prefix}-records`, { mappings, settings })
    await expectUnsafe(indices, /durability/)
  })

  const listIndices = async ({ prefix }: Indices): Promise<string[]> => {
    const path = `/${prefix}-*?expand_wildcards=all`
    return Object.keys(await request<object>(server.url, 'GET', path)).sort()
  }

  it.each([
    ['letters', (store: OpenSearchStore) => store.add([aLetter()])],
    ['books', (store: OpenSearchStore) => store.add([aLetter({ dedupeKey: 'k' })])],
    ['records', (store: OpenSearchStore) => store.records.put('kind', 'id', 1)],
  ] as const)('does not let the server recreate the deleted index of %s', async (name, write) => {
    const indices = createIndices()
    const store = createStore(indices)
    await store.open()
    await write(store)
    assert.deepEqual((await store.health()).problems, [])
    const all = await listIndices(indices)
    const index = `${indices.prefix}-${name}`
    await request(server.url, 'DELETE', `/${index}`)
    await assert.rejects(write(store), (error) => {
      assert.equal(codeOf(error), 'STORE_UNAVAILABLE')
      assert.match((error as Error).message, /deleted while in use, open the store again/)
      return true
    })
    assert.deepEqual(
      await listIndices(indices),
      all.filter((name) => name !== index),
    )
    const { ok, problems } = await store.health()
    assert.equal(ok, false)
    assert.match(problems.join(), new RegExp(`${index} does not exist`))
    await store.close()
    const again = createStore(indices)
    await again.open()
    await write(again)
    assert.deepEqual((await again.health()).problems, [])
    await again.close()
  })

  it('reports a replaced index in health', async () => {
    const indices = createIndices()
    const store = createStore(indices)
    await store.open()
    const index = `/${indices.prefix}-letters`
    await request(server.url, 'DELETE', index)
    await request(server.url, 'PUT', index, {})
    await assert.rejects(store.add([aLetter()]), (error) => codeOf(error) === 'STORE_UNAVAILABLE')
    assert.match((await store.health()).problems.join(), /does not belong to Redrive/)
    await request(server.url, 'DELETE', index)
    await request(server.url, 'PUT', index, { mappings: { _meta: { redrive: 1 } } })
    assert.match((await store.health()).problems.join(), /not the index that was opened/)
    await store.close()
  })

  it('accepts an index without an alias for writes, and an index that is addressed by an alias', async () => {
    const indices = createIndices()
    const { prefix } = indices
    const mappings = { dynamic: false, _meta: { redrive: 1 } }
    await request(server.url, 'PUT', `/${prefix}-records`, { mappings })
    const aliases = { [`${prefix}-letters`]: {} }
    await request(server.url, 'PUT', `/${prefix}-moved-letters`, { mappings, aliases })
    const store = createStore(indices)
    await store.open()
    const letter = aLetter()
    await store.add([letter])
    await store.records.put('kind', 'id', 1)
    assert.equal((await store.get([letter.id])).length, 1)
    assert.equal((await store.records.get('kind', 'id'))!.value, 1)
    assert.deepEqual((await store.health()).problems, [])
    await store.close()
  })
})
