import { startFauxqs, type FauxqsServer } from 'fauxqs'
import { afterAll, beforeAll } from 'vitest'
import { kafkaMailbox } from '../../src/mailboxes/kafka/kafka.ts'
import { memoryMailbox } from '../../src/mailboxes/memory/memory.ts'
import { natsMailbox } from '../../src/mailboxes/nats/nats.ts'
import { postgresMailbox } from '../../src/mailboxes/postgres/postgres.ts'
import { rabbitmqMailbox } from '../../src/mailboxes/rabbitmq/rabbitmq.ts'
import { redisMailbox } from '../../src/mailboxes/redis/redis.ts'
import { sqliteMailbox } from '../../src/mailboxes/sqlite/sqlite.ts'
import { queueNameOf } from '../../src/backends/sqs/address.ts'
import type { ClosableMailboxBench } from '../contract/run-mailbox-contract.ts'
import { openMailboxBench, type MailboxBenchOptions } from '../mailboxes/bench.ts'
import { removeMailboxes } from '../mailboxes/rabbitmq/place.ts'
import { temporaryDirectory } from '../mailboxes/sqlite/sqlite-bench.ts'
import { onFauxqs } from '../mailboxes/sqs/on-fauxqs.ts'
import { kafkaPlace, natsPlace } from '../servers/broker-places.ts'
import { postgresPlace, redisPlace } from '../servers/places.ts'
import { backend, freshName, type Backend } from '../servers/servers.ts'

/** Options that drivers have in common. */
export interface BrokerOptions {
  retentionSeconds?: number
}

type Place = (options: BrokerOptions) => MailboxBenchOptions | Promise<MailboxBenchOptions>

let sqs: FauxqsServer

const urlOf = (name: Backend): string => {
  const { url, missing } = backend(name)
  if (missing !== undefined) throw new Error(missing)
  return url
}

/** A separate place on each broker, by the name of the driver. SQS has two kinds of queues. */
const places: Record<string, Place> = {
  memory: (options) => ({
    make: (name, resolver) => memoryMailbox({ name, resolver, ...options }),
  }),
  sqlite: async (options) => {
    const directory = await temporaryDirectory()
    const path = `${directory.path}/mail.db`
    return {
      make: (name, resolver) => sqliteMailbox({ path, name, resolver, ...options }),
      leave: () => directory.clear(),
    }
  },
  postgres: (options) => {
    const url = urlOf('postgres')
    const { name: schema, clear } = postgresPlace(url)
    return {
      make: (name, resolver) => postgresMailbox({ url, schema, name, resolver, ...options }),
      leave: clear,
    }
  },
  redis: (options) => {
    const url = urlOf('redis')
    const { name: prefix, clear } = redisPlace(url)
    return {
      make: (name, resolver) => redisMailbox({ url, prefix, name, resolver, ...options }),
      leave: clear,
    }
  },
  rabbitmq: (options) => {
    const url = urlOf('rabbitmq')
    return {
      prefix: `${freshName()} `,
      make: (name, resolver) => rabbitmqMailbox({ url, name, resolver, ...options }),
      leave: (names) => removeMailboxes(url, names),
    }
  },
  nats: (options) => {
    const url = urlOf('nats')
    const { name: prefix, clear } = natsPlace(url)
    return {
      make: (name, resolver) => natsMailbox({ name, url, resolver, prefix, ...options }),
      leave: clear,
    }
  },
  sqs: (options) => ({
    prefix: `${freshName()}-`,
    make: (name, resolver) => onFauxqs(sqs, { name, resolver, ...options }),
  }),
  'sqs, a FIFO queue': (options) => ({
    prefix: `${freshName()}-`,
    make: (name, resolver) => {
      const url = `sqs://127.0.0.1:${sqs.port}/${queueNameOf(name)}.fifo?region=us-east-1`
      return onFauxqs(sqs, { name, resolver, url, ...options })
    },
  }),
  kafka: (options) => {
    const url = urlOf('kafka')
    const place = kafkaPlace(url)
    const prefix = `${place.name}.`
    return {
      make: (name, resolver) => kafkaMailbox({ name, url, resolver, prefix, ...options }),
      leave: place.clear,
    }
  },
}

export const brokers: readonly string[] = Object.keys(places)

/** Starts the emulator of SQS for the test file. */
export function startBrokers(): void {
  beforeAll(async () => {
    sqs = await startFauxqs({ port: 0, logger: false })
  })
  afterAll(() => sqs.stop())
}

/** Opens a mailbox on a broker for one use, then closes it and removes its place. */
export async function onBroker<T>(
  kind: string,
  options: BrokerOptions,
  use: (bench: ClosableMailboxBench) => Promise<T>,
): Promise<T> {
  const bench = await openMailboxBench(await places[kind]!(options))
  try {
    return await use(bench)
  } finally {
    await bench.close()
  }
}
