import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { rabbitmqTap } from '../../src/taps/rabbitmq.ts'
import type { Keep, Tap } from '../../src/taps/tap.ts'
import { onRabbitMQ } from '../mailboxes/rabbitmq/place.ts'
import { rabbitmqPlace, type RabbitmqPlace } from '../servers/broker-places.ts'
import { backend } from '../servers/servers.ts'
import { inbox } from '../taps/inbox.ts'
import { createProxy, type Proxy } from './proxy.ts'

const { url, missing } = backend('rabbitmq')

describe.skipIf(missing)('a tap on a queue of RabbitMQ', () => {
  let place: RabbitmqPlace
  let proxy: Proxy
  let dead: string
  let tap: Tap | undefined

  beforeEach(async () => {
    place = rabbitmqPlace(url)
    dead = place.queue('dead')
    proxy = await createProxy(url)
    await onRabbitMQ(url, (channel) => channel.assertQueue(dead))
  })

  afterEach(async () => {
    await tap?.stop()
    proxy.close()
    await place.clear()
  })

  const startTap = async (keep: Keep): Promise<void> => {
    tap = rabbitmqTap({ url: proxy.through(url), queue: dead, keep, concurrency: 100 })
    await tap.start()
  }

  const countWaiting = (): Promise<number> =>
    onRabbitMQ(url, async (channel) => (await channel.checkQueue(dead)).messageCount)

  it('disconnected while it stores a hundred acknowledges none: all return with the same ids', async () => {
    const ids = Array.from({ length: 100 }, (_, n) => `m-${n}`)
    await onRabbitMQ(url, async (channel) => {
      for (const messageId of ids) channel.sendToQueue(dead, Buffer.from('x'), { messageId })
      await channel.checkQueue(dead)
    })
    const begun = inbox<string>()
    const gate = Promise.withResolvers<void>()
    await startTap(async ({ messageId }) => {
      begun.put(messageId)
      await gate.promise
    })
    const next = async (): Promise<string[]> => {
      const some = new Set<string>()
      while (some.size < ids.length) some.add(await begun.next())
      return [...some].toSorted()
    }
    expect(await next()).toEqual(ids.toSorted())
    expect(await countWaiting()).toBe(0)
    await proxy.set('reset')
    await expect.poll(countWaiting).toBe(100)
    await proxy.set('pass')
    expect(await next()).toEqual(ids.toSorted())
    gate.resolve()
    await tap!.stop()
    expect(await countWaiting()).toBe(0)
  })

  it('waits for a deleted queue, and reads it once it exists again', async () => {
    const kept = inbox<string>()
    await startTap(async ({ messageId }) => kept.put(messageId))
    await onRabbitMQ(url, (channel) => channel.deleteQueue(dead))
    await onRabbitMQ(url, async (channel) => {
      await channel.assertQueue(dead)
      channel.sendToQueue(dead, Buffer.from('x'), { messageId: 'after' })
      await channel.checkQueue(dead)
    })
    expect(await kept.next()).toBe('after')
  })
})
