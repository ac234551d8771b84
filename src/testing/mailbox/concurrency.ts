import assert from 'node:assert/strict'
import type { Mailbox, Message } from '../../mailbox.ts'
import { openAnother, checkOn, needs, type MailboxBench } from './check.ts'
import {
  acknowledgeAll,
  ids,
  lapseMs,
  expectEmpty,
  expectRejection,
  expectSameSet,
  sendAll,
  shortSeconds,
  receiveMany,
  receiveOne,
  values,
  waitWithin,
} from './steps.ts'

const check = checkOn('concurrency')

const messages = 500
const receivers = 8

const spread = (count: number, ...of: Mailbox[]): Mailbox[] =>
  Array.from({ length: count }, (_, n) => of[n % of.length]!)

export const concurrencyChecks = [
  check('delivers each message to one of many receivers, once', (bench) =>
    expectEachOnce(bench, spread(receivers, bench.mailbox)),
  ),

  check(
    'delivers each message once across two handles',
    async (bench) =>
      expectEachOnce(bench, spread(receivers, bench.mailbox, await openAnother(bench))),
    needs('shared'),
  ),

  check('counts deliveries and failures when many receivers nack', (bench) =>
    nackEachTwice(bench, spread(receivers, bench.mailbox)),
  ),

  check(
    'counts deliveries and failures when many receivers nack across two handles',
    async (bench) =>
      nackEachTwice(bench, spread(receivers, bench.mailbox, await openAnother(bench))),
    needs('shared'),
  ),

  check(
    'redelivers only the messages that were not acknowledged',
    async (bench) => {
      const { mailbox } = bench
      await Promise.all(Array.from({ length: 40 }, (_, n) => mailbox.send(n)))
      const taken = await Promise.all(
        Array.from({ length: 4 }, () =>
          receiveMany(bench, 10, { visibilitySeconds: shortSeconds }),
        ),
      )
      const isDropped = (message: Message): boolean => (message.value() as number) % 2 === 1
      await acknowledgeAll(taken.flat().filter((message) => !isDropped(message)))
      await bench.advance(lapseMs)
      const dropped = taken.flat().filter(isDropped)
      const again = await receiveMany(bench, dropped.length)
      expectSameSet(ids(again), ids(dropped))
      for (const message of again) assert.equal(message.deliveries, 2)
      await expectEmpty(mailbox)
    },
    needs('visibility'),
  ),

  check(
    'shares messages between handles',
    async (bench) => {
      const { mailbox } = bench
      const other = await openAnother(bench)
      assert.equal(other.name, mailbox.name)
      const [first, second] = await sendAll(mailbox, ['a', 'b'])
      const one = await receiveOne(bench, {}, other)
      const two = await receiveOne(bench)
      expectSameSet([one.id, two.id], [first, second])
      await expectEmpty(other)
      await expectEmpty(mailbox)
      if (mailbox.powers.exactCount) assert.equal(await other.approximateCount(), 2)
      await one.nack()
      await two.acknowledge()
      const again = await receiveOne(bench)
      assert.equal(again.id, one.id)
      assert.equal(again.deliveries, 2)
      await again.acknowledge()
    },
    needs('shared'),
  ),

  check(
    'wakes a receiver on another handle',
    async (bench) => {
      const other = await openAnother(bench)
      const pending = other.receive({ max: 10, waitSeconds: 60 })
      await bench.advance(100)
      await bench.mailbox.send('over there')
      assert.deepEqual(values(await waitWithin(bench, 5000, pending)), ['over there'])
    },
    needs('shared'),
  ),

  check(
    'rejects a receipt after another handle received the message',
    async (bench) => {
      const other = await openAnother(bench)
      await bench.mailbox.send('passed on')
      const mine = await receiveOne(bench, { visibilitySeconds: shortSeconds })
      await bench.advance(lapseMs)
      const theirs = await receiveOne(bench, {}, other)
      assert.equal(theirs.id, mine.id)
      assert.equal(theirs.deliveries, 2)
      await expectRejection('RECEIPT_EXPIRED', () => mine.nack())
      await expectRejection('RECEIPT_EXPIRED', () => mine.acknowledge())
      await theirs.acknowledge()
      await expectEmpty(bench.mailbox)
    },
    needs('shared', 'visibility'),
  ),

  check(
    'keeps working when another handle is closed',
    async (bench) => {
      const other = await openAnother(bench)
      await sendAll(bench.mailbox, ['a', 'b', 'c'])
      const held = await receiveMany(bench, 1)
      await other.close()
      await acknowledgeAll([...held, ...(await receiveMany(bench, 2))])
      await expectEmpty(bench.mailbox)
    },
    needs('shared'),
  ),
]

/**
 * Receives on all handles at once and settles each message, until `settle` has returned `done` for
 * `count` messages.
 */
async function settleAll(
  bench: MailboxBench,
  receiving: Mailbox[],
  count: number,
  settle: (message: Message) => Promise<'done' | 'again'>,
): Promise<void> {
  const stop = new AbortController()
  let done = 0
  const loop = async (handle: Mailbox): Promise<void> => {
    while (!stop.signal.aborted) {
      const options = { max: 10, visibilitySeconds: 600, waitSeconds: 20, signal: stop.signal }
      const results = await Promise.all((await handle.receive(options)).map(settle))
      done += results.filter((result) => result === 'done').length
      if (done >= count) stop.abort()
    }
  }
  const all = Promise.all(receiving.map(loop)).finally(() => stop.abort())
  await waitWithin(bench, 60_000, all)
  await expectEmpty(bench.mailbox)
  if (bench.mailbox.powers.exactCount) assert.equal(await bench.mailbox.approximateCount(), 0)
}

async function expectEachOnce(bench: MailboxBench, receiving: Mailbox[]): Promise<void> {
  const sending = Promise.all(Array.from({ length: messages }, (_, n) => bench.mailbox.send(n)))
  const taken: string[] = []
  const acknowledging = settleAll(bench, receiving, messages, async (message) => {
    taken.push(message.id)
    await message.acknowledge()
    return 'done'
  })
  const [sent] = await Promise.all([sending, acknowledging])
  expectSameSet(taken, sent)
}

/** Each message is nacked twice, then acknowledged. */
async function nackEachTwice(bench: MailboxBench, receiving: Mailbox[]): Promise<void> {
  const { exactDeliveries, remembers } = bench.mailbox.powers
  const count = 60
  const rounds = new Map<unknown, number>()
  await Promise.all(Array.from({ length: count }, (_, n) => bench.mailbox.send(n)))
  await settleAll(bench, receiving, count, async (message) => {
    const { deliveries, failures } = message
    const round = (rounds.get(message.value()) ?? 0) + 1
    rounds.set(message.value(), round)
    assert.ok(exactDeliveries ? deliveries === round : deliveries >= round)
    assert.equal(failures, remembers ? round - 1 : deliveries - 1)
    await (round < 3 ? message.nack() : message.acknowledge())
    return round < 3 ? 'again' : 'done'
  })
  expectSameSet(
    [...rounds.keys()].map(String),
    Array.from({ length: count }, (_, n) => String(n)),
  )
}

const nameCheck = checkOn('names')

/** Names that are similar to each other, or that brokers may interpret. */
const names = [
  'orders',
  'Orders',
  'orders ',
  'or ders',
  'or/ders',
  'or_ders',
  'or.ders',
  'or:ders',
  'or%2Fders',
  'or*',
  '>',
  "it's",
  '"{a}"',
  'caf\u00e9',
  'cafe\u0301',
  '東京 💌',
  'x'.repeat(150),
  `${'x'.repeat(149)}y`,
]

export const nameChecks = [
  nameCheck('keep mailboxes apart, even if they are unusual or similar', async (bench) => {
    const others = await Promise.all(names.map((name) => bench.elsewhere(name)))
    assert.equal(new Set(others.map((other) => other.name)).size, names.length)
    for (const [n, other] of others.entries()) assert.ok(other.name.endsWith(names[n]!), names[n])
    await Promise.all(others.map((other, n) => other.send(names[n])))
    await expectEmpty(bench.mailbox)
    for (const [n, other] of others.entries()) {
      const [message, ...more] = await receiveMany(bench, 1, { max: 10 }, other)
      assert.equal(message!.value(), names[n])
      assert.deepEqual(values(more), [])
      await message!.acknowledge()
      await expectEmpty(other)
    }
  }),
]
