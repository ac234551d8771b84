import amqplib, { type Channel } from 'amqplib'
import { delayQueuesOf, queueOf } from '../../../src/backends/rabbitmq/names.ts'

/** Does something on a channel of its own, as any other client would. */
export async function onRabbitMQ<T>(
  url: string,
  work: (channel: Channel) => Promise<T>,
): Promise<T> {
  const connection = await amqplib.connect(url)
  connection.on('error', () => {})
  try {
    const channel = await connection.createChannel()
    channel.on('error', () => {})
    return await work(channel)
  } finally {
    await connection.close()
  }
}

/** Removes the queues of mailboxes. */
export async function removeMailboxes(url: string, names: readonly string[]): Promise<void> {
  await onRabbitMQ(url, async (channel) => {
    for (const name of names) {
      const queue = queueOf(name)
      await channel.deleteQueue(queue)
      for (const delay of delayQueuesOf(queue)) await channel.deleteQueue(delay.name)
    }
  })
}
