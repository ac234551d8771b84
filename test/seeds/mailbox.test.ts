import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { errorTable, RedriveError, type ErrorCode } from '../../src/errors.ts'
import type { Mailbox, Message } from '../../src/mailbox.ts'
import { memoryMailbox } from '../../src/mailboxes/memory/memory.ts'
import { fakeClock } from '../../src/testing/index.ts'
import { waitWithin } from '../../src/testing/mailbox/steps.ts'
import type { ClosableMailboxBench } from '../contract/run-mailbox-contract.ts'
import { openMailboxBench } from '../mailboxes/bench.ts'
import { openSqliteBench } from '../mailboxes/sqlite/sqlite-bench.ts'
import { clause, row } from './rows.ts'

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

describe(row('M1'), () => {
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

    describe(clause('M1', 'Mailbox: send, receive, acknowledge'), () => {
      it('send returns an id, receive keeps the order of sending, acknowledge deletes', async () => {
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
    })

    it(clause('M1', 'receive (max 1–10, visibility 0–43,200 s)'), async () => {
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

    it(clause('M1', 'long poll that returns on the first message'), async () => {
      const waiting = mailbox.receive({ max: 10, waitSeconds: 40_000 })
      await mailbox.send('late')
      expect((await waiting).map((one) => one.value())).toEqual(['late'])
      expect(await waitWithin(bench, 10_000, mailbox.receive({ waitSeconds: 2 }))).toEqual([])
    })

    it(clause('M1', 'nack with delay'), async () => {
      await mailbox.send('work')
      await (await receiveOne()).nack()
      const second = await receiveOne()
      expect(second).toMatchObject({ deliveries: 2, failures: 1 })
      await second.nack({ delaySeconds: 60 })
      expect(await mailbox.receive()).toEqual([])
      await bench.advance(60_000)
      expect(await receiveOne()).toMatchObject({ deliveries: 3, failures: 2 })
    })

    it(clause('M1', 'a fresh receipt handle per delivery'), async () => {
      await mailbox.send('slow')
      const expired = await receiveOne(10)
      await bench.advance(10_000)
      const fresh = await receiveOne()
      expect(fresh).toMatchObject({ id: expired.id, deliveries: 2, failures: 0 })
      await fresh.extend(60)
      await fresh.acknowledge()
      expect(fresh.finalized).toBe(true)
      expect(expired.finalized).toBe(false)
      expect(await mailbox.approximateCount()).toBe(0)
    })

    it(clause('M1', 'stale handles refused'), async () => {
      await mailbox.send('slow')
      const stale = await receiveOne(10)
      await bench.advance(10_000)
      const fresh = await receiveOne()
      const acts = [() => stale.acknowledge(), () => stale.nack(), () => stale.extend(60)]
      for (const act of acts) await expect(act()).rejects.toMatchObject(code('RECEIPT_EXPIRED'))
      expect(stale.finalized).toBe(false)
      expect(await mailbox.receive()).toEqual([])
      await fresh.acknowledge()
    })

    it(clause('M1', 'extend (never shortens)'), async () => {
      await mailbox.send('long')
      const message = await receiveOne(10)
      await message.extend(100)
      await message.extend(5)
      await bench.advance(99_000)
      expect(await mailbox.receive()).toEqual([])
      await bench.advance(1000)
      expect(await receiveOne()).toMatchObject({ deliveries: 2 })
    })

    it(clause('M1', 'reply'), async () => {
      const replies = await bench.elsewhere('replies')
      await mailbox.send('ask', { replyTo: replies.name })
      const receiveOptions = await receiveOne()
      await receiveOptions.reply('half')
      await receiveOptions.reply('whole')
      expect(await values(replies)).toEqual(['half', 'whole'])
      await receiveOptions.nack()
      await expect(receiveOptions.reply('more')).rejects.toMatchObject(code('MESSAGE_FINALIZED'))
      const again = await receiveOne()
      await again.acknowledge()
      for (const act of [() => again.reply('x'), () => again.acknowledge(), () => again.nack()])
        await expect(act()).rejects.toMatchObject(code('MESSAGE_FINALIZED'))
      await mailbox.send('tell')
      const unanswerable = await receiveOne()
      await expect(unanswerable.reply('x')).rejects.toMatchObject(code('REPLY_UNAVAILABLE'))
    })

    it(clause('M1', 'purge, approximateCount'), async () => {
      for (const n of [1, 2, 3]) await mailbox.send(n)
      const out = await receiveOne()
      expect(await mailbox.approximateCount()).toBe(3)
      expect(await mailbox.purge()).toBe(3)
      expect(await mailbox.approximateCount()).toBe(0)
      await expect(out.acknowledge()).rejects.toMatchObject(code('RECEIPT_EXPIRED'))
    })

    it(clause('M1', 'close'), async () => {
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

    describe(clause('M1', 'Mailbox: send, receive, acknowledge'), () => {
      it('concurrent receives get each message once, and one of several acknowledges succeeds', async () => {
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
    })

    describe(clause('M1', 'typed errors'), () => {
      it('UNDECODABLE: the message is delivered, and only reading it fails', async () => {
        await mailbox.send(new Uint8Array([0x7b, 0xff]), { contentType: 'application/json' })
        const message = await receiveOne()
        expect(() => message.value()).toThrow(expect.objectContaining(code('UNDECODABLE')))
        await message.acknowledge()
      })
    })

    describe(clause('M1', 'typed errors'), () => {
      it('TOO_LARGE: a body over the limit is not sent', async () => {
        const body = new Uint8Array(mailbox.powers.maxBodyBytes + 1)
        await expect(mailbox.send(body)).rejects.toMatchObject(code('TOO_LARGE'))
        expect(await mailbox.approximateCount()).toBe(0)
      })
    })
  })

  describe(clause('M1', 'typed errors'), () => {
    it('MAILBOX_FULL: counts messages in flight, and there is room once they are acknowledged', async () => {
      const mailbox = memoryMailbox({ name: 'small', clock: fakeClock(), maxMessages: 2 })
      for (const n of [1, 2]) await mailbox.send(n)
      const [out] = await mailbox.receive()
      await expect(mailbox.send(3)).rejects.toMatchObject(code('MAILBOX_FULL'))
      await out!.acknowledge()
      await mailbox.send(3)
      expect(() => memoryMailbox({ name: 'none', maxMessages: 0 })).toThrow(RedriveError)
    })
  })

  describe(clause('M1', 'typed errors'), () => {
    it('each code defines whether to repeat the call', () => {
      const retryable = (of: ErrorCode): boolean => errorTable[of].retry
      expect(
        (['MAILBOX_FULL', 'MAILBOX_UNAVAILABLE'] satisfies ErrorCode[]).map(retryable),
      ).toEqual([true, true])
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
})
