import { AckPolicy, jetstream, jetstreamManager } from '@nats-io/jetstream'
import { connect } from '@nats-io/transport-node'
import {
  Admin,
  Consumer,
  Producer,
  stringDeserializers,
  stringSerializers,
} from '@platformatic/kafka'
import amqplib from 'amqplib'
import { describe, expect, it } from 'vitest'
import { kafkaPlace, makeTopics, natsPlace, rabbitmqPlace } from './broker-places.ts'
import { backend } from './servers.ts'

const rabbitmq = backend('rabbitmq')
describe.skipIf(rabbitmq.missing)('RabbitMQ', () => {
  it('dead-letters a message of a quorum queue; a cleared place has no queue', async () => {
    const [mine, other] = [rabbitmqPlace(rabbitmq.url), rabbitmqPlace(rabbitmq.url)]
    const connection = await amqplib.connect(rabbitmq.url)
    connection.on('error', () => {})
    const channel = await connection.createConfirmChannel()
    const [work, dead, kept] = [mine.queue('work'), mine.queue('dead'), other.queue('kept')]
    const exchange = mine.exchange('dead')
    await channel.assertExchange(exchange, 'fanout')
    await channel.assertQueue(dead)
    await channel.assertQueue(kept)
    await channel.bindQueue(dead, exchange, '')
    await channel.assertQueue(work, {
      deadLetterExchange: exchange,
      arguments: { 'x-queue-type': 'quorum' },
    })
    channel.sendToQueue(work, Buffer.from('letter'), { persistent: true })
    await channel.waitForConfirms()
    await channel.consume(work, (message) => {
      if (message) channel.nack(message, false, false)
    })
    const arrived = new Promise<amqplib.ConsumeMessage | null>((resolve) => {
      void channel.consume(dead, resolve)
    })
    const message = await arrived
    expect(message?.content.toString()).toBe('letter')
    expect(message?.properties.headers?.['x-first-death-queue']).toBe(work)

    await mine.clear()
    await mine.clear()
    const looking = await connection.createChannel()
    looking.on('error', () => {})
    expect(await looking.checkQueue(kept)).toMatchObject({ queue: kept })
    await expect(looking.checkQueue(work)).rejects.toThrow('NOT_FOUND')
    await other.clear()
    await connection.close()
  })
})

const nats = backend('nats')
describe.skipIf(nats.missing)('NATS', () => {
  it('redelivers and counts a rejected message; a cleared place has no stream', async () => {
    const [mine, other] = [natsPlace(nats.url), natsPlace(nats.url)]
    const connection = await connect({ servers: nats.url })
    const manager = await jetstreamManager(connection)
    for (const { name } of [mine, other])
      await manager.streams.add({ name, subjects: [`${name}.>`] })
    await manager.consumers.add(mine.name, {
      durable_name: 'reader',
      ack_policy: AckPolicy.Explicit,
    })
    const client = jetstream(connection)
    await client.publish(`${mine.name}.a`, 'letter')
    const reader = await client.consumers.get(mine.name, 'reader')
    const first = await reader.next()
    first?.nak()
    const second = await reader.next()
    expect([second?.string(), second?.info.deliveryCount]).toEqual(['letter', 2])
    expect(await second?.ackAck()).toBe(true)

    await mine.clear()
    await mine.clear()
    await expect(manager.streams.info(mine.name)).rejects.toThrow('not found')
    expect((await manager.streams.info(other.name)).config.name).toBe(other.name)
    await other.clear()
    await connection.close()
  })
})

const kafka = backend('kafka')
describe.skipIf(kafka.missing)('Kafka', () => {
  it('delivers records to a group from its last commit; a cleared place has no topic', async () => {
    const [mine, other] = [kafkaPlace(kafka.url), kafkaPlace(kafka.url)]
    const settings = { clientId: mine.name, bootstrapBrokers: kafka.url.split(',') }
    const admin = new Admin(settings)
    const topic = `${mine.name}.a`
    await makeTopics(admin, [topic, other.name])
    const producer = new Producer({ ...settings, serializers: stringSerializers })
    const messages = ['one', 'two'].map((value) => ({ topic, value, headers: { kind: 'letter' } }))
    await producer.send({ messages })
    await producer.close()

    const readOne = async (): Promise<unknown> => {
      const consumer = new Consumer({
        ...settings,
        groupId: mine.name,
        deserializers: stringDeserializers,
      })
      const stream = await consumer.consume({
        topics: [topic],
        mode: 'committed',
        fallbackMode: 'earliest',
        autocommit: false,
      })
      try {
        for await (const message of stream) {
          await message.commit()
          return [message.value, message.headers.get('kind')]
        }
        return undefined
      } finally {
        await consumer.close(true)
      }
    }
    expect(await readOne()).toEqual(['one', 'letter'])
    expect(await readOne()).toEqual(['two', 'letter'])

    await mine.clear()
    await mine.clear()
    await expect.poll(() => admin.listTopics(), { timeout: 10_000 }).not.toContain(topic)
    expect(await admin.listTopics()).toContain(other.name)
    expect([...(await admin.listGroups()).keys()]).not.toContain(mine.name)
    await other.clear()
    await admin.close()
  })
})
