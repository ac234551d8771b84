import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { errorTable, RedriveError, type ErrorCode } from '../../src/errors.ts'
import type { Mailbox, Message } from '../../src/mailbox.ts'
import { kafkaMailbox } from '../../src/mailboxes/kafka/kafka.ts'
import { memoryMailbox } from '../../src/mailboxes/memory/memory.ts'
import { natsMailbox } from '../../src/mailboxes/nats/nats.ts'
import { postgresMailbox } from '../../src/mailboxes/postgres/postgres.ts'
import { rabbitmqMailbox } from '../../src/mailboxes/rabbitmq/rabbitmq.ts'
import { redisMailbox } from '../../src/mailboxes/redis/redis.ts'
import { sqliteMailbox } from '../../src/mailboxes/sqlite/sqlite.ts'
import { sqsMailbox } from '../../src/mailboxes/sqs/sqs.ts'
import { fakeClock, mailboxContract } from '../../src/testing/index.ts'
import { within } from '../../src/testing/mailbox/stage.ts'
import type { ClosableMailboxBench } from '../contract/run-mailbox-contract.ts'
import { openMailboxBench } from '../mailboxes/bench.ts'
import { openSqliteBench } from '../mailboxes/sqlite/sqlite-bench.ts'
import { quote } from './rows.ts'

const openMemoryBench = (): Promise<ClosableMailboxBench> => {
  const clock = fakeClock()
  return openMailboxBench({
    make: (name, resolver) => memoryMailbox({ name, clock, resolver }),
    time: clock,
  })
}

const code = (expected: ErrorCode): object => ({ code: expected })

async function values(mailbox: Mailbox): Promise<unknown[]> {
  return (await mailbox.receive({ max: 10, visibilitySeconds: 600 })).map((one) => one.value())
}

describe(quote('M1'), () => {
  const kinds: [string, () => Promise<ClosableMailboxBench>][] = [
    ['memory', openMemoryBench],
    ['sqlite', openSqliteBench],
  ]
  describe.each(kinds)('%s', (_kind, open) => {
    let bench: ClosableMailboxBench
    let mailbox: Mailbox
    beforeEach(async () => {
      bench = await open()
      mailbox = bench.mailbox
    })
    afterEach(() => bench.close())

    const receiveOne = async (visibilitySeconds = 30): Promise<Message> => {
      const [message] = await mailbox.receive({ visibilitySeconds })
      return message!
    }

    it('send answers with an id, receive goes in the order of sending, acknowledge deletes', async () => {
      const sent: string[] = []
      for (const n of [1, 2, 3]) sent.push(await mailbox.send({ n }))
      expect(new Set(sent).size).toBe(3)
      const first = await receiveOne()
      expect(first).toMatchObject({ id: sent[0], deliveries: 1 })
      const rest = await mailbox.receive({ max: 10 })
      expect(rest.map(({ id }) => id)).toEqual(sent.slice(1))
      for (const message of [first, ...rest]) await message.acknowledge()
      expect(await mailbox.approximateCount()).toBe(0)
      await bench.advance(60_000)
      expect(await mailbox.receive()).toEqual([])
    })

    it('receives 1 to 10 messages, hidden for 0 to 43,200 seconds, and refuses what is beyond', async () => {
      for (const max of [0, 11, 1.5])
        await expect(mailbox.receive({ max })).rejects.toMatchObject(code('INVALID_INPUT'))
      for (const visibilitySeconds of [-1, 43_201, Number.NaN])
        await expect(mailbox.receive({ visibilitySeconds })).rejects.toMatchObject(
          code('INVALID_INPUT'),
        )
      await expect(mailbox.receive({ waitSeconds: -1 })).rejects.toMatchObject(
        code('INVALID_INPUT'),
      )
      await mailbox.send('seen twice')
      const [passing] = await mailbox.receive({ visibilitySeconds: 0 })
      expect(passing?.value()).toBe('seen twice')
      const [held] = await mailbox.receive({ max: 10, visibilitySeconds: 43_200 })
      expect(held?.deliveries).toBe(2)
      for (const seconds of [-1, 43_201]) {
        await expect(held!.extend(seconds)).rejects.toMatchObject(code('INVALID_INPUT'))
        await expect(held!.nack({ delaySeconds: seconds })).rejects.toMatchObject(
          code('INVALID_INPUT'),
        )
      }
      await held!.extend(43_200)
      await held!.nack({ delaySeconds: 43_200 })
      expect(await mailbox.approximateCount()).toBe(1)
    })

    it('a long poll gets a late message at once, although it asked for ten, and ends empty when its time is over', async () => {
      const waiting = mailbox.receive({ max: 10, waitSeconds: 40_000 })
      await mailbox.send('late')
      expect((await waiting).map((one) => one.value())).toEqual(['late'])
      expect(await within(bench, 10_000, mailbox.receive({ waitSeconds: 2 }))).toEqual([])
    })

    it('nack gives a message back, at once or after its delay', async () => {
      await mailbox.send('work')
      await (await receiveOne()).nack()
      const second = await receiveOne()
      expect(second).toMatchObject({ deliveries: 2, failures: 1 })
      await second.nack({ delaySeconds: 60 })
      expect(await mailbox.receive()).toEqual([])
      await bench.advance(60_000)
      expect(await receiveOne()).toMatchObject({ deliveries: 3, failures: 2 })
    })

    it('a lapsed message comes again with a fresh receipt, and the stale one is refused', async () => {
      await mailbox.send('slow')
      const stale = await receiveOne(10)
      await bench.advance(10_000)
      const fresh = await receiveOne()
      expect(fresh).toMatchObject({ id: stale.id, deliveries: 2, failures: 0 })
      const acts = [() => stale.acknowledge(), () => stale.nack(), () => stale.extend(60)]
      for (const act of acts) await expect(act()).rejects.toMatchObject(code('RECEIPT_EXPIRED'))
      expect(stale.finalized).toBe(false)
      await fresh.acknowledge()
      expect(await mailbox.approximateCount()).toBe(0)
    })

    it('extend keeps a message hidden, and never shortens', async () => {
      await mailbox.send('long')
      const message = await receiveOne(10)
      await message.extend(100)
      await message.extend(5)
      await bench.advance(99_000)
      expect(await mailbox.receive()).toEqual([])
      await bench.advance(1000)
      expect(await receiveOne()).toMatchObject({ deliveries: 2 })
    })

    it('reply reaches the mailbox that the message names, until the message is settled', async () => {
      const replies = await bench.elsewhere('replies')
      await mailbox.send('ask', { replyTo: replies.name })
      const asked = await receiveOne()
      await asked.reply('half')
      await asked.reply('whole')
      expect(await values(replies)).toEqual(['half', 'whole'])
      await asked.nack()
      await expect(asked.reply('more')).rejects.toMatchObject(code('MESSAGE_FINALIZED'))
      const again = await receiveOne()
      await again.acknowledge()
      for (const act of [() => again.reply('x'), () => again.acknowledge(), () => again.nack()])
        await expect(act()).rejects.toMatchObject(code('MESSAGE_FINALIZED'))
      await mailbox.send('tell')
      const told = await receiveOne()
      await expect(told.reply('x')).rejects.toMatchObject(code('REPLY_UNAVAILABLE'))
    })

    it('approximateCount counts hidden messages too, and purge deletes them and makes receipts stale', async () => {
      for (const n of [1, 2, 3]) await mailbox.send(n)
      const out = await receiveOne()
      expect(await mailbox.approximateCount()).toBe(3)
      expect(await mailbox.purge()).toBe(3)
      expect(await mailbox.approximateCount()).toBe(0)
      await expect(out.acknowledge()).rejects.toMatchObject(code('RECEIPT_EXPIRED'))
    })

    it('close wakes whoever waits, and then everything is refused', async () => {
      await mailbox.send('held')
      const held = await receiveOne()
      const waiting = [1, 2, 3].map(() => mailbox.receive({ waitSeconds: 40_000 }))
      await mailbox.close()
      expect(await Promise.all(waiting)).toEqual([[], [], []])
      expect(mailbox.closed).toBe(true)
      expect(await mailbox.receive({ waitSeconds: 60 })).toEqual([])
      const acts = [
        () => mailbox.send('x'),
        () => mailbox.purge(),
        () => mailbox.approximateCount(),
        () => held.acknowledge(),
      ]
      for (const act of acts) await expect(act()).rejects.toMatchObject(code('CLOSED'))
    })

    it('many who receive at once get each message once, and of many acknowledges one wins', async () => {
      const sent = await Promise.all(Array.from({ length: 60 }, (_, n) => mailbox.send(n)))
      const batches = await Promise.all(
        Array.from({ length: 20 }, () => mailbox.receive({ max: 5 })),
      )
      const got = batches.flat()
      expect(got.map(({ id }) => id).toSorted()).toEqual(sent.toSorted())
      const outcomes = await Promise.allSettled(
        got.flatMap((message) => [message.acknowledge(), message.acknowledge()]),
      )
      expect(outcomes.filter(({ status }) => status === 'fulfilled')).toHaveLength(60)
      expect(await mailbox.approximateCount()).toBe(0)
    })

    it('a body that cannot be decoded is delivered, and only reading it fails', async () => {
      await mailbox.send(new Uint8Array([0x7b, 0xff]), { contentType: 'application/json' })
      const message = await receiveOne()
      expect(() => message.value()).toThrow(expect.objectContaining(code('UNDECODABLE')))
      await message.acknowledge()
    })

    it('a body over the limit is refused', async () => {
      const body = new Uint8Array(mailbox.powers.maxBodyBytes + 1)
      await expect(mailbox.send(body)).rejects.toMatchObject(code('TOO_LARGE'))
      expect(await mailbox.approximateCount()).toBe(0)
    })
  })

  it('a full mailbox refuses more, counts what is out, and has room once that is done', async () => {
    const mailbox = memoryMailbox({ name: 'small', clock: fakeClock(), maxMessages: 2 })
    for (const n of [1, 2]) await mailbox.send(n)
    const [out] = await mailbox.receive()
    await expect(mailbox.send(3)).rejects.toMatchObject(code('MAILBOX_FULL'))
    await out!.acknowledge()
    await mailbox.send(3)
    expect(() => memoryMailbox({ name: 'none', maxMessages: 0 })).toThrow(RedriveError)
  })

  it('each error has its code in the one table, which says whether trying again helps', () => {
    const retryable = (of: ErrorCode): boolean => errorTable[of].retry
    expect((['MAILBOX_FULL', 'MAILBOX_UNAVAILABLE'] satisfies ErrorCode[]).map(retryable)).toEqual([
      true,
      true,
    ])
    const lasting = [
      'RECEIPT_EXPIRED',
      'MESSAGE_FINALIZED',
      'REPLY_UNAVAILABLE',
      'UNDECODABLE',
      'TOO_LARGE',
      'INVALID_INPUT',
      'CLOSED',
    ] satisfies ErrorCode[]
    expect(lasting.filter(retryable)).toEqual([])
  })
})

describe(quote('M2'), () => {
  const name = 'requests'
  const drivers: Record<string, () => Mailbox> = {
    memory: () => memoryMailbox({ name }),
    sqlite: () => sqliteMailbox({ name, path: 'never-opened.db' }),
    postgres: () => postgresMailbox({ name, url: 'postgres://127.0.0.1:1/none' }),
    redis: () => redisMailbox({ name, url: 'redis://127.0.0.1:1' }),
    rabbitmq: () => rabbitmqMailbox({ name, url: 'amqp://127.0.0.1:1' }),
    nats: () => natsMailbox({ name, url: 'nats://127.0.0.1:1' }),
    sqs: () => sqsMailbox({ name, url: 'sqs://127.0.0.1:1?region=us-east-1' }),
    kafka: () => kafkaMailbox({ name, url: 'kafka://127.0.0.1:1' }),
  }
  const kinds = Object.keys(drivers)
  const tests = join(import.meta.dirname, '../mailboxes')

  it.each(kinds)('%s is held to the contract', (kind) => {
    const file = [join(tests, kind, 'contract.test.ts'), join(tests, `${kind}.test.ts`)].find(
      (path) => existsSync(path),
    )
    const text = readFileSync(file!, 'utf8')
    expect(text).toContain(`runMailboxContract('${kind}Mailbox`)
    expect(text).not.toMatch(/\bskip\(|\.skip\b|\.only\b|\.todo\b/)
  })

  it.each(kinds)('%s says what it cannot do, and is held to nearly everything', (kind) => {
    const { powers } = drivers[kind]!()
    const { kind: named, maxBodyBytes, maxDelaySeconds = 900, ...can } = powers
    expect(named).toBe(kind)
    expect(maxBodyBytes).toBeGreaterThan(100_000)
    expect(maxDelaySeconds).toBeGreaterThanOrEqual(900)
    expect(Object.values(can).every((power) => typeof power === 'boolean')).toBe(true)
    const applying = mailboxContract.filter(({ needs }) => needs?.(powers) === undefined)
    expect(applying.length).toBeGreaterThan(0.8 * mailboxContract.length)
    expect(powers.durable).toBe(kind !== 'memory')
  })

  it('every power that a broker may lack has checks that say so when they are left out', () => {
    const able = drivers['postgres']!().powers
    // Where deliveries are not counted exactly, a check asks for less rather than for nothing.
    const { kind: _, maxBodyBytes: __, exactDeliveries: ___, ...can } = able
    for (const power of Object.keys(can)) {
      const left = mailboxContract.filter(
        ({ needs }) => !needs?.(able) && needs?.({ ...able, [power]: false }),
      )
      expect(left.length, power).toBeGreaterThan(0)
    }
  })

  it('nobody is excused from what makes a mailbox one', () => {
    const core = mailboxContract.filter(({ needs }) => !needs)
    expect(core.length).toBeGreaterThanOrEqual(50)
  })
})
