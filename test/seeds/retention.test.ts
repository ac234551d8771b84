import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createClient } from 'redis'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import type { Mailbox } from '../../src/mailbox.ts'
import { redisMailbox } from '../../src/mailboxes/redis/redis.ts'
import { sqliteMailbox } from '../../src/mailboxes/sqlite/sqlite.ts'
import { fakeClock, type FakeClock } from '../../src/testing/index.ts'
import { redisPlace } from '../servers/places.ts'
import { backend } from '../servers/servers.ts'
import { quote } from './rows.ts'

async function values(mailbox: Mailbox): Promise<unknown[]> {
  return (await mailbox.receive({ max: 10, visibilitySeconds: 600 })).map((one) => one.value())
}

const day = 86_400

describe(quote('M13'), () => {
  let folder: string
  let clock: FakeClock
  const opened: Mailbox[] = []
  beforeEach(async () => {
    folder = await mkdtemp(join(tmpdir(), 'redrive-m13-'))
    clock = fakeClock()
  })
  afterEach(async () => {
    await Promise.all(opened.splice(0).map((one) => one.close()))
    await rm(folder, { recursive: true, force: true })
  })

  const open = async (mailbox: Mailbox): Promise<Mailbox> => {
    opened.push(mailbox)
    await mailbox.open()
    return mailbox
  }
  const inFile = (name: string, retentionSeconds?: number): Promise<Mailbox> => {
    const path = join(folder, 'mail.db')
    const options = retentionSeconds === undefined ? {} : { retentionSeconds }
    return open(sqliteMailbox({ path, name, clock, ...options }))
  }
  const days = (count: number): void => clock.set(clock.now() + count * day * 1000)

  it('a source keeps its messages for 3 days unless said, and its dead letters can stay for 30', async () => {
    const source = await inFile('requests')
    const dlq = await inFile('requests-dlq', 30 * day)
    await source.send('work')
    await dlq.send('dead')
    days(2.9)
    expect(await source.approximateCount()).toBe(1)
    days(0.1)
    expect(await source.approximateCount()).toBe(0)
    expect(await dlq.approximateCount()).toBe(1)
    days(27)
    expect(await dlq.receive()).toEqual([])
  })

  it('each letter ends for itself: an old one goes from a queue that is in use, a new one stays in one that is not', async () => {
    const dlq = await inFile('requests-dlq', 30 * day)
    await dlq.send('old')
    for (let n = 1; n <= 6; n++) {
      days(5)
      await dlq.send(n)
    }
    expect(await values(dlq)).toEqual([1, 2, 3, 4, 5, 6])
    const idle = await inFile('idle-dlq', 30 * day)
    await idle.send('first')
    days(29)
    await idle.send('second')
    days(29)
    expect(await values(idle)).toEqual(['second'])
  })

  it('0 keeps for ever', async () => {
    const dlq = await inFile('requests-dlq', 0)
    await dlq.send('dead')
    days(36_500)
    expect(await values(dlq)).toEqual(['dead'])
  })

  const server = backend('redis')
  it.skipIf(server.missing)(
    'on Redis what ended is told, the rest stays, and no key has a time to live',
    async () => {
      const place = redisPlace(server.url)
      const client = createClient({ url: server.url })
      await client.connect()
      try {
        const parts = { url: server.url, prefix: place.name, name: 'requests-dlq' }
        let ended = 0
        const onExpired = (count: number): void => void (ended += count)
        const brief = await open(redisMailbox({ ...parts, retentionSeconds: 0.05, onExpired }))
        const lasting = await open(redisMailbox({ ...parts, retentionSeconds: 30 * day }))
        await lasting.send('stays')
        await brief.send('goes')
        while ((await brief.approximateCount()) > 1);
        expect(ended).toBe(1)
        expect(await values(lasting)).toEqual(['stays'])
        const found: string[] = []
        for await (const keys of client.scanIterator({ MATCH: `*${place.name}*`, COUNT: 1000 }))
          found.push(...keys)
        expect(found.length).toBeGreaterThan(3)
        for (const key of found) expect(await client.ttl(key)).toBe(-1)
      } finally {
        client.destroy()
        await Promise.all(opened.splice(0).map((one) => one.close()))
        await place.clear()
      }
    },
  )
})
