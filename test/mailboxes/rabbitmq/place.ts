import amqplib, { type Channel } from 'amqplib'
import { delayQueuesOf, queueOf } from '../../../src/backends/rabbitmq/names.ts'

/** Runs work on its own channel, like any other client. */
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

/** Deletes the queues of mailboxes. */
export async function removeMailboxes(url: string, names: readonly string[]): Promise<void> {
  await onRabbitMQ(url, async (channel) => {
    for (const name of names) {
      const queue = queueOf(name)
      await channel.deleteQueue(queue)
      for (const delay of delayQueuesOf(queue)) await channel.deleteQueue(delay.name)
    }
  })
}
