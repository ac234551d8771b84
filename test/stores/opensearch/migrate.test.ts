import assert from 'node:assert/strict'
import { afterEach, beforeEach, describe, it } from 'vitest'
import { letterFields } from '../../../src/stores/opensearch/mapping.ts'
import { rewriteOldDocuments } from '../../../src/stores/opensearch/migrate.ts'
import {
  follow,
  openSearchIndex,
  openSearchStore,
} from '../../../src/stores/opensearch/opensearch.ts'
import { memoryStore } from '../../../src/stores/memory/memory.ts'
import { backend, freshName } from '../../servers/servers.ts'
import { findsBySource, sourcedLetters } from '../sourced-letters.ts'
import { request } from './opensearch-bench.ts'

const server = backend('opensearch')

const newFields = [
  'letter_id',
  'category',
  'severity',
  'source_kind',
  'source_id',
  'metadata_terms',
]

interface Raw {
  _id: string
  _version: number
  _source: Record<string, unknown>
}

describe.skipIf(server.missing)(rewriteOldDocuments.name, { timeout: 60_000 }, () => {
  let prefix: string
  beforeEach(() => {
    prefix = freshName()
  })
  afterEach(() => request(server.url, 'DELETE', `/${prefix}-*`))

  /** Recreates an index in format 1: without the new fields, in its mapping and its documents. */
  async function convertToFormat1(index: string): Promise<void> {
    await request(server.url, 'POST', `/${index}/_refresh`)
    const all = await request<{ hits: { hits: Raw[] } }>(server.url, 'POST', `/${index}/_search`, {
      size: 100,
      version: true,
    })
    await request(server.url, 'DELETE', `/${index}`)
    const properties = Object.fromEntries(
      Object.entries(letterFields).filter(([name]) => !newFields.includes(name)),
    )
    const word = { type: 'keyword', fields: { keyword: { type: 'keyword' } } }
    const created = await request(server.url, 'PUT', `/${index}`, {
      mappings: {
        dynamic: false,
        _meta: { redrive: 1 },
        properties: { ...properties, task_id: word },
      },
      settings: { index: { number_of_shards: 1, number_of_replicas: 0 } },
      aliases: { [`${index}-writes`]: { is_write_index: true } },
    })
    assert.deepEqual((created as { acknowledged?: boolean }).acknowledged, true)
    for (const { _id: id, _source: source, _version: version } of all.hits.hits) {
      const old: Record<string, unknown> = {
        ...source,
        task_id: source['letter_id'],
        error_category: source['category'],
      }
      for (const name of newFields) delete old[name]
      const path = `/${index}/_doc/${encodeURIComponent(id)}`
      const query = `?refresh=true&version=${version}&version_type=external`
      await request(server.url, 'PUT', `${path}${query}`, old)
    }
  }

  const readFormat = async (index: string): Promise<unknown> => {
    type Mapping = Record<string, { mappings: { _meta: { redrive: number } } }>
    const mapping = await request<Mapping>(server.url, 'GET', `/${index}/_mapping`)
    const { _meta: meta } = mapping[index]!.mappings
    return meta.redrive
  }

  it('makes letters of format 1 searchable by their source ids, and leaves them unchanged', async () => {
    const letters = sourcedLetters()
    const before = openSearchStore({ url: server.url, prefix, alias: false })
    await before.open()
    await before.add(letters)
    await before.close()
    await convertToFormat1(`${prefix}-letters`)
    const after = openSearchStore({ url: server.url, prefix, alias: false })
    await after.open()
    assert.deepEqual(await after.get(letters.map(({ id }) => id)), letters)
    await findsBySource(after, letters)
    assert.equal(await readFormat(`${prefix}-letters`), 2)
    assert.equal((await after.claim({ worker: 'w', limit: 10, leaseMs: 1000 })).letters.length, 6)
    await after.close()
  })

  it('is not needed for a search index, which is fed again', async () => {
    const store = memoryStore()
    const create = () => follow(store, openSearchIndex({ url: server.url, prefix, alias: false }))
    const before = create()
    await before.open()
    await before.add(sourcedLetters())
    await before.caughtUp()
    await convertToFormat1(`${prefix}-search`)
    const after = create()
    const orphan = { task_id: '00000000-0000-7000-8000-000000000000', status: 'pending' }
    await request(
      server.url,
      'PUT',
      `/${prefix}-search/_doc/${orphan.task_id}?refresh=true`,
      orphan,
    )
    await after.open()
    await after.caughtUp()
    await request(server.url, 'POST', `/${prefix}-search/_refresh`)
    assert.equal((await after.search('wf_abc123')).length, 1)
    const { count } = await request<{ count: number }>(
      server.url,
      'GET',
      `/${prefix}-search/_count`,
    )
    assert.equal(count, sourcedLetters().length)
    assert.equal(await readFormat(`${prefix}-search`), 2)
    await after.close()
    await before.close()
  })
})
