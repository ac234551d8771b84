import {
  AckPolicy,
  jetstream,
  jetstreamManager,
  RetentionPolicy,
  StorageType,
  type JsMsg,
} from '@nats-io/jetstream'
import { connect, type NatsConnection } from '@nats-io/transport-node'
import { natsMailbox } from '../../../src/mailboxes/nats/nats.ts'
import { natsPlace } from '../../../test/servers/broker-places.ts'
import { backend } from '../../../test/servers/servers.ts'
import { body, runWorkers, inbox, type Pair, type Raw } from './pair.ts'

export async function open(): Promise<Pair> {
  const { url } = backend('nats')
  const place = natsPlace(url)
  const mailbox = natsMailbox({ url, prefix: place.name, name: 'bench' })
  const connection = await connect({ servers: url })
  const close = async (): Promise<void> => {
    await Promise.all([mailbox.close(), connection.close()])
    await place.clear()
  }
  try {
    await mailbox.open()
    return { mailbox, raw: await rawOn(connection, `${place.name}-raw`), close }
  } catch (error) {
    await close()
    throw error
  }
}

/**
 * A work queue on disk. Each publish is awaited, one long pull consumes with a prefetch of the
 * messages in flight, and each acknowledgement waits for its confirmation.
 */
async function rawOn(connection: NatsConnection, stream: string): Promise<Raw> {
  const { streams, consumers } = await jetstreamManager(connection)
  await streams.add({
    name: stream,
    subjects: [stream],
    retention: RetentionPolicy.Workqueue,
    storage: StorageType.File,
  })
  await consumers.add(stream, {
    durable_name: 'raw',
    ack_policy: AckPolicy.Explicit,
    max_ack_pending: -1,
  })
  const client = jetstream(connection)
  const consumer = await client.consumers.get(stream, 'raw')
  return async (messages, inFlight) => {
    const arrived = inbox<JsMsg>()
    const consuming = await consumer.consume({
      max_messages: inFlight,
      callback: (message) => arrived.put(message),
    })
    await runWorkers(messages, inFlight, async () => {
      await client.publish(stream, body())
      await (await arrived.next()).ackAck()
    })
    await consuming.close()
  }
}
