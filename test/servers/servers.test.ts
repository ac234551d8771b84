import { Client } from 'pg'
import { createClient, createCluster } from 'redis'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { opensearchPlace, postgresPlace, redisClusterPlace, redisPlace } from './places.ts'
import { backend, freshName } from './servers.ts'

describe('a backend', () => {
  const variable = 'REDRIVE_TEST_POSTGRES_URL'
  let before: string | undefined
  beforeEach(() => {
    before = process.env[variable]
  })
  afterEach(() => {
    if (before === undefined) delete process.env[variable]
    else process.env[variable] = before
  })

  it('is the server in the environment, if set', () => {
    process.env[variable] = 'postgres://elsewhere/db'
    expect(backend('postgres')).toEqual({ url: 'postgres://elsewhere/db' })
  })

  it('has a URL, or a reason why it is missing', () => {
    delete process.env[variable]
    const { url, missing } = backend('postgres')
    expect(url === '').toBe(missing !== undefined)
  })
})

it('names are unique', () => {
  const names = Array.from({ length: 100 }, freshName)
  expect(new Set(names).size).toBe(100)
  expect(names.filter((name) => !/^[a-z][a-z0-9_]{1,40}$/.test(name))).toEqual([])
})

const postgres = backend('postgres')
describe.skipIf(postgres.missing)('PostgreSQL', () => {
  const ask = async (text: string): Promise<unknown[]> => {
    const client = new Client({ connectionString: postgres.url })
    await client.connect()
    try {
      return (await client.query(text)).rows
    } finally {
      await client.end()
    }
  }

  it('clearing a place removes its schema and no other', async () => {
    const [mine, other] = [postgresPlace(postgres.url), postgresPlace(postgres.url)]
    for (const { name } of [mine, other]) await ask(`create schema ${name} create table a (b int)`)
    await mine.clear()
    await mine.clear()
    const schemas = await ask(
      `select nspname from pg_namespace where nspname in ('${mine.name}', '${other.name}')`,
    )
    expect(schemas).toEqual([{ nspname: other.name }])
    await other.clear()
  })
})

const bouncer = backend('pgbouncer')
describe.skipIf(bouncer.missing)('PgBouncer', () => {
  it('pools connections by transaction: it serves more clients than it has connections', async () => {
    const clients = Array.from({ length: 25 }, () => new Client({ connectionString: bouncer.url }))
    try {
      for (const client of clients) {
        await client.connect()
        expect((await client.query('select 1 as n')).rows).toEqual([{ n: 1 }])
      }
    } finally {
      await Promise.all(clients.map((client) => client.end()))
    }
  })
})

const redis = backend('redis')
describe.skipIf(redis.missing)('Redis', () => {
  it('clearing a place removes its keys and no others', async () => {
    const [mine, other] = [redisPlace(redis.url), redisPlace(redis.url)]
    const client = createClient({ url: redis.url })
    await client.connect()
    const keys = [`${mine.name}:a`, `x:{${mine.name}}:b`, `${other.name}:a`]
    for (const key of keys) await client.set(key, '1')
    await mine.clear()
    expect(await Promise.all(keys.map((key) => client.exists(key)))).toEqual([0, 0, 1])
    await other.clear()
    client.destroy()
  })
})

const redisCluster = backend('redis-cluster')
describe.skipIf(redisCluster.missing)('a Redis cluster', () => {
  it('has three masters, and a cleared place has no key on any of them', async () => {
    const place = redisClusterPlace(redisCluster.url)
    const cluster = createCluster({ rootNodes: [{ url: redisCluster.url }] })
    await cluster.connect()
    expect(cluster.masters).toHaveLength(3)
    const keys = Array.from({ length: 30 }, (_, index) => `${place.name}:${index}`)
    for (const key of keys) await cluster.set(key, '1')
    await place.clear()
    expect(await Promise.all(keys.map((key) => cluster.exists(key)))).toEqual(keys.map(() => 0))
    cluster.destroy()
  })
})

const opensearch = backend('opensearch')
describe.skipIf(opensearch.missing)('OpenSearch', () => {
  it('finds written documents; a cleared place has no index', async () => {
    const place = opensearchPlace(opensearch.url)
    const call = async (method: string, path: string, body?: unknown): Promise<unknown> => {
      const answer = await fetch(new URL(path, opensearch.url), {
        method,
        headers: { 'content-type': 'application/json' },
        ...(body === undefined ? {} : { body: JSON.stringify(body) }),
      })
      return answer.json()
    }
    await call('PUT', `${place.name}-a/_doc/1?refresh=true`, { word: 'letter' })
    const found = await call('POST', `${place.name}-a/_search`, {
      query: { match: { word: 'letter' } },
    })
    expect(found).toMatchObject({ hits: { total: { value: 1 } } })
    await place.clear()
    await place.clear()
    expect(await call('GET', `_cat/indices/${place.name}*?format=json`)).toEqual([])
  })
})
