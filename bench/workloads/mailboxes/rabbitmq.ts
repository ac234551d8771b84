import amqplib, { type ChannelModel, type ConsumeMessage } from 'amqplib'
import { delayQueuesOf, queueOf } from '../../../src/backends/rabbitmq/names.ts'
import { rabbitmqMailbox } from '../../../src/mailboxes/rabbitmq/rabbitmq.ts'
import { rabbitmqPlace } from '../../../test/servers/broker-places.ts'
import { backend } from '../../../test/servers/servers.ts'
import { body, runWorkers, inbox, type Pair, type Raw } from './pair.ts'

export async function open(): Promise<Pair> {
  const { url } = backend('rabbitmq')
  const place = rabbitmqPlace(url)
  const mailbox = rabbitmqMailbox({ url, name: place.queue('mailbox') })
  // Without this, a single message waits 40 ms for the delayed acknowledgement of TCP.
  const connection = await amqplib.connect(url, { noDelay: true })
  connection.on('error', () => {})
  const close = async (): Promise<void> => {
    await mailbox.close()
    const channel = await connection.createChannel()
    const queue = queueOf(mailbox.name)
    for (const { name } of delayQueuesOf(queue)) await channel.deleteQueue(name)
    await connection.close()
    await place.clear()
  }
  try {
    await mailbox.open()
    return { mailbox, raw: await rawOn(connection, place.queue('raw')), close }
  } catch (error) {
    await close()
    throw error
  }
}

/**
 * A quorum queue. One channel publishes and waits for each confirm; another consumes with a
 * prefetch of the messages in flight, and acknowledges each. The server does not confirm
 * acknowledgements, so a mailbox does more: it waits for the server with one more round trip per
 * message. It also has two connections, so that it can acknowledge while the server blocks
 * publishers.
 */
async function rawOn(connection: ChannelModel, queue: string): Promise<Raw> {
  const sending = await connection.createConfirmChannel()
  await sending.assertQueue(queue, { arguments: { 'x-queue-type': 'quorum' } })
  const send = (): Promise<void> =>
    new Promise((resolve, reject) =>
      sending.sendToQueue(queue, body(), { persistent: true }, (error: unknown) => {
        if (error) reject(new Error('the broker refused a message', { cause: error }))
        else resolve()
      }),
    )
  return async (messages, inFlight) => {
    const receiving = await connection.createChannel()
    await receiving.prefetch(inFlight)
    const arrived = inbox<ConsumeMessage>()
    await receiving.consume(queue, (message) => message && arrived.put(message))
    await runWorkers(messages, inFlight, async () => {
      await send()
      receiving.ack(await arrived.next())
    })
    // The answer arrives after all earlier acknowledgements.
    await receiving.close()
  }
}
