import { jetstream, jetstreamManager } from '@nats-io/jetstream'
import { connect, type NatsConnection } from '@nats-io/transport-node'
import {
  Admin,
  Consumer,
  Producer,
  stringDeserializers,
  stringSerializers,
} from '@platformatic/kafka'
import amqplib from 'amqplib'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { isDeep } from '../depth.ts'
import type { PrivateServer } from './control.ts'
import {
  lacksPrivate,
  persistsQueue,
  privateKafka,
  privateNats,
  privateRabbitmq,
} from './private.ts'

/** These tests restart servers, which is slow on a busy machine. */
const timeout = 90_000

describe.skipIf(lacksPrivate.rabbitmq())('a private RabbitMQ', { timeout }, () => {
  let server: PrivateServer
  beforeAll(async () => {
    server = await privateRabbitmq()
  }, timeout)
  afterAll(() => server.remove())

  const onChannel = async <T>(
    work: (channel: amqplib.ConfirmChannel) => Promise<T>,
  ): Promise<T> => {
    const connection = await amqplib.connect(server.url)
    connection.on('error', () => {})
    try {
      return await work(await connection.createConfirmChannel())
    } finally {
      await connection.close()
    }
  }
  const quorum = { arguments: { 'x-queue-type': 'quorum' } }

  it('keeps confirmed messages of a quorum queue when killed, and restarts on the same port', async () => {
    await onChannel((channel) => channel.assertQueue('kept', quorum))
    await persistsQueue(server, 'kept')
    await onChannel(async (channel) => {
      channel.sendToQueue('kept', Buffer.from('letter'), { persistent: true })
      await channel.waitForConfirms()
    })
    const connection = await amqplib.connect(server.url)
    connection.on('error', () => {})
    const cut = new Promise((resolve) => connection.once('close', resolve))
    await server.kill9()
    await cut
    await expect(amqplib.connect(server.url)).rejects.toThrow('ECONNREFUSED')
    await server.start()
    const message = await onChannel((channel) => channel.get('kept', { noAck: true }))
    expect(message && message.content.toString()).toBe('letter')
  })

  it('runs next to another one, and stops gracefully', async () => {
    const other = await privateRabbitmq()
    try {
      expect(other.port).not.toBe(server.port)
      await onChannel((channel) => channel.assertQueue('here', quorum))
      await other.stop()
      expect(await onChannel((channel) => channel.checkQueue('here'))).toMatchObject({
        queue: 'here',
      })
    } finally {
      await other.remove()
    }
  })
})

describe.skipIf(lacksPrivate.nats())('a private NATS', { timeout }, () => {
  let server: PrivateServer
  beforeAll(async () => {
    server = await privateNats()
  }, timeout)
  afterAll(() => server.remove())

  const connected = async <T>(work: (connection: NatsConnection) => Promise<T>): Promise<T> => {
    const connection = await connect({ servers: server.url, reconnect: false })
    try {
      return await work(connection)
    } finally {
      await connection.close()
    }
  }

  it.each(['kill9', 'stop'] as const)('keeps the messages of a stream: %s', async (end) => {
    await connected(async (connection) => {
      const manager = await jetstreamManager(connection)
      await manager.streams.add({ name: end, subjects: [end] })
      await jetstream(connection).publish(end, 'letter')
    })
    const connection = await connect({ servers: server.url, reconnect: false })
    await server[end]()
    await connection.closed()
    await expect(connect({ servers: server.url, reconnect: false })).rejects.toThrow()
    await server.start()
    const message = await connected(async (connection) =>
      (await jetstreamManager(connection)).streams.getMessage(end, { seq: 1 }),
    )
    expect(message?.string()).toBe('letter')
  })
})

describe.skipIf(lacksPrivate.kafka())('a private Kafka', { timeout }, () => {
  let server: PrivateServer
  beforeAll(async () => {
    server = await privateKafka({ 'num.partitions': '3' })
  }, timeout)
  afterAll(() => server.remove())

  const settings = () => ({ clientId: 'test', bootstrapBrokers: [server.url] })

  it('has the requested settings', async () => {
    const admin = new Admin(settings())
    await admin.createTopics({ topics: ['three'], partitions: -1, replicas: -1 })
    const partitions = async (): Promise<number | undefined> =>
      (await admin.metadata({ topics: ['three'] })).topics.get('three')?.partitionsCount
    await expect.poll(partitions, { timeout: 10_000 }).toBe(3)
    await admin.close()
  })

  it('does not create topics automatically', async () => {
    const admin = new Admin({ ...settings(), retries: 0 })
    const metadata = admin.metadata({ topics: ['nobody'], autocreateTopics: true })
    await expect(metadata).rejects.toThrow('Unknown topic')
    // Topics are created in order: an earlier one would exist by now.
    await admin.createTopics({ topics: ['later'], partitions: 1, replicas: 1 })
    await expect.poll(() => admin.listTopics(), { timeout: 10_000 }).toContain('later')
    expect(await admin.listTopics()).not.toContain('nobody')
    await admin.close()
  })

  it('keeps written records when killed', async () => {
    const admin = new Admin(settings())
    await admin.createTopics({ topics: ['kept'], partitions: 1, replicas: 1 })
    await admin.close()
    const producer = new Producer({ ...settings(), serializers: stringSerializers })
    await producer.send({ messages: [{ topic: 'kept', value: 'letter' }] })
    await producer.close()
    await server.kill9()
    const late = new Admin({ ...settings(), retries: 0 })
    await expect(late.listTopics()).rejects.toThrow()
    await late.close()
    await server.start()
    const consumer = new Consumer({
      ...settings(),
      groupId: 'reader',
      deserializers: stringDeserializers,
    })
    const stream = await consumer.consume({ topics: ['kept'], mode: 'earliest' })
    for await (const message of stream) {
      expect(message.value).toBe('letter')
      break
    }
    await consumer.close(true)
  })

  it('can be stopped while paused', async () => {
    server.pause()
    await server.stop()
    // A start takes seconds, and the kill above has shown one.
    if (!isDeep) return
    await server.start()
    const admin = new Admin(settings())
    expect(await admin.listTopics()).toContain('kept')
    await admin.close()
  })
})
