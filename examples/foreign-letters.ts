import amqplib from 'amqplib'
import { once } from 'node:events'
import { DeadLetterQueue, returnToSource } from '../src/index.ts'
import { rabbitmqTap } from '../src/taps/rabbitmq.ts'

// Usage: node examples/foreign-letters.ts amqp://guest:guest@localhost:5672 [names of two queues]
const [url = 'amqp://guest:guest@localhost:5672', orders = 'example-orders'] = process.argv.slice(2)
const dead = `${orders}.dead`

// An existing system: RabbitMQ moves messages that a consumer rejects to a dead letter queue.
const rabbitmq = await amqplib.connect(url)
const channel = await rabbitmq.createChannel()
await channel.assertQueue(dead)
await channel.assertQueue(orders, { deadLetterExchange: '', deadLetterRoutingKey: dead })
channel.sendToQueue(orders, Buffer.from('{"amount":-42}'), {
  messageId: 'order-7',
  contentType: 'application/json',
  headers: { tenant: 'acme' },
})
await channel.consume(orders, (message) => {
  if (!message) return
  const { amount } = JSON.parse(message.content.toString()) as { amount: number }
  const { tenant } = message.properties.headers ?? {}
  console.log(`an order for ${amount} of ${tenant}: ${amount > 0 ? 'charged' : 'rejected'}`)
  if (amount > 0) channel.ack(message)
  else channel.nack(message, false, false)
  if (amount > 0) channel.emit('charged')
})
const charged = once(channel, 'charged')

// Redrive: what is in the dead letter queue becomes letters, and a retry sends one back.
const dlq = await DeadLetterQueue.open('sqlite:letters.db')
const tap = rabbitmqTap({ url, queue: dead, keep: dlq.foreignLetters({ queue: 'orders' }) })
dlq.handle('orders', returnToSource(tap))

const kept = new Promise<string>((resolve) =>
  dlq.on('captured', ({ letter }) => resolve(letter.id)),
)
await tap.start()
dlq.start()

const id = await kept
const letter = await dlq.get(id)
console.log(`${letter?.queue} has a letter: ${letter?.state}, ${letter?.failure.message}`)

await dlq.edit(id, { payload: { amount: 42 }, by: 'ann', reason: 'the sign was wrong' })
await dlq.retry(id, 'ann')

await charged
await dlq.stop() // before the tap: a letter may still be on its way through it
await tap.stop()
console.log(`the letter is ${(await dlq.get(id))?.state}`)
await dlq.close()
await channel.deleteQueue(orders)
await channel.deleteQueue(dead)
await rabbitmq.close()
