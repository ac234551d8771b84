import assert from 'node:assert/strict'
import { toMs } from '../../letter/time.ts'
import type { Browsed, Mailbox } from '../../mailbox.ts'
import { checkOn, needs } from './check.ts'
import {
  ids,
  lapseMs,
  expectEmpty,
  expectRejection,
  expectSameBytes,
  sendAll,
  shortSeconds,
  receiveMany,
  receiveOne,
  asNumber,
} from './steps.ts'

const check = checkOn('count')

export const countChecks = [
  check('counts the deliveries of each message separately', async (bench) => {
    await bench.mailbox.send('counted')
    for (let deliveries = 1; deliveries <= 4; deliveries++) {
      const message = await receiveOne(bench)
      assert.equal(message.deliveries, deliveries)
      await message.nack()
    }
    await (await receiveOne(bench)).acknowledge()
    await bench.mailbox.send('another')
    assert.equal((await receiveOne(bench)).deliveries, 1)
  }),

  check(
    'counts a delivery whose visibility expired',
    async (bench) => {
      await bench.mailbox.send('dropped')
      const first = await receiveOne(bench, { visibilitySeconds: shortSeconds })
      assert.equal(first.deliveries, 1)
      await bench.advance(lapseMs)
      const second = await receiveOne(bench)
      assert.equal(second.deliveries, 2)
      if (bench.mailbox.powers.remembers)
        assert.equal(second.failures, 0, 'an expired delivery is not a failure')
    },
    needs('visibility'),
  ),

  check(
    'counts a nack as a failure unless it has failed: false',
    async (bench) => {
      await bench.mailbox.send('tried')
      const failures: number[] = []
      for (const options of [{}, { failed: false }, { failed: true }, { failed: false }]) {
        const message = await receiveOne(bench)
        failures.push(message.failures)
        await message.nack(options)
      }
      failures.push((await receiveOne(bench)).failures)
      assert.deepEqual(failures, [0, 1, 1, 2, 2])
    },
    needs('remembers'),
  ),

  check(
    'does not count a delivery that was nacked with failed: false',
    async (bench) => {
      await bench.mailbox.send('released')
      const counts: number[] = []
      const firsts = new Set<string>()
      for (const failed of [false, false, true, false, false, true, false]) {
        const message = await receiveOne(bench)
        counts.push(message.deliveries)
        firsts.add(message.firstReceivedAt)
        await message.nack({ failed })
      }
      const last = await receiveOne(bench)
      assert.deepEqual([...counts, last.deliveries], [1, 1, 1, 2, 2, 2, 3, 3])
      assert.equal(last.failures, 2)
      assert.deepEqual([...firsts], [last.firstReceivedAt], 'firstReceivedAt stays the same')
      await last.acknowledge()
    },
    needs('remembers'),
  ),

  check(
    'counts earlier deliveries as failures if the broker does not count failures',
    async (bench) => {
      await bench.mailbox.send('tried')
      const first = await receiveOne(bench)
      assert.equal(first.failures, 0)
      await first.nack()
      assert.equal((await receiveOne(bench)).failures, 1)
    },
    (powers) => (powers.remembers ? 'the broker counts failures' : undefined),
  ),

  check(
    'keeps enqueuedAt and firstReceivedAt across deliveries',
    async (bench) => {
      await bench.mailbox.send('dated')
      await bench.advance(50)
      const first = await receiveOne(bench)
      await first.nack()
      await bench.advance(100)
      const second = await receiveOne(bench)
      assert.equal(second.firstReceivedAt, first.firstReceivedAt)
      assert.equal(second.enqueuedAt, first.enqueuedAt)
      assert.ok(toMs(first.enqueuedAt) <= toMs(first.firstReceivedAt))
    },
    needs('remembers'),
  ),

  check(
    'counts waiting, in-flight and delayed messages',
    async (bench) => {
      const { mailbox } = bench
      assert.equal(await mailbox.approximateCount(), 0)
      await sendAll(mailbox, [1, 2, 3])
      assert.equal(await mailbox.approximateCount(), 3)
      const [first, second] = await receiveMany(bench, 2)
      assert.equal(await mailbox.approximateCount(), 3, 'messages in flight count')
      await first!.acknowledge()
      await second!.nack()
      assert.equal(await mailbox.approximateCount(), 2)
      if (mailbox.powers.delay) {
        await mailbox.send(4, { delaySeconds: 60 })
        assert.equal(await mailbox.approximateCount(), 3, 'delayed messages count')
      }
    },
    needs('exactCount'),
  ),

  check(
    'purges waiting and in-flight messages, and returns their number',
    async (bench) => {
      const { mailbox } = bench
      await sendAll(mailbox, [1, 2, 3])
      await receiveMany(bench, 2)
      if (mailbox.powers.delay) await mailbox.send(4, { delaySeconds: 1 })
      const purged = await mailbox.purge()
      if (mailbox.powers.exactCount) {
        assert.equal(purged, mailbox.powers.delay ? 4 : 3)
        assert.equal(await mailbox.approximateCount(), 0)
        assert.equal(await mailbox.purge(), 0)
      }
      await expectEmpty(mailbox)
      if (mailbox.powers.delay) await bench.advance(lapseMs)
      await expectEmpty(mailbox)
    },
    needs('purge'),
  ),

  check(
    'expires the receipts of in-flight messages on purge',
    async (bench) => {
      const { mailbox } = bench
      await sendAll(mailbox, [1, 2, 3])
      const [first, second, third] = await receiveMany(bench, 3)
      await mailbox.purge()
      await expectRejection('RECEIPT_EXPIRED', () => first!.acknowledge())
      await expectRejection('RECEIPT_EXPIRED', () => second!.nack())
      if (mailbox.powers.extend) {
        await expectRejection('RECEIPT_EXPIRED', () => third!.extend(1))
        await expectRejection('RECEIPT_EXPIRED', () => third!.extend(600))
      }
      await expectEmpty(mailbox)
      await mailbox.send('sent after the purge')
      assert.equal((await receiveOne(bench)).value(), 'sent after the purge')
    },
    needs('purge'),
  ),

  check(
    'rejects purge if the broker does not support it',
    async ({ mailbox }) => expectRejection('INVALID_INPUT', () => mailbox.purge()),
    (powers) => (powers.purge ? 'the mailbox can be purged' : undefined),
  ),
]

const browseCheck = checkOn('browse')

export const browseChecks = [
  browseCheck(
    'lists all messages page by page in the order of sending, including hidden ones',
    async (bench) => {
      const { mailbox } = bench
      const sent = await sendAll(mailbox, [0, 1, 2, 3, 4, 5, 6])
      await receiveMany(bench, 3)
      for (const limit of [1, 3, 7, 50]) {
        const seen = await browseAll(mailbox, limit)
        assert.deepEqual(ids(seen), sent, `${limit} at a time`)
        assert.deepEqual(
          seen.map((one) => one.deliveries),
          [1, 1, 1, 0, 0, 0, 0],
        )
      }
    },
    needs('browse'),
  ),

  browseCheck(
    'lists a message as it was sent, without receiving it',
    async (bench) => {
      const { mailbox } = bench
      const options = { contentType: 'text/x', headers: { a: 'ü' }, replyTo: 'there' }
      const id = await mailbox.send(Buffer.from('a\0b'), options)
      const [seen] = await browseAll(mailbox, 10)
      assert.equal(seen!.id, id)
      expectSameBytes(seen!.body.bytes, Buffer.from('a\0b'), 'body')
      assert.equal(seen!.body.contentType, 'text/x')
      assert.deepEqual({ ...seen!.headers }, { a: 'ü' })
      assert.equal(seen!.replyTo, 'there')
      assert.equal(seen!.failures, 0)
      const message = await receiveOne(bench)
      assert.equal(message.deliveries, 1)
      assert.equal(message.enqueuedAt, seen!.enqueuedAt)
      await message.nack()
      assert.deepEqual(
        (await browseAll(mailbox, 10)).map((one) => [one.deliveries, one.failures]),
        [[1, 1]],
      )
      await (await receiveOne(bench)).acknowledge()
      assert.deepEqual(await browseAll(mailbox, 10), [])
    },
    needs('browse', 'remembers'),
  ),

  browseCheck(
    'rejects a limit that is not an integer from 1 to 1000',
    async ({ mailbox }) => {
      for (const limit of [0, -1, 1001, 1.5, Number.NaN, asNumber('5')])
        await expectRejection('INVALID_INPUT', () => mailbox.browse!({ limit }), `limit ${limit}`)
      assert.deepEqual((await mailbox.browse!({ limit: 1000 })).messages, [])
    },
    needs('browse'),
  ),

  browseCheck('exists if and only if powers.browse is true', async ({ mailbox }) =>
    assert.equal(mailbox.browse !== undefined, mailbox.powers.browse),
  ),
]

async function browseAll(mailbox: Mailbox, limit: number): Promise<Browsed['messages']> {
  const all: Browsed['messages'] = []
  let after: string | undefined
  do {
    const page = await mailbox.browse!(after === undefined ? { limit } : { limit, after })
    assert.ok(page.messages.length <= limit)
    all.push(...page.messages)
    after = page.after
  } while (after !== undefined)
  return all
}
