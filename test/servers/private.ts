// Private servers for one test file, which may stop, kill and pause them.
import { mkdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { Client } from 'pg'
import {
  createBroker,
  kafkaCommand,
  kafkaFolder,
  kafkaUrl,
  lacksKafka,
  type KafkaSettings,
} from '../../scripts/servers/kafka.ts'
import {
  requestNats,
  isNatsReady,
  lacksNats,
  natsCommand,
  natsUrl,
} from '../../scripts/servers/nats.ts'
import {
  createDatabase,
  lacksPostgres,
  postgresCommand,
  postgresUrl,
} from '../../scripts/servers/postgres.ts'
import {
  createNode,
  epmdCommand,
  greetRabbitmq,
  lacksRabbitmq,
  nodeName,
  rabbitmqCommand,
  rabbitmqUrl,
} from '../../scripts/servers/rabbitmq.ts'
import { until } from '../../scripts/servers/machine.ts'
import {
  sendRedisCommand,
  lacksRedis,
  redisCommand,
  type RedisSettings,
} from '../../scripts/servers/redis.ts'
import { begin, type PrivateServer } from './control.ts'

/**
 * Why a private server is unavailable; undefined if it is available. Use with `describe.skipIf`.
 */
export const lacksPrivate = {
  postgres: lacksPostgres,
  redis: lacksRedis,
  rabbitmq: lacksRabbitmq,
  nats: lacksNats,
  kafka: lacksKafka,
}

/** For servers with one shutdown mode. */
const inOrder = { smart: 'SIGTERM', fast: 'SIGTERM', immediate: 'SIGTERM' } as const

/** PostgreSQL, as durable as the shared one unless `settings` differ. */
export function privatePostgres(
  settings: Readonly<Record<string, string>> = {},
): Promise<PrivateServer> {
  return begin({
    prepare: createDatabase,
    command: ([port], folder) => postgresCommand(port!, folder, settings),
    isOurs: async ([port], folder) => {
      const client = new Client({
        connectionString: postgresUrl(port!),
        connectionTimeoutMillis: 5000,
      })
      client.on('error', () => {})
      try {
        await client.connect()
        const { rows } = await client.query<{ data_directory: string }>('show data_directory')
        return rows[0]?.data_directory === folder
      } finally {
        await client.end()
      }
    },
    url: postgresUrl,
    signals: { smart: 'SIGTERM', fast: 'SIGINT', immediate: 'SIGQUIT' },
  })
}

/** Redis, as durable as the shared one unless `settings` differ; `replicaOf` makes it a replica. */
export function privateRedis(
  settings: RedisSettings = {},
  replicaOf?: PrivateServer,
): Promise<PrivateServer> {
  const following = replicaOf ? { replicaof: ['127.0.0.1', String(replicaOf.port)] } : {}
  return begin({
    prepare: (folder) => mkdirSync(folder),
    command: ([port], folder) => redisCommand(port!, folder, { ...settings, ...following }),
    isOurs: async ([port], folder) =>
      (await sendRedisCommand(port!, 'CONFIG GET dir')).split('\r\n')[4] === folder,
    url: (port) => `redis://127.0.0.1:${port}`,
    signals: inOrder,
  })
}

/**
 * RabbitMQ, with the user guest. Takes seconds to start. It persists new quorum queues half a
 * second late, and loses them in a kill before that: await `persistsQueue` after declaring them.
 */
export function privateRabbitmq(): Promise<PrivateServer> {
  return begin({
    ports: 3,
    prepare: createNode,
    beside: epmdCommand,
    command: rabbitmqCommand,
    isOurs: async ([port], folder) => (await greetRabbitmq(port!)).includes(nodeName(folder)),
    url: rabbitmqUrl,
    signals: inOrder,
  })
}

/** Resolves once a private RabbitMQ has written the name of a new quorum queue to its disk. */
export async function persistsQueue({ folder }: PrivateServer, queue: string): Promise<void> {
  const node = `${nodeName(folder)}@localhost`
  const file = join(folder, 'data', node, 'quorum', node, 'names.dets')
  await until(`${queue} was not persisted`, () => readFileSync(file).includes(queue), 30)
}

/** NATS with JetStream. */
export function privateNats(): Promise<PrivateServer> {
  return begin({
    ports: 2,
    prepare: (folder) => mkdirSync(folder),
    command: natsCommand,
    isOurs: async ([, monitor], folder) => {
      const { config } = (await requestNats(monitor!, 'jsz')) as { config: { store_dir: string } }
      return config.store_dir === join(folder, 'jetstream') && isNatsReady(monitor!)
    },
    url: natsUrl,
    signals: inOrder,
  })
}

/**
 * Kafka, like the shared one unless `settings` differ. Takes seconds to start. Clients connect to
 * its advertised address, so set a proxy there: `'advertised.listeners':
 * 'PLAINTEXT://127.0.0.1:…'`.
 */
export function privateKafka(settings: KafkaSettings = {}): Promise<PrivateServer> {
  return begin({
    ports: 2,
    prepare: createBroker,
    command: (ports, folder) => kafkaCommand(ports, folder, settings),
    isOurs: async ([port], folder) => (await kafkaFolder(port!)) === folder,
    url: kafkaUrl,
    signals: inOrder,
  })
}
