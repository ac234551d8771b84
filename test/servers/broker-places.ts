// Places on message brokers. Separate from places.ts, since their clients are large.
import { jetstreamManager } from '@nats-io/jetstream'
import { connect } from '@nats-io/transport-node'
import { Admin } from '@platformatic/kafka'
import amqplib from 'amqplib'
import { expect } from 'vitest'
import { isRefusal } from '../../src/backends/kafka/errors.ts'
import type { Place } from './places.ts'
import { freshName } from './servers.ts'
import { waitFor } from '../wait-for.ts'

/**
 * A prefix of queues and exchanges. Clients cannot list these, so the place removes the names that
 * it gave out.
 */
export interface RabbitmqPlace extends Place {
  readonly queue: (name: string) => string
  readonly exchange: (name: string) => string
}

export function rabbitmqPlace(url: string): RabbitmqPlace {
  const name = freshName()
  const queues = new Set<string>()
  const exchanges = new Set<string>()
  const into = (names: Set<string>) => (last: string) => {
    names.add(`${name}.${last}`)
    return `${name}.${last}`
  }
  const clear = async (): Promise<void> => {
    const connection = await amqplib.connect(url)
    connection.on('error', () => {})
    try {
      const channel = await connection.createChannel()
      for (const queue of queues) await channel.deleteQueue(queue)
      for (const exchange of exchanges) await channel.deleteExchange(exchange)
    } finally {
      await connection.close()
    }
  }
  return { name, clear, queue: into(queues), exchange: into(exchanges) }
}

/** A prefix of streams, and of the subjects in them. */
export function natsPlace(url: string): Place {
  const name = freshName()
  const clear = async (): Promise<void> => {
    const connection = await connect({ servers: url })
    try {
      const { streams } = await jetstreamManager(connection)
      const names: string[] = []
      for await (const stream of streams.names()) if (stream.includes(name)) names.push(stream)
      for (const stream of names) await streams.delete(stream)
    } finally {
      await connection.close()
    }
  }
  return { name, clear }
}

/** A prefix of topics and groups. Its groups must have no members when cleared. */
export function kafkaPlace(url: string): Place {
  const name = freshName()
  const clear = async (): Promise<void> => {
    const admin = new Admin({ clientId: name, bootstrapBrokers: url.split(',') })
    const isOurs = (other: string): boolean => other.startsWith(name)
    try {
      const topics = (await admin.listTopics()).filter(isOurs)
      if (topics.length > 0) await admin.deleteTopics({ topics })
      const groups = [...(await admin.listGroups()).keys()].filter(isOurs)
      if (groups.length > 0) await admin.deleteGroups({ groups })
    } finally {
      await admin.close()
    }
  }
  return { name, clear }
}

/**
 * Creates topics and waits until the broker lists them. Ignores topics that a client retry created.
 */
export async function makeTopics(
  admin: Admin,
  topics: string[],
  partitions = 1,
  configs: { name: string; value: string }[] = [],
): Promise<void> {
  try {
    await admin.createTopics({ topics, partitions, replicas: 1, configs })
  } catch (error) {
    if (!isRefusal(error, 'TOPIC_ALREADY_EXISTS')) throw error
  }
  const expectListed = async (): Promise<void> =>
    expect(await admin.listTopics()).toEqual(expect.arrayContaining(topics))
  await waitFor(expectListed, { timeout: 20_000 })
}
