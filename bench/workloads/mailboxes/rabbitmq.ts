import amqplib, { type ChannelModel, type ConsumeMessage } from 'amqplib'
import { delayQueuesOf, queueOf } from '../../../src/backends/rabbitmq/names.ts'
import { rabbitmqMailbox } from '../../../src/mailboxes/rabbitmq/rabbitmq.ts'
import { rabbitmqPlace } from '../../../test/servers/broker-places.ts'
import { backend } from '../../../test/servers/servers.ts'
import { body, crew, inbox, type Pair, type Raw } from './pair.ts'

export async function open(): Promise<Pair> {
  const { url } = backend('rabbitmq')
  const place = rabbitmqPlace(url)
  const mailbox = rabbitmqMailbox({ url, name: place.queue('mailbox') })
  // Without it, a message alone waits 40 ms for the acknowledgement of TCP.
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
 * A quorum queue. One channel publishes and waits for each confirm; another consumes, with as much prefetched as is in hand, and
 * acknowledges each message. The server does not answer to that, so this does less than a mailbox, which waits until the server has heard of it: one
 * more round trip for each message when they come one by one. It also has one connection for both, and a mailbox two, so that a server without room still lets it acknowledge.
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
  return async (messages, together) => {
    const receiving = await connection.createChannel()
    await receiving.prefetch(together)
    const arrived = inbox<ConsumeMessage>()
    await receiving.consume(queue, (message) => message && arrived.put(message))
    await crew(messages, together, async () => {
      await send()
      receiving.ack(await arrived.next())
    })
    // Its answer comes after all that was acknowledged.
    await receiving.close()
  }
}
