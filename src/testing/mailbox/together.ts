import assert from 'node:assert/strict'
import type { Mailbox, Message } from '../../mailbox.ts'
import { another, checkOn, needs, type MailboxBench } from './check.ts'
import {
  acknowledgeAll,
  ids,
  lapseMs,
  nothing,
  rejectsWith,
  sameSet,
  sendAll,
  shortSeconds,
  take,
  takeOne,
  values,
  within,
} from './stage.ts'

const check = checkOn('together')

const messages = 500
const receivers = 8

const handles = (count: number, ...of: Mailbox[]): Mailbox[] =>
  Array.from({ length: count }, (_, n) => of[n % of.length]!)

export const togetherChecks = [
  check('gives each of many messages to one of many receivers, once', (bench) =>
    race(bench, handles(receivers, bench.mailbox)),
  ),

  check(
    'gives each of many messages to one receiver, over two handles',
    async (bench) => race(bench, handles(receivers, bench.mailbox, await another(bench))),
    needs('shared'),
  ),

  check('counts right when many receivers give back what they got', (bench) =>
    passAround(bench, handles(receivers, bench.mailbox)),
  ),

  check(
    'counts right when many receivers give back what they got, over two handles',
    async (bench) => passAround(bench, handles(receivers, bench.mailbox, await another(bench))),
    needs('shared'),
  ),

  check(
    'gives again what receivers dropped, and nothing else',
    async (bench) => {
      const { mailbox } = bench
      await Promise.all(Array.from({ length: 40 }, (_, n) => mailbox.send(n)))
      const taken = await Promise.all(
        Array.from({ length: 4 }, () => take(bench, 10, { visibilitySeconds: shortSeconds })),
      )
      const isDropped = (message: Message): boolean => (message.value() as number) % 2 === 1
      await acknowledgeAll(taken.flat().filter((message) => !isDropped(message)))
      await bench.advance(lapseMs)
      const dropped = taken.flat().filter(isDropped)
      const again = await take(bench, dropped.length)
      sameSet(ids(again), ids(dropped))
      for (const message of again) assert.equal(message.deliveries, 2)
      await nothing(mailbox)
    },
    needs('visibility'),
  ),

  check(
    'shows another handle the same messages',
    async (bench) => {
      const { mailbox } = bench
      const other = await another(bench)
      assert.equal(other.name, mailbox.name)
      const [first, second] = await sendAll(mailbox, ['a', 'b'])
      const one = await takeOne(bench, {}, other)
      const two = await takeOne(bench)
      sameSet([one.id, two.id], [first, second])
      await nothing(other)
      await nothing(mailbox)
      if (mailbox.powers.exactCount) assert.equal(await other.approximateCount(), 2)
      await one.nack()
      await two.acknowledge()
      const again = await takeOne(bench)
      assert.equal(again.id, one.id)
      assert.equal(again.deliveries, 2)
      await again.acknowledge()
    },
    needs('shared'),
  ),

  check(
    'wakes a receiver on another handle',
    async (bench) => {
      const other = await another(bench)
      const asked = other.receive({ max: 10, waitSeconds: 60 })
      await bench.advance(100)
      await bench.mailbox.send('over there')
      assert.deepEqual(values(await within(bench, 5000, asked)), ['over there'])
    },
    needs('shared'),
  ),

  check(
    'refuses a receipt that has passed to another handle',
    async (bench) => {
      const other = await another(bench)
      await bench.mailbox.send('passed on')
      const mine = await takeOne(bench, { visibilitySeconds: shortSeconds })
      await bench.advance(lapseMs)
      const theirs = await takeOne(bench, {}, other)
      assert.equal(theirs.id, mine.id)
      assert.equal(theirs.deliveries, 2)
      await rejectsWith('RECEIPT_EXPIRED', () => mine.nack())
      await rejectsWith('RECEIPT_EXPIRED', () => mine.acknowledge())
      await theirs.acknowledge()
      await nothing(bench.mailbox)
    },
    needs('shared', 'visibility'),
  ),

  check(
    'keeps working when another handle is closed',
    async (bench) => {
      const other = await another(bench)
      await sendAll(bench.mailbox, ['a', 'b', 'c'])
      const held = await take(bench, 1)
      await other.close()
      await acknowledgeAll([...held, ...(await take(bench, 2))])
      await nothing(bench.mailbox)
    },
    needs('shared'),
  ),
]

/**
 * All receive at once, and do with each message what `settle` says, until it has answered so often
 * that it is done with one.
 */
async function work(
  bench: MailboxBench,
  receiving: Mailbox[],
  count: number,
  settle: (message: Message) => Promise<'done' | 'again'>,
): Promise<void> {
  const stop = new AbortController()
  let done = 0
  const loop = async (handle: Mailbox): Promise<void> => {
    while (!stop.signal.aborted) {
      const asked = { max: 10, visibilitySeconds: 600, waitSeconds: 20, signal: stop.signal }
      const answers = await Promise.all((await handle.receive(asked)).map(settle))
      done += answers.filter((answer) => answer === 'done').length
      if (done >= count) stop.abort()
    }
  }
  const all = Promise.all(receiving.map(loop)).finally(() => stop.abort())
  await within(bench, 60_000, all)
  await nothing(bench.mailbox)
  if (bench.mailbox.powers.exactCount) assert.equal(await bench.mailbox.approximateCount(), 0)
}

async function race(bench: MailboxBench, receiving: Mailbox[]): Promise<void> {
  const sending = Promise.all(Array.from({ length: messages }, (_, n) => bench.mailbox.send(n)))
  const taken: string[] = []
  const acknowledging = work(bench, receiving, messages, async (message) => {
    taken.push(message.id)
    await message.acknowledge()
    return 'done'
  })
  const [sent] = await Promise.all([sending, acknowledging])
  sameSet(taken, sent)
}

/** Each message is given back twice, by whoever has it. */
async function passAround(bench: MailboxBench, receiving: Mailbox[]): Promise<void> {
  const { exactDeliveries, remembers } = bench.mailbox.powers
  const count = 60
  const rounds = new Map<unknown, number>()
  await Promise.all(Array.from({ length: count }, (_, n) => bench.mailbox.send(n)))
  await work(bench, receiving, count, async (message) => {
    const { deliveries, failures } = message
    const round = (rounds.get(message.value()) ?? 0) + 1
    rounds.set(message.value(), round)
    assert.ok(exactDeliveries ? deliveries === round : deliveries >= round)
    assert.equal(failures, remembers ? round - 1 : deliveries - 1)
    await (round < 3 ? message.nack() : message.acknowledge())
    return round < 3 ? 'again' : 'done'
  })
  sameSet(
    [...rounds.keys()].map(String),
    Array.from({ length: count }, (_, n) => String(n)),
  )
}

const naming = checkOn('names')

/** Names that are close to each other, or that mean something to somebody. */
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
  naming('keep mailboxes apart, however odd or alike they are', async (bench) => {
    const others = await Promise.all(names.map((name) => bench.elsewhere(name)))
    assert.equal(new Set(others.map((other) => other.name)).size, names.length)
    for (const [n, other] of others.entries()) assert.ok(other.name.endsWith(names[n]!), names[n])
    await Promise.all(others.map((other, n) => other.send(names[n])))
    await nothing(bench.mailbox)
    for (const [n, other] of others.entries()) {
      const [message, ...more] = await take(bench, 1, { max: 10 }, other)
      assert.equal(message!.value(), names[n])
      assert.deepEqual(values(more), [])
      await message!.acknowledge()
      await nothing(other)
    }
  }),
]
