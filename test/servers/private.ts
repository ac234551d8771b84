// A server for one test file alone, to be stopped, killed and paused while a store talks to it.
import { mkdirSync } from 'node:fs'
import { Client } from 'pg'
import {
  createDatabase,
  lacksPostgres,
  postgresCommand,
  postgresUrl,
} from '../../scripts/servers/postgres.ts'
import {
  askRedis,
  lacksRedis,
  redisCommand,
  type RedisSettings,
} from '../../scripts/servers/redis.ts'
import { begin, type PrivateServer } from './control.ts'

/** Why there can be no private server on this machine, or nothing. Use with `describe.skipIf`. */
export const lacksPrivate = { postgres: lacksPostgres, redis: lacksRedis }

/** PostgreSQL, as durable as the shared one unless `settings` say otherwise. */
export function privatePostgres(
  settings: Readonly<Record<string, string>> = {},
): Promise<PrivateServer> {
  return begin({
    prepare: createDatabase,
    command: (port, folder) => postgresCommand(port, folder, settings),
    folderOf: async (port) => {
      const client = new Client({
        connectionString: postgresUrl(port),
        connectionTimeoutMillis: 5000,
      })
      client.on('error', () => {})
      try {
        await client.connect()
        const { rows } = await client.query<{ data_directory: string }>('show data_directory')
        return rows[0]!.data_directory
      } finally {
        await client.end()
      }
    },
    url: postgresUrl,
    signals: { smart: 'SIGTERM', fast: 'SIGINT', immediate: 'SIGQUIT' },
  })
}

/** Redis, as durable as the shared one unless `settings` say otherwise; `replicaOf` makes it follow another. */
export function privateRedis(
  settings: RedisSettings = {},
  replicaOf?: PrivateServer,
): Promise<PrivateServer> {
  const following = replicaOf ? { replicaof: ['127.0.0.1', String(replicaOf.port)] } : {}
  return begin({
    prepare: (folder) => mkdirSync(folder),
    command: (port, folder) => redisCommand(port, folder, { ...settings, ...following }),
    folderOf: async (port) => (await askRedis(port, 'CONFIG GET dir')).split('\r\n')[4] ?? '',
    url: (port) => `redis://127.0.0.1:${port}`,
    signals: { smart: 'SIGTERM', fast: 'SIGTERM', immediate: 'SIGTERM' },
  })
}
