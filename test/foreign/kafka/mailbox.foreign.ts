import { Admin } from '@platformatic/kafka'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { openMailbox } from '../../../src/index.ts'
import { kafkaPlace, makeTopics } from '../../servers/broker-places.ts'
import { backend } from '../../servers/servers.ts'
import { java } from '../java.ts'

const { url } = backend('kafka')

describe('a Kafka mailbox and the Java producer', () => {
  const place = kafkaPlace(url)
  const topic = `${place.name}-orders`
  const admin = new Admin({ clientId: place.name, bootstrapBrokers: [url] })

  beforeAll(() => makeTopics(admin, [topic]))
  afterAll(async () => {
    await admin.close()
    await place.clear()
  })

  it('receives what the producer sent', async () => {
    await using producer = java('kafka', join(import.meta.dirname, 'Produce.java'), [
      url,
      topic,
      'a key',
      'a value',
    ])
    expect(await producer.next()).toEqual({ partition: 0, offset: 0 })
    const mailbox = await openMailbox(`kafka://${url}?prefix=${place.name}-#orders`)
    try {
      const [message] = await mailbox.receive({ waitSeconds: 20 })
      expect(message).toMatchObject({ id: `${topic}:0:0`, headers: { trace: 'abc' } })
      expect(Buffer.from(message!.body.bytes).toString()).toBe('a value')
      await message!.acknowledge()
    } finally {
      await mailbox.close()
    }
  })
})
