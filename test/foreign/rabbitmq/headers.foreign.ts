import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { rabbitmqTap } from '../../../src/taps/rabbitmq.ts'
import type { ForeignLetter, Tap } from '../../../src/taps/tap.ts'
import { onRabbitMQ } from '../../mailboxes/rabbitmq/place.ts'
import { rabbitmqPlace, type RabbitmqPlace } from '../../servers/broker-places.ts'
import { backend } from '../../servers/servers.ts'
import { inbox } from '../../taps/inbox.ts'
import { java } from '../java.ts'

const { url } = backend('rabbitmq')
const program = join(import.meta.dirname, 'Headers.java')

async function run(...args: string[]): Promise<Record<string, string>> {
  await using client = java('rabbitmq', program, [url, ...args])
  return await client.next()
}

describe('a message of the Java client of RabbitMQ', () => {
  let place: RabbitmqPlace
  let orders: string
  let dead: string
  let tap: Tap
  const letters = inbox<ForeignLetter>()

  beforeEach(async () => {
    place = rabbitmqPlace(url)
    orders = place.queue('orders')
    dead = place.queue('dead')
    await onRabbitMQ(url, async (channel) => {
      await channel.assertQueue(dead, { durable: true })
      const deadLetters = { 'x-dead-letter-exchange': '', 'x-dead-letter-routing-key': dead }
      await channel.assertQueue(orders, { durable: true, arguments: deadLetters })
    })
    tap = rabbitmqTap({ url, queue: dead, keep: async (letter) => letters.put(letter) })
    await tap.start()
  })

  afterEach(async () => {
    await tap.stop()
    await place.clear()
  })

  /** Rejects the one message of the queue, so that it becomes a dead letter. */
  const reject = (): Promise<void> =>
    onRabbitMQ(url, async (channel) => {
      const message = await channel.get(orders)
      if (message) channel.nack(message, false, false)
      await channel.checkQueue(orders)
    })

  it('returns with every header and property unchanged', async () => {
    await run('send', orders, 'plain')
    await reject()
    await tap.returnToSource(await letters.next(), 1)
    const {
      'header redrive-replays': replays,
      'header redrive-original-id': _id,
      ...back
    } = await run('get', orders)
    expect(replays).toBe('string 1')
    expect(back).toEqual({
      'header boolean': 'Boolean true',
      'header bytes': 'bytes AP8H',
      'header date': 'date 1700000000000',
      'header decimal': 'BigDecimal 19.99',
      'header double': 'Double 1.5',
      'header int': 'Integer 5',
      'header list': 'list [Integer 1, string x, Boolean true]',
      'header long': 'Long 1099511627776',
      'header negative': 'Integer -70000',
      'header null': 'null',
      'header table': 'table {inner=table {n=Integer 7}}',
      'header text': 'string plain',
      contentType: 'null',
      correlationId: 'c-1',
      deliveryMode: 'Integer 2',
      messageId: 'null',
      timestamp: 'date 1600000000000',
    })
  })

  it('is not returned if a 64-bit header could not be read exactly', async () => {
    await run('send', orders, 'large')
    await reject()
    const letter = await letters.next()
    await expect(tap.returnToSource(letter, 1)).rejects.toThrow(
      'the header "large" could not be read',
    )
    const { large: _, ...headers } = letter.headers
    await tap.returnToSource({ ...letter, headers }, 1)
    expect(await run('get', orders)).toMatchObject({ 'header int': 'Integer 5' })
  })
})
