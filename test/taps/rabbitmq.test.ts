import type { Channel, GetMessage } from 'amqplib'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { fakeClock } from '../../src/testing/index.ts'
import { rabbitmqTap, type RabbitMQTapOptions } from '../../src/taps/rabbitmq.ts'
import { returnToSource } from '../../src/taps/return-to-source.ts'
import type { ForeignLetter, Tap } from '../../src/taps/tap.ts'
import { createProxy } from '../faults/proxy.ts'
import { onRabbitMQ } from '../mailboxes/rabbitmq/place.ts'
import { rabbitmqPlace, type RabbitmqPlace } from '../servers/broker-places.ts'
import { backend } from '../servers/servers.ts'
import { openLetters } from './letters.ts'

const { url, missing } = backend('rabbitmq')

describe('rabbitmqTap', () => {
  it('rejects invalid options', () => {
    const keep = async (): Promise<void> => {}
    const tap = (more: object): (() => Tap) => {
      return () => rabbitmqTap({ url: 'amqp://localhost', queue: 'q', keep, ...more })
    }
    for (const more of [{ concurrency: 0 }, { concurrency: 1.5 }, { timeoutMs: 0 }, { url: 'x' }])
      expect(tap(more)).toThrow(expect.objectContaining({ code: 'INVALID_INPUT' }) as Error)
  })
})

describe.skipIf(missing)('rabbitmqTap on a dead letter queue', () => {
  let place: RabbitmqPlace
  let orders: string
  let dead: string
  let shop: string
  const taps: Tap[] = []

  /**
   * A quorum queue with a delivery limit of two, bound to a topic exchange, whose dead letters go
   * to another queue.
   */
  beforeEach(async () => {
    place = rabbitmqPlace(url)
    orders = place.queue('orders')
    dead = place.queue('dead')
    shop = place.exchange('shop')
    const graveyard = place.exchange('graveyard')
    await onRabbitMQ(url, async (channel) => {
      await channel.assertExchange(shop, 'topic')
      await channel.assertExchange(graveyard, 'fanout')
      await channel.assertQueue(dead, { durable: true })
      await channel.bindQueue(dead, graveyard, '')
      const limited = {
        'x-queue-type': 'quorum',
        'x-delivery-limit': 2,
        'x-dead-letter-exchange': graveyard,
      }
      await channel.assertQueue(orders, { durable: true, arguments: limited })
      await channel.bindQueue(orders, shop, 'order.*')
    })
  })

  afterEach(async () => {
    await Promise.all(taps.splice(0).map((tap) => tap.stop()))
    await place.clear()
  })

  function tapped(options: Partial<RabbitMQTapOptions> & Pick<RabbitMQTapOptions, 'keep'>): Tap {
    const tap = rabbitmqTap({ url, queue: dead, ...options })
    taps.push(tap)
    return tap
  }

  /** The letters in order, each stored at once. */
  function letters(options: Partial<RabbitMQTapOptions> = {}): { tap: Tap; next: Next } {
    const came: ForeignLetter[] = []
    const asking: ((letter: ForeignLetter) => void)[] = []
    const keep = async (letter: ForeignLetter): Promise<void> => {
      const ask = asking.shift()
      if (ask) ask(letter)
      else came.push(letter)
    }
    const next: Next = () => {
      const letter = came.shift()
      return letter ? Promise.resolve(letter) : new Promise((resolve) => asking.push(resolve))
    }
    return { tap: tapped({ keep, ...options }), next }
  }

  const send = (more: object = {}): Promise<void> =>
    onRabbitMQ(url, async (channel) => {
      const options = { messageId: 'm-1', contentType: 'text/plain', headers: { retries: 3 } }
      channel.publish(shop, 'order.new', Buffer.from('an order'), { ...options, ...more })
      await channel.checkQueue(orders)
    })

  /** Requeues every delivery until the server gives up. */
  const failUntilDead = (): Promise<number> =>
    onRabbitMQ(url, async (channel) => {
      let deliveries = 0
      while ((await channel.checkQueue(dead)).messageCount === 0) {
        const message = await channel.get(orders)
        if (message === false) continue
        deliveries += 1
        channel.nack(message, false, true)
      }
      return deliveries
    })

  it('stores a message that reached its delivery limit, and returns it unchanged', async () => {
    await send({ correlationId: 'c-1', persistent: true })
    const deliveries = await failUntilDead()
    expect(deliveries).toBe(3)
    const { tap, next } = letters()
    await tap.start()
    const letter = await next()
    expect(letter).toMatchObject({
      source: orders,
      reason: 'delivery_limit',
      messageId: 'm-1',
      contentType: 'text/plain',
      origin: { queue: orders, exchange: shop, routingKey: 'order.new' },
    })
    // The server does not report the deliveries before it gave up: the message died once.
    expect(letter.deliveries).toBe(1)
    expect(Buffer.from(letter.body).toString()).toBe('an order')
    await tap.returnToSource(letter, 1)
    const back = await onRabbitMQ(url, (channel) => arrived(channel, orders))
    expect(back.content.toString()).toBe('an order')
    expect(back.fields).toMatchObject({ exchange: shop, routingKey: 'order.new' })
    expect(back.properties).toMatchObject({
      messageId: 'm-1',
      contentType: 'text/plain',
      correlationId: 'c-1',
      deliveryMode: 2,
    })
    expect(back.properties.headers).toEqual({
      retries: 3,
      'redrive-replays': '1',
      'redrive-original-id': 'm-1',
      'x-delivery-count': 0,
    })
    await tap.stop()
    expect(await waitingIn(dead)).toBe(0)
  })

  it('stores a rejected message, and recognises it when it dies again', async () => {
    const { tap, next } = letters()
    await tap.start()
    await send()
    await reject()
    const first = await next()
    expect(first).toMatchObject({ source: orders, reason: 'rejected', deliveries: 1 })
    await tap.returnToSource(first, 1)
    await reject()
    const second = await next()
    expect(second).toMatchObject({ messageId: first.messageId })
    expect(second.headers).toMatchObject({ 'redrive-replays': '1', 'redrive-original-id': 'm-1' })
  })

  it('returns a letter to the queue in which it died, if `returnTo` is `queue`', async () => {
    const other = place.queue('other')
    await onRabbitMQ(url, async (channel) => {
      await channel.assertQueue(other)
      await channel.bindQueue(other, shop, 'order.#')
    })
    await send()
    await reject()
    const { tap, next } = letters({ returnTo: 'queue' })
    await tap.start()
    await tap.returnToSource(await next(), 1)
    expect(await waitingIn(orders)).toBe(1)
    expect(await waitingIn(other)).toBe(1)
  })

  it('rejects returning a letter if no queue is bound or the exchange is gone', async () => {
    await send()
    await reject()
    const { tap, next } = letters()
    await tap.start()
    const letter = await next()
    const origin = { ...letter.origin, routingKey: 'nobody.listens.to.this' }
    const unavailable = { code: 'MAILBOX_UNAVAILABLE' }
    await expect(tap.returnToSource({ ...letter, origin }, 1)).rejects.toMatchObject(unavailable)
    const nowhere = { ...letter.origin, exchange: `${shop}.gone` }
    await expect(tap.returnToSource({ ...letter, origin: nowhere }, 1)).rejects.toMatchObject(
      unavailable,
    )
    const invalid = { code: 'INVALID_INPUT' }
    await expect(tap.returnToSource({ ...letter, origin: {} }, 1)).rejects.toMatchObject(invalid)
    await tap.returnToSource(letter, 1)
    expect(await waitingIn(orders)).toBe(1)
  })

  it('leaves a letter in its queue until it is stored', async () => {
    await send()
    await reject()
    const clock = fakeClock()
    const troubles: unknown[] = []
    const tries = counter()
    const kept = counter()
    const keep = async (): Promise<void> => {
      tries.add()
      if (tries.count < 3) throw new Error('the store is unreachable')
      kept.add()
    }
    const tap = tapped({ keep, clock, onError: (error) => troubles.push(error) })
    await tap.start()
    for (const count of [1, 2]) {
      await tries.reached(count)
      await advanceUntil(clock, () => tries.count > count)
    }
    await kept.reached(1)
    expect(troubles).toHaveLength(2)
    await tap.stop()
    expect(await waitingIn(dead)).toBe(0)
  })

  it('requeues letters that are not stored when it stops', async () => {
    await send()
    await reject()
    const tried = counter()
    const keep = async (): Promise<void> => {
      tried.add()
      throw new Error('the store is unreachable')
    }
    const tap = tapped({ keep })
    await tap.start()
    await tried.reached(1)
    await tap.stop()
    expect(await waitingIn(dead)).toBe(1)
  })

  it.each(['classic', 'quorum'])(
    'reads past letters that cannot be stored, and leaves them in a %s queue',
    async (type) => {
      const queue = place.queue(type)
      const bad = Array.from({ length: 7 }, (_, n) => `bad-${n}`)
      await onRabbitMQ(url, async (channel) => {
        await channel.assertQueue(queue, { durable: true, arguments: { 'x-queue-type': type } })
        for (const messageId of [...bad, 'good-1', 'good-2'])
          channel.sendToQueue(queue, Buffer.from('x'), { messageId })
        await channel.checkQueue(queue)
      })
      const clock = fakeClock()
      const kept = new Set<string>()
      const isMended = new Set<string>()
      const keep = async ({ messageId }: ForeignLetter): Promise<void> => {
        if (messageId.startsWith('bad') && !isMended.has(messageId)) throw new Error('too large')
        kept.add(messageId)
      }
      const tap = tapped({ queue, keep, clock, concurrency: 2 })
      await tap.start()
      await advanceUntil(clock, () => kept.size === 2)
      expect(kept).toEqual(new Set(['good-1', 'good-2']))
      isMended.add('bad-0').add('bad-6')
      await advanceUntil(clock, () => kept.size === 4)
      await tap.stop()
      expect(await waitingIn(queue)).toBe(5)
    },
  )

  it('resumes after the connection broke, and loses nothing', async () => {
    const proxy = await createProxy(url)
    const { tap, next } = letters({ url: proxy.through(url) })
    await tap.start()
    await send({ messageId: 'before' })
    await reject()
    expect((await next()).messageId).toBe('before')
    await proxy.set('reset')
    await proxy.set('pass')
    await send({ messageId: 'after' })
    await reject()
    for (let letter = await next(); letter.messageId !== 'after'; letter = await next());
    await tap.stop()
    proxy.close()
    expect(await waitingIn(dead)).toBe(0)
  })

  it('rejects start if the queue does not exist', async () => {
    const tap = tapped({ queue: place.queue('nowhere'), keep: async () => {} })
    await expect(tap.start()).rejects.toMatchObject({ code: 'MAILBOX_UNAVAILABLE' })
  })

  it('stores a letter once, and returns it to its source over all its lives', async () => {
    await using opened = await openLetters()
    const { dlq, keep, keepAndCrash, next } = opened
    await send({ headers: { retries: 3, tenant: 'acme' } })
    await reject()
    const crashing = tapped({ keep: keepAndCrash })
    await crashing.start()
    const { letter } = await next('captured')
    expect(letter).toMatchObject({
      queue: orders,
      state: 'parked',
      failure: { name: 'DeadLettered', message: 'rejected' },
      category: 'unknown',
      headers: { retries: '3', tenant: 'acme' },
      source: { mailbox: orders, messageId: 'm-1', deliveries: 1 },
      metadata: {
        reason: 'rejected',
        origin: { queue: orders, exchange: shop, routingKey: 'order.new' },
      },
    })
    await crashing.stop()
    const tap = tapped({ keep })
    await tap.start()
    expect(await next('duplicate')).toMatchObject({ letter: { id: letter.id } })
    dlq.handle(orders, returnToSource(tap))
    dlq.start()
    await dlq.edit(letter.id, {
      payload: 'a mended order',
      contentType: 'text/plain',
      by: 'somebody',
      reason: 'it was wrong',
    })
    await dlq.retry(letter.id)
    expect((await next('resolved')).letter.id).toBe(letter.id)
    const back = await onRabbitMQ(url, async (channel) => {
      const message = await arrived(channel, orders)
      channel.nack(message, false, false)
      await channel.checkQueue(orders)
      return message
    })
    expect(back.content.toString()).toBe('a mended order')
    expect(back.fields).toMatchObject({ exchange: shop, routingKey: 'order.new' })
    expect(back.properties.headers).toMatchObject({ retries: 3, tenant: 'acme' })
    const again = (await next('captured')).letter
    expect(again.id).not.toBe(letter.id)
    expect(again.metadata).toMatchObject({ replays: 1, originalId: 'm-1' })
    expect((await dlq.find({ state: ['parked', 'resolved'] })).items).toHaveLength(2)
  })

  it.each([
    ['queue', (channel: Channel) => channel.deleteQueue(orders)],
    ['exchange', (channel: Channel) => channel.deleteExchange(shop)],
  ])('keeps a letter whose %s is gone', async (_, remove) => {
    await using opened = await openLetters()
    const { dlq, keep, next } = opened
    await send()
    await reject()
    const tap = tapped({ keep })
    await tap.start()
    const { letter } = await next('captured')
    await next('parked')
    await onRabbitMQ(url, remove)
    dlq.handle(orders, returnToSource(tap))
    dlq.start()
    await dlq.retry(letter.id)
    const { failure, state } = (await next('parked')).letter
    expect(state).toBe('parked')
    expect(failure.code).toBe('MAILBOX_UNAVAILABLE')
    expect(failure.message).toContain(`could not return the letter to the exchange "${shop}"`)
  })

  const reject = (): Promise<void> =>
    onRabbitMQ(url, async (channel) => {
      channel.nack(await arrived(channel, orders), false, false)
      await channel.checkQueue(orders)
    })
})

type Next = () => Promise<ForeignLetter>

async function arrived(channel: Channel, queue: string): Promise<GetMessage> {
  for (;;) {
    const message = await channel.get(queue)
    if (message !== false) return message
  }
}

const waitingIn = (queue: string): Promise<number> =>
  onRabbitMQ(url, async (channel) => (await channel.checkQueue(queue)).messageCount)

/** Counts, and resolves when the count is reached. */
function counter(): {
  readonly count: number
  add: () => void
  reached: (count: number) => Promise<void>
} {
  let count = 0
  const waiting = new Set<() => void>()
  return {
    get count() {
      return count
    },
    add: () => {
      count += 1
      for (const check of waiting) check()
    },
    reached: (wanted) =>
      new Promise((resolve) => {
        const check = (): void => {
          if (count < wanted) return
          waiting.delete(check)
          resolve()
        }
        waiting.add(check)
        check()
      }),
  }
}

async function advanceUntil(
  clock: ReturnType<typeof fakeClock>,
  isDone: () => boolean,
): Promise<void> {
  while (!isDone()) await clock.advance(100)
}
