import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { createClient } from 'redis'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import type { Mailbox } from '../../src/mailbox.ts'
import { redisMailbox } from '../../src/mailboxes/redis/redis.ts'
import { openMailbox } from '../../src/connect/mailbox.ts'
import { sqliteMailbox } from '../../src/mailboxes/sqlite/sqlite.ts'
import { fakeClock, type FakeClock } from '../../src/testing/index.ts'
import { redisPlace } from '../servers/places.ts'
import { backend, freshName } from '../servers/servers.ts'
import { brokers, onBroker, startBrokers } from './brokers.ts'
import { aFolder } from '../folders.ts'
import { clause, row } from './rows.ts'

async function values(mailbox: Mailbox): Promise<unknown[]> {
  return (await mailbox.receive({ max: 10, visibilitySeconds: 600 })).map((one) => one.value())
}

/** Receives the visible messages and releases them. */
async function peek(mailbox: Mailbox): Promise<unknown[]> {
  const messages = await mailbox.receive({ max: 10 })
  for (const message of messages) await message.nack({ failed: false })
  return messages.map((one) => one.value())
}

const day = 86_400

/** Counts the messages that a mailbox reports as expired from now on. */
function countExpired(mailbox: Mailbox): () => number {
  let count = 0
  mailbox.on('expired', (expired) => void (count += expired.count))
  return () => count
}

startBrokers()

describe(row('M13'), () => {
  const root = aFolder('retention')
  let folder: string
  let clock: FakeClock
  const opened: Mailbox[] = []
  beforeEach(async () => {
    folder = join(root, freshName())
    mkdirSync(folder)
    clock = fakeClock()
  })
  afterEach(async () => {
    await Promise.all(opened.splice(0).map((one) => one.close()))
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

  describe(clause('M13', 'retention per queue and per letter'), () => {
    it('two queues of one file have separate retentions', async () => {
      const source = await inFile('requests', 3 * day)
      const dlq = await inFile('requests-dlq', 30 * day)
      await source.send('work')
      await dlq.send('dead')
      days(2.9)
      expect(await peek(source)).toEqual(['work'])
      days(0.1)
      expect(await peek(source)).toEqual([])
      expect(await peek(dlq)).toEqual(['dead'])
      days(27)
      expect(await peek(dlq)).toEqual([])
    })

    it('each letter expires by its own age, also in a queue that is in use', async () => {
      const dlq = await inFile('requests-dlq', 30 * day)
      await dlq.send('old')
      for (let n = 1; n <= 6; n++) {
        days(5)
        await dlq.send(n)
      }
      expect(await values(dlq)).toEqual([1, 2, 3, 4, 5, 6])
    })
  })

  describe(clause('M13', 'never by losing a whole queue'), () => {
    it('a new letter stays in a queue without readers', async () => {
      const idle = await inFile('idle-dlq', 30 * day)
      await idle.send('first')
      days(29)
      await idle.send('second')
      days(29)
      expect(await values(idle)).toEqual(['second'])
    })

    const server = backend('redis')
    it.skipIf(server.missing)('on Redis no key has a time to live', async () => {
      const place = redisPlace(server.url)
      const client = createClient({ url: server.url })
      await client.connect()
      try {
        const parts = { url: server.url, prefix: place.name, name: 'requests-dlq' }
        const dlq = await open(redisMailbox({ ...parts, retentionSeconds: 30 * day }))
        await dlq.send('stays')
        const found: string[] = []
        for await (const keys of client.scanIterator({ MATCH: `*${place.name}*`, COUNT: 1000 }))
          found.push(...keys)
        expect(found.length).toBeGreaterThan(2)
        for (const key of found) expect(await client.ttl(key)).toBe(-1)
      } finally {
        client.destroy()
        await Promise.all(opened.splice(0).map((one) => one.close()))
        await place.clear()
      }
    })
  })

  describe(
    clause(
      'M13',
      'a dead letter queue keeps for ever unless a retention is set (the seed suggests 30 days)',
    ),
    () => {
      const century = 36_525

      it('a queue opened by its URL alone keeps its letters', async () => {
        const url = `sqlite:${join(folder, 'mail.db')}#requests-dlq`
        const dlq = await open(await openMailbox(url, { clock }))
        await dlq.send('dead')
        days(century)
        expect(await values(dlq)).toEqual(['dead'])
      })

      it('a retention of 30 days is a parameter of the URL', async () => {
        const url = `sqlite:${join(folder, 'mail.db')}?retentionSeconds=${30 * day}#requests-dlq`
        const dlq = await open(await openMailbox(url, { clock }))
        await dlq.send('dead')
        days(29)
        expect(await peek(dlq)).toEqual(['dead'])
        days(1)
        expect(await peek(dlq)).toEqual([])
      })

      it('a retention of 0 keeps letters, too', async () => {
        const dlq = await inFile('requests-dlq', 0)
        await dlq.send('dead')
        days(century)
        expect(await values(dlq)).toEqual(['dead'])
      })
    },
  )

  it(clause('M13', 'expiry raises an event'), async () => {
    const dlq = await inFile('requests-dlq', 30 * day)
    const expired = countExpired(dlq)
    for (const n of [1, 2, 3]) await dlq.send(n)
    days(29)
    await peek(dlq)
    expect(expired()).toBe(0)
    days(1)
    await dlq.send('fresh')
    expect(await values(dlq)).toEqual(['fresh'])
    expect(expired()).toBe(3)
  })

  describe(
    clause('M13', 'settable on every broker that can, refused with a reason where it cannot'),
    () => {
      it.each(brokers)('%s removes older letters, and reports it', async (kind) => {
        await onBroker(kind, { retentionSeconds: 0.001 }, async ({ mailbox }) => {
          const expired = countExpired(mailbox)
          await mailbox.send('old')
          const receive = async (): Promise<number> => {
            for (const message of await mailbox.receive()) await message.nack()
            return expired()
          }
          await expect.poll(receive).toBe(1)
          expect(await mailbox.receive()).toEqual([])
        })
      })

      it('SQS deletes after 14 days itself: a longer retention is refused', async () => {
        const tooLong = onBroker('sqs', { retentionSeconds: 30 * day }, async () => {})
        await expect(tooLong).rejects.toMatchObject({
          code: 'INVALID_CONFIG',
          message: expect.stringMatching(/retentionSeconds must be 1209600 or less/),
        })
      })
    },
  )
})
