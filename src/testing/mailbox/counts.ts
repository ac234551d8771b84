import assert from 'node:assert/strict'
import { toMs } from '../../letter/time.ts'
import type { Browsed, Mailbox } from '../../mailbox.ts'
import { checkOn, needs } from './check.ts'
import {
  ids,
  lapseMs,
  nothing,
  rejectsWith,
  sameBytes,
  sendAll,
  shortSeconds,
  take,
  takeOne,
  text,
} from './stage.ts'

const check = checkOn('count')

export const countChecks = [
  check('counts the deliveries of a message, and of each message apart', async (bench) => {
    await bench.mailbox.send('counted')
    for (let deliveries = 1; deliveries <= 4; deliveries++) {
      const message = await takeOne(bench)
      assert.equal(message.deliveries, deliveries)
      await message.nack()
    }
    await (await takeOne(bench)).acknowledge()
    await bench.mailbox.send('another')
    assert.equal((await takeOne(bench)).deliveries, 1)
  }),

  check(
    'counts a delivery that nobody ended',
    async (bench) => {
      await bench.mailbox.send('dropped')
      const first = await takeOne(bench, { visibilitySeconds: shortSeconds })
      assert.equal(first.deliveries, 1)
      await bench.advance(lapseMs)
      const second = await takeOne(bench)
      assert.equal(second.deliveries, 2)
      if (bench.mailbox.powers.remembers) assert.equal(second.failures, 0, 'a lapse is no failure')
    },
    needs('visibility'),
  ),

  check(
    'counts as failures the nacks that say so, and no others',
    async (bench) => {
      await bench.mailbox.send('tried')
      const failures: number[] = []
      for (const options of [{}, { failed: false }, { failed: true }, { failed: false }]) {
        const message = await takeOne(bench)
        failures.push(message.failures)
        await message.nack(options)
      }
      failures.push((await takeOne(bench)).failures)
      assert.deepEqual(failures, [0, 1, 1, 2, 2])
    },
    needs('remembers'),
  ),

  check(
    'does not count as a delivery what was given back untried',
    async (bench) => {
      await bench.mailbox.send('released')
      const counts: number[] = []
      const firsts = new Set<string>()
      for (const failed of [false, false, true, false, false, true, false]) {
        const message = await takeOne(bench)
        counts.push(message.deliveries)
        firsts.add(message.firstReceivedAt)
        await message.nack({ failed })
      }
      const last = await takeOne(bench)
      assert.deepEqual([...counts, last.deliveries], [1, 1, 1, 2, 2, 2, 3, 3])
      assert.equal(last.failures, 2)
      assert.deepEqual([...firsts], [last.firstReceivedAt], 'the first one is remembered')
      await last.acknowledge()
    },
    needs('remembers'),
  ),

  check(
    'counts deliveries as failures where it cannot tell them apart',
    async (bench) => {
      await bench.mailbox.send('tried')
      const first = await takeOne(bench)
      assert.equal(first.failures, 0)
      await first.nack()
      assert.equal((await takeOne(bench)).failures, 1)
    },
    (powers) => (powers.remembers ? 'failures are counted apart' : undefined),
  ),

  check(
    'remembers when a message was sent and first delivered',
    async (bench) => {
      await bench.mailbox.send('dated')
      await bench.advance(50)
      const first = await takeOne(bench)
      await first.nack()
      await bench.advance(100)
      const second = await takeOne(bench)
      assert.equal(second.firstReceivedAt, first.firstReceivedAt)
      assert.equal(second.enqueuedAt, first.enqueuedAt)
      assert.ok(toMs(first.enqueuedAt) <= toMs(first.firstReceivedAt))
    },
    needs('remembers'),
  ),

  check(
    'counts what waits and what is out',
    async (bench) => {
      const { mailbox } = bench
      assert.equal(await mailbox.approximateCount(), 0)
      await sendAll(mailbox, [1, 2, 3])
      assert.equal(await mailbox.approximateCount(), 3)
      const [first, second] = await take(bench, 2)
      assert.equal(await mailbox.approximateCount(), 3, 'what is out counts')
      await first!.acknowledge()
      await second!.nack()
      assert.equal(await mailbox.approximateCount(), 2)
      if (mailbox.powers.delay) {
        await mailbox.send(4, { delaySeconds: 60 })
        assert.equal(await mailbox.approximateCount(), 3, 'what is delayed counts')
      }
    },
    needs('exactCount'),
  ),

  check(
    'purges what waits and what is out, and says how many',
    async (bench) => {
      const { mailbox } = bench
      await sendAll(mailbox, [1, 2, 3])
      await take(bench, 2)
      if (mailbox.powers.delay) await mailbox.send(4, { delaySeconds: 1 })
      const gone = await mailbox.purge()
      if (mailbox.powers.exactCount) {
        assert.equal(gone, mailbox.powers.delay ? 4 : 3)
        assert.equal(await mailbox.approximateCount(), 0)
        assert.equal(await mailbox.purge(), 0)
      }
      await nothing(mailbox)
      if (mailbox.powers.delay) await bench.advance(lapseMs)
      await nothing(mailbox)
    },
    needs('purge'),
  ),

  check(
    'makes the receipts stale that are out when it is purged',
    async (bench) => {
      const { mailbox } = bench
      await sendAll(mailbox, [1, 2, 3])
      const [first, second, third] = await take(bench, 3)
      await mailbox.purge()
      await rejectsWith('RECEIPT_EXPIRED', () => first!.acknowledge())
      await rejectsWith('RECEIPT_EXPIRED', () => second!.nack())
      if (mailbox.powers.extend) {
        await rejectsWith('RECEIPT_EXPIRED', () => third!.extend(1))
        await rejectsWith('RECEIPT_EXPIRED', () => third!.extend(600))
      }
      await nothing(mailbox)
      await mailbox.send('a new beginning')
      assert.equal((await takeOne(bench)).value(), 'a new beginning')
    },
    needs('purge'),
  ),

  check(
    'refuses to purge where the broker cannot',
    async ({ mailbox }) => rejectsWith('INVALID_INPUT', () => mailbox.purge()),
    (powers) => (powers.purge ? 'the mailbox can be purged' : undefined),
  ),
]

const browsing = checkOn('browse')

export const browseChecks = [
  browsing(
    'shows all messages page by page in the order of sending, hidden ones too',
    async (bench) => {
      const { mailbox } = bench
      const sent = await sendAll(mailbox, [0, 1, 2, 3, 4, 5, 6])
      await take(bench, 3)
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

  browsing(
    'shows a message as it was sent, and receives nothing',
    async (bench) => {
      const { mailbox } = bench
      const options = { contentType: 'text/x', headers: { a: 'ü' }, replyTo: 'there' }
      const id = await mailbox.send(Buffer.from('a\0b'), options)
      const [seen] = await browseAll(mailbox, 10)
      assert.equal(seen!.id, id)
      sameBytes(seen!.body.bytes, Buffer.from('a\0b'), 'body')
      assert.equal(seen!.body.contentType, 'text/x')
      assert.deepEqual({ ...seen!.headers }, { a: 'ü' })
      assert.equal(seen!.replyTo, 'there')
      assert.equal(seen!.failures, 0)
      const message = await takeOne(bench)
      assert.equal(message.deliveries, 1)
      assert.equal(message.enqueuedAt, seen!.enqueuedAt)
      await message.nack()
      assert.deepEqual(
        (await browseAll(mailbox, 10)).map((one) => [one.deliveries, one.failures]),
        [[1, 1]],
      )
      await (await takeOne(bench)).acknowledge()
      assert.deepEqual(await browseAll(mailbox, 10), [])
    },
    needs('browse', 'remembers'),
  ),

  browsing(
    'keeps to the bounds of a page',
    async ({ mailbox }) => {
      for (const limit of [0, -1, 1001, 1.5, Number.NaN, text('5')])
        await rejectsWith('INVALID_INPUT', () => mailbox.browse!({ limit }), `limit ${limit}`)
      assert.deepEqual((await mailbox.browse!({ limit: 1000 })).messages, [])
    },
    needs('browse'),
  ),

  browsing('is there only where the broker can', async ({ mailbox }) =>
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
