import { createClient } from 'redis'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import type { Mailbox } from '../../../src/mailbox.ts'
import type { RedisClient } from '../../../src/backends/redis/connection.ts'
import { redisMailbox } from '../../../src/mailboxes/redis/redis.ts'
import { redisPlace, type Place } from '../../servers/places.ts'
import { single } from './redis-bench.ts'

const { url, missing } = single

describe.skipIf(missing)('redisMailbox with a client of the application', () => {
  let place: Place
  let client: ReturnType<typeof createClient>
  let mailbox: Mailbox

  beforeAll(() => {
    place = redisPlace(url)
  })
  afterAll(() => place.clear())
  beforeEach(async () => {
    client = createClient({ url })
    client.on('error', () => {})
    await client.connect()
    mailbox = redisMailbox({ client, prefix: place.name, name: 'work', allowVolatile: true })
    await mailbox.open()
  })
  afterEach(async () => {
    await mailbox.close()
    client.destroy()
  })

  it('delivers messages to a receiver that waits', async () => {
    const receiving = mailbox.receive({ waitSeconds: 20 })
    await mailbox.send({ n: 1 })
    const [message] = await receiving
    expect(message!.value()).toEqual({ n: 1 })
    await message!.acknowledge()
    expect(await mailbox.approximateCount()).toBe(0)
    expect(await mailbox.health()).toMatchObject({ ok: true })
  })

  it('leaves the client open when it closes', async () => {
    await mailbox.send('a')
    await mailbox.close()
    expect(await client.ping()).toBe('PONG')
  })

  it('rejects another object, url and client together, and neither of them', () => {
    const invalid = expect.objectContaining({ code: 'INVALID_CONFIG' })
    expect(() => redisMailbox({ client: {} as RedisClient, name: 'm' })).toThrow(invalid)
    expect(() => redisMailbox({ url, client, name: 'm' })).toThrow(invalid)
    expect(() => redisMailbox({ name: 'm' })).toThrow(invalid)
  })
})
