import { afterAll } from 'vitest'
import { fakeClock } from '../../../src/testing/index.ts'
import { backend } from '../../servers/servers.ts'
import { Indices } from '../../stores/opensearch/opensearch-bench.ts'
import { missing as noPostgres, openPostgresBench } from '../../stores/postgres/postgres-bench.ts'
import { openRedisBench, single as redisServer } from '../../stores/redis/redis-bench.ts'
import { openSqliteBench } from '../../stores/sqlite/sqlite-bench.ts'
import { runCopy, type Place } from './run-copy.ts'

const searchServer = backend('opensearch')
const indices = new Indices(searchServer.url)
afterAll(() => (searchServer.missing ? undefined : indices.remove()))

const sqlite: Place = { kind: 'sqlite', open: () => openSqliteBench() }
const postgres: Place = { kind: 'postgres', open: () => openPostgresBench(fakeClock()) }
const redis: Place = { kind: 'redis', open: () => openRedisBench() }
const opensearch: Place = {
  kind: 'opensearch',
  slow: true,
  open: () => indices.open(),
}

/** Each store as a source and as a target, in a round. */
const pairs: [from: Place, to: Place, missing: string | undefined][] = [
  [sqlite, postgres, noPostgres],
  [postgres, redis, noPostgres ?? redisServer.missing],
  [redis, opensearch, redisServer.missing ?? searchServer.missing],
  [opensearch, sqlite, searchServer.missing],
]
for (const [from, to, missing] of pairs) runCopy(from, to, { missing, inShort: true })
