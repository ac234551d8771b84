import { afterEach, describe, expect, it } from 'vitest'
import type { Mailbox, Message, ReceiveOptions } from '../../../src/mailbox.ts'
import {
  rabbitmqMailbox,
  type RabbitMQMailboxOptions,
} from '../../../src/mailboxes/rabbitmq/rabbitmq.ts'
import { backend, freshName } from '../../servers/servers.ts'
import { onRabbitMQ, removeMailboxes } from './place.ts'

const { url, missing } = backend('rabbitmq')

const opened: Mailbox[] = []

async function open(options: Partial<RabbitMQMailboxOptions> = {}): Promise<Mailbox> {
  const mailbox = rabbitmqMailbox({ url, name: freshName(), ...options })
  opened.push(mailbox)
  await mailbox.open()
  return mailbox
}

async function takeOne(from: Mailbox, options: ReceiveOptions = {}): Promise<Message> {
  const [message] = await from.receive({ waitSeconds: 10, visibilitySeconds: 60, ...options })
  return message!
}

const coded = (code: string): unknown => expect.objectContaining({ code })

describe('rabbitmqMailbox', () => {
  it('rejects an invalid URL without its password', () => {
    for (const wrong of [
      'http://user:hunter2@host',
      'user:hunter2@host',
      'amqp://user:hunter2@[',
    ]) {
      const make = (): Mailbox => rabbitmqMailbox({ url: wrong, name: 'a' })
      expect(make).toThrow(coded('INVALID_INPUT'))
      expect(make).not.toThrow('hunter2')
    }
  })

  it('rejects an invalid timeout', () => {
    for (const timeoutMs of [0, -1, Number.NaN])
      expect(() => rabbitmqMailbox({ url: 'amqp://localhost', name: 'a', timeoutMs })).toThrow(
        coded('INVALID_INPUT'),
      )
  })
})

describe.skipIf(missing)('a mailbox in RabbitMQ', () => {
  afterEach(async () => {
    const mailboxes = opened.splice(0)
    await Promise.all(mailboxes.map((mailbox) => mailbox.close()))
    await removeMailboxes(url, [...new Set(mailboxes.map(({ name }) => name))])
  })

  it('delivers messages of others, and releases them unchanged', async () => {
    const mailbox = await open()
    await onRabbitMQ(url, async (channel) => {
      const options = { headers: { retries: 3 }, correlationId: 'c-1', type: 'order' }
      channel.sendToQueue(mailbox.name, Buffer.from('theirs'), options)
      await channel.checkQueue(mailbox.name)
    })
    const first = await takeOne(mailbox)
    expect(Buffer.from(first.body.bytes).toString()).toBe('theirs')
    expect(first.headers).toEqual({ retries: '3', 'correlation-id': 'c-1', type: 'order' })
    await first.nack()
    const second = await takeOne(mailbox)
    expect(second).toMatchObject({ id: first.id, deliveries: 2, failures: 1 })
    expect(second.headers).toEqual(first.headers)
    await second.nack()
    const raw = await onRabbitMQ(url, (channel) => channel.get(mailbox.name))
    expect(raw).toMatchObject({
      properties: { correlationId: 'c-1', type: 'order', headers: { retries: 3 } },
    })
  })

  it('creates durable quorum queues without a delivery limit', async () => {
    const { name } = await open()
    const again = onRabbitMQ(url, (channel) =>
      channel.assertQueue(name, {
        durable: true,
        arguments: { 'x-queue-type': 'quorum', 'x-delivery-limit': 1_000_000_000 },
      }),
    )
    await expect(again).resolves.toMatchObject({ queue: name })
  })

  it('reports an existing queue with other settings, and uses it with declare: false', async () => {
    const name = freshName()
    await onRabbitMQ(url, (channel) => channel.assertQueue(name, { durable: true }))
    await expect(open({ name })).rejects.toMatchObject({ code: 'INVALID_CONFIG' })
    const mailbox = await open({ name, declare: false })
    await mailbox.send('a')
    const first = await takeOne(mailbox)
    expect(first.deliveries).toBe(1)
    await first.nack()
    expect(await takeOne(mailbox)).toMatchObject({ deliveries: 2, failures: 1 })
  })

  it('rejects a missing queue with declare: false', async () => {
    await expect(open({ declare: false })).rejects.toMatchObject({ code: 'MAILBOX_UNAVAILABLE' })
  })

  it('recreates a queue that somebody has deleted', async () => {
    const mailbox = await open()
    await mailbox.send('gone with the queue')
    await onRabbitMQ(url, (channel) => channel.deleteQueue(mailbox.name))
    await mailbox.send('sent afterwards')
    expect((await takeOne(mailbox)).value()).toBe('sent afterwards')
  })

  it('reports a deleted queue to waiters, and continues with a new one', async () => {
    const mailbox = await open()
    const receiving = mailbox.receive({ waitSeconds: 60 })
    const refused = expect(receiving).rejects.toMatchObject({ code: 'MAILBOX_UNAVAILABLE' })
    await consumerOf(mailbox.name)
    await onRabbitMQ(url, (channel) => channel.deleteQueue(mailbox.name))
    await refused
    await mailbox.send('on the new one')
    expect((await takeOne(mailbox)).value()).toBe('on the new one')
  })

  it('rejects a message for which no queue is bound', async () => {
    const name = freshName()
    await onRabbitMQ(url, (channel) => channel.assertQueue(name))
    const mailbox = await open({ name, declare: false })
    await onRabbitMQ(url, (channel) => channel.deleteQueue(name))
    await expect(mailbox.send('lost')).rejects.toMatchObject({ code: 'MAILBOX_UNAVAILABLE' })
  })

  it('rejects headers that are too large together, and continues', async () => {
    const mailbox = await open()
    const headers = Object.fromEntries(
      Array.from({ length: 100 }, (_, n) => [`h${n}`, 'x'.repeat(8192)]),
    )
    await expect(mailbox.send('x', { headers })).rejects.toMatchObject({ code: 'TOO_LARGE' })
    await mailbox.send('small')
    expect((await takeOne(mailbox)).value()).toBe('small')
  })

  it('preserves headers that have a meaning for the server', async () => {
    const mailbox = await open()
    const headers = { CC: 'x', 'x-death': 'y', 'x-delivery-count': '7', 'x-redrive': '{}' }
    await mailbox.send('body', { headers, replyTo: 'amq.rabbitmq.reply-to' })
    const message = await takeOne(mailbox)
    expect(message.headers).toEqual(headers)
    expect(message).toMatchObject({ replyTo: 'amq.rabbitmq.reply-to', deliveries: 1 })
    await message.nack()
    expect((await takeOne(mailbox)).headers).toEqual(headers)
  })

  it('hides no message without a consumer', async () => {
    const name = freshName()
    const [mine, other] = [await open({ name }), await open({ name })]
    const receiving = mine.receive({ max: 10, waitSeconds: 10 })
    await mine.send(0)
    expect(await receiving).toHaveLength(1)
    // The first handle has credit for nine more at this time.
    await Promise.all([1, 2, 3, 4, 5].map((n) => other.send(n)))
    const seen: unknown[] = []
    while (seen.length < 5) seen.push((await takeOne(other)).value())
    expect(seen).toEqual([1, 2, 3, 4, 5])
  })

  it('purges messages that another handle has delayed, and counts those that it delayed itself', async () => {
    const name = freshName()
    const [mine, other] = [await open({ name }), await open({ name })]
    await mine.send('later', { delaySeconds: 3600 })
    await mine.send('now')
    const held = await takeOne(mine)
    await mine.send('next')
    expect(await mine.approximateCount()).toBe(3)
    expect(await other.purge()).toBe(2)
    await held.acknowledge()
    expect(await mine.approximateCount()).toBe(0)
    await mine.send('after the purge', { delaySeconds: 0.5 })
    expect((await takeOne(mine)).value()).toBe('after the purge')
  })

  it('preserves failures and the first delivery through delays', async () => {
    const mailbox = await open()
    await mailbox.send('tried')
    const first = await takeOne(mailbox)
    await first.nack({ delaySeconds: 0.2 })
    const second = await takeOne(mailbox)
    await second.nack({ delaySeconds: 0.2 })
    const third = await takeOne(mailbox)
    expect(third).toMatchObject({ id: first.id, deliveries: 3, failures: 2, headers: {} })
    expect(third.firstReceivedAt).toBe(first.firstReceivedAt)
    expect(third.enqueuedAt).toBe(first.enqueuedAt)
  })

  it('reports the server in its health', async () => {
    const { checks } = await (await open()).health()
    expect(checks['server']).toMatch(/^RabbitMQ \d/)
  })
})

/** Resolves once the queue has a consumer. */
async function consumerOf(queue: string): Promise<void> {
  await onRabbitMQ(url, async (channel) => {
    while ((await channel.checkQueue(queue)).consumerCount === 0);
  })
}
