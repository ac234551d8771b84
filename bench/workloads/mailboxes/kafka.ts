import { Admin, Consumer, Producer } from '@platformatic/kafka'
import { kafkaMailbox } from '../../../src/mailboxes/kafka/kafka.ts'
import { kafkaPlace } from '../../../test/servers/broker-places.ts'
import { backend } from '../../../test/servers/servers.ts'
import { body, runWorkers, inBatches, type Pair, type Raw } from './pair.ts'

export async function open(): Promise<Pair> {
  const { url } = backend('kafka')
  const place = kafkaPlace(url)
  const mailbox = kafkaMailbox({ url, prefix: `${place.name}.`, name: 'bench' })
  const settings = { clientId: place.name, bootstrapBrokers: url.split(',') }
  const producer = new Producer({ ...settings, idempotent: true, acks: -1 })
  const consumer = new Consumer({ ...settings, groupId: `${place.name}.raw` })
  const close = async (): Promise<void> => {
    await Promise.all([mailbox.close(), producer.close(), consumer.close(true)])
    await place.clear()
  }
  try {
    await mailbox.open()
    const topic = `${place.name}.raw`
    const admin = new Admin(settings)
    await admin.createTopics({ topics: [topic], partitions: 1, replicas: 1 })
    await admin.close()
    return { mailbox, ...(await rawOn(producer, consumer, topic)), close }
  } catch (error) {
    await close()
    throw error
  }
}

/**
 * A topic with one partition. Messages are written with acks from all replicas, read by a group of
 * one, and committed: each, or the last one of a batch. A mailbox does more: it also commits that
 * messages are in flight before it delivers them. That is four requests per batch instead of three.
 */
async function rawOn(
  producer: Producer,
  consumer: Consumer,
  topic: string,
): Promise<{ raw: Raw; batched: Raw }> {
  const stream = await consumer.consume({
    topics: [topic],
    mode: 'committed',
    fallbackMode: 'earliest',
    autocommit: false,
  })
  const arriving = stream[Symbol.asyncIterator]()
  const trip = async (count: number): Promise<void> => {
    const written = Array.from({ length: count }, () => ({ topic, value: body() }))
    await producer.send({ messages: written, acks: -1 })
    for (let n = 1; n <= count; n++) {
      const { value: message } = await arriving.next()
      if (n === count) await message?.commit()
    }
  }
  return {
    raw: (messages, inFlight) => runWorkers(messages, inFlight, () => trip(1)),
    batched: (messages, inFlight) => inBatches(messages, inFlight, trip),
  }
}
