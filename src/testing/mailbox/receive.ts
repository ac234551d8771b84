import assert from 'node:assert/strict'
import type { Mailbox } from '../../mailbox.ts'
import { checkOn, needs, type MailboxBench } from './check.ts'
import {
  acknowledgeAll,
  ids,
  lapseMs,
  longSeconds,
  expectEmpty,
  expectRejection,
  expectSameSet,
  sendAll,
  shortSeconds,
  receiveMany,
  receiveOne,
  asNumber,
  values,
  waitWithin,
} from './steps.ts'

const check = checkOn('receive')

const upTo = (count: number): number[] => Array.from({ length: count }, (_, n) => n)

export const receiveChecks = [
  check(
    'delivers in the order of sending',
    async (bench) => {
      await sendAll(bench.mailbox, upTo(25))
      const one = await receiveMany(bench, 1)
      const batch = await receiveMany(bench, 10)
      const rest: unknown[] = []
      for (let n = 0; n < 14; n++) rest.push(...values(await receiveMany(bench, 1)))
      assert.deepEqual([...values(one), ...values(batch), ...rest], upTo(25))
    },
    needs('ordered'),
  ),

  check('returns one message by default, and never more than max', async (bench) => {
    const { mailbox } = bench
    await sendAll(mailbox, upTo(14))
    const taken = await waitWithin(bench, 10_000, mailbox.receive({ waitSeconds: 5 }))
    assert.equal(taken.length, 1)
    for (const max of [1, 2, 10]) {
      const batch = await waitWithin(bench, 10_000, mailbox.receive({ max, waitSeconds: 5 }))
      assert.ok(
        batch.length >= 1 && batch.length <= max,
        `expected 1 to ${max} messages, got ${batch.length}`,
      )
      taken.push(...batch)
    }
    taken.push(...(await receiveMany(bench, 14 - taken.length)))
    expectSameSet(values(taken), upTo(14))
    await expectEmpty(mailbox)
  }),

  check('returns an empty array at once if the mailbox is empty', async (bench) => {
    assert.deepEqual(await bench.mailbox.receive(), [])
    assert.deepEqual(await bench.mailbox.receive({ max: 10, waitSeconds: 0 }), [])
  }),

  check('hides a delivered message from other receivers', async (bench) => {
    await bench.mailbox.send('mine')
    await receiveOne(bench)
    await expectEmpty(bench.mailbox)
  }),

  check('rejects invalid options, without receiving a message', async (bench) => {
    const { mailbox } = bench
    await mailbox.send('still there')
    const invalid = {
      'max 0': { max: 0 },
      'negative max': { max: -1 },
      'max 11': { max: 11 },
      'fractional max': { max: 1.5 },
      'max NaN': { max: Number.NaN },
      'max as a string': { max: asNumber('5') },
      'negative visibilitySeconds': { visibilitySeconds: -1 },
      'visibilitySeconds above 12 hours': { visibilitySeconds: 43_201 },
      'visibilitySeconds NaN': { visibilitySeconds: Number.NaN },
      'infinite visibilitySeconds': { visibilitySeconds: Infinity },
      'visibilitySeconds as a string': { visibilitySeconds: asNumber('5') },
      'negative waitSeconds': { waitSeconds: -1 },
      'waitSeconds NaN': { waitSeconds: Number.NaN },
      'waitSeconds as a string': { waitSeconds: asNumber('5') },
    }
    for (const [what, options] of Object.entries(invalid))
      await expectRejection('INVALID_INPUT', () => mailbox.receive(options), what)
    const message = await receiveOne(bench, { max: 10, visibilitySeconds: 43_200 })
    assert.equal(message.deliveries, 1)
    await message.acknowledge()
  }),

  check(
    'delivers with visibilitySeconds 0, so that the next receive gets the message too',
    async (bench) => {
      const { mailbox } = bench
      await mailbox.send('glimpsed')
      const options = { max: 10, visibilitySeconds: 0, waitSeconds: 5 }
      const first = await waitWithin(bench, 10_000, mailbox.receive(options))
      assert.deepEqual(values(first), ['glimpsed'], 'the batch has the message once')
      const second = await receiveOne(bench)
      assert.equal(second.id, first[0]!.id)
      assert.equal(second.deliveries, 2)
      await expectRejection('RECEIPT_EXPIRED', () => first[0]!.acknowledge())
      await second.acknowledge()
      await expectEmpty(mailbox)
    },
    needs('visibility'),
  ),

  check(
    'redelivers a message after its visibility timeout',
    async (bench) => {
      const { mailbox } = bench
      await mailbox.send('comes again')
      const first = await receiveOne(bench, { visibilitySeconds: shortSeconds })
      if (bench.hasFakeTime) await expectEmpty(mailbox, 'before the visibility timeout')
      await bench.advance(lapseMs)
      const second = await receiveOne(bench)
      assert.equal(second.id, first.id)
      assert.equal(second.value(), 'comes again')
    },
    needs('visibility'),
  ),

  check(
    'hides each message for the visibilitySeconds of its own receive',
    async (bench) => {
      const { mailbox } = bench
      const [long, short] = await sendAll(mailbox, ['a', 'b'])
      const first = await receiveOne(bench, { visibilitySeconds: longSeconds })
      await receiveOne(bench, { visibilitySeconds: shortSeconds })
      await bench.advance(lapseMs)
      const again = await receiveOne(bench)
      expectSameSet([first.id, again.id], [long, short])
      await expectEmpty(mailbox)
      await first.acknowledge()
    },
    needs('visibility'),
  ),

  check('is not affected by changes to a received message', async (bench) => {
    await bench.mailbox.send(Buffer.from('as it was'), { headers: { a: 'b' } })
    const first = await receiveOne(bench)
    first.body.bytes.fill(0)
    Object.assign(first.headers, { a: 'changed' })
    await first.nack()
    const second = await receiveOne(bench)
    assert.equal(Buffer.from(second.body.bytes).toString(), 'as it was')
    assert.deepEqual({ ...second.headers }, { a: 'b' })
  }),
]

const waitCheck = checkOn('wait')

export const waitChecks = [
  waitCheck(
    'returns a message that is sent during the wait, without waiting for more',
    async (bench) => {
      const { mailbox } = bench
      const pending = mailbox.receive({ max: 10, waitSeconds: 60 })
      await bench.advance(100)
      await mailbox.send('late')
      assert.deepEqual(values(await waitWithin(bench, 3000, pending)), ['late'])
    },
  ),

  waitCheck('returns available messages at once', async (bench) => {
    await bench.mailbox.send('there')
    const pending = bench.mailbox.receive({ max: 10, waitSeconds: 60 })
    assert.deepEqual(values(await waitWithin(bench, 3000, pending)), ['there'])
  }),

  waitCheck('returns an empty array after waitSeconds', async (bench) => {
    const pending = bench.mailbox.receive({ max: 10, waitSeconds: 1 })
    assert.deepEqual(await waitWithin(bench, 4000, pending), [])
    await bench.mailbox.send('after that')
    assert.equal((await receiveOne(bench)).deliveries, 1)
  }),

  waitCheck(
    'returns a message whose visibility expires during the wait',
    async (bench) => {
      await bench.mailbox.send('left behind')
      await receiveOne(bench, { visibilitySeconds: shortSeconds })
      const pending = bench.mailbox.receive({ waitSeconds: 60 })
      const [again] = await waitWithin(bench, 4000, pending)
      assert.equal(again?.deliveries, 2)
    },
    needs('visibility'),
  ),

  waitCheck(
    'returns a delayed message when it becomes due',
    async (bench) => {
      await bench.mailbox.send('much later', { delaySeconds: 600 })
      const pending = bench.mailbox.receive({ waitSeconds: 60 })
      await bench.mailbox.send('later', { delaySeconds: 1 })
      assert.deepEqual(values(await waitWithin(bench, 4000, pending)), ['later'])
    },
    needs('delay'),
  ),

  waitCheck('returns a message that is nacked during the wait', async (bench) => {
    await bench.mailbox.send('back')
    const first = await receiveOne(bench)
    const pending = bench.mailbox.receive({ waitSeconds: 60 })
    await bench.advance(50)
    await first.nack()
    assert.deepEqual(ids(await waitWithin(bench, 3000, pending)), [first.id])
  }),

  waitCheck('delivers one message to one of several waiting receivers', async (bench) => {
    const { mailbox } = bench
    const pending = Promise.all(upTo(5).map(() => mailbox.receive({ max: 10, waitSeconds: 1 })))
    await bench.advance(100)
    await mailbox.send('for one')
    const answers = await waitWithin(bench, 5000, pending)
    expectSameSet(
      answers.map((one) => one.length),
      [0, 0, 0, 0, 1],
    )
  }),

  waitCheck('delivers a message to each waiting receiver if there are enough', async (bench) => {
    const { mailbox } = bench
    const pending = Promise.all(upTo(5).map(() => mailbox.receive({ waitSeconds: 60 })))
    await bench.advance(100)
    await Promise.all(upTo(5).map((n) => mailbox.send(n)))
    const answers = await waitWithin(bench, 5000, pending)
    expectSameSet(values(answers.flat()), upTo(5))
  }),

  waitCheck(
    'delivers a message to each waiting receiver when several become visible at once',
    async (bench) => {
      const { mailbox } = bench
      await sendAll(mailbox, upTo(3))
      await receiveMany(bench, 3, { visibilitySeconds: shortSeconds })
      const pending = Promise.all(upTo(3).map(() => mailbox.receive({ waitSeconds: 60 })))
      const answers = await waitWithin(bench, 4000, pending)
      expectSameSet(values(answers.flat()), upTo(3))
    },
    needs('visibility'),
  ),

  waitCheck('ends when the signal aborts, and hides no message', async (bench) => {
    const { mailbox } = bench
    const stop = new AbortController()
    const pending = mailbox.receive({ max: 10, waitSeconds: 60, signal: stop.signal })
    await bench.advance(100)
    stop.abort()
    assert.deepEqual(await waitWithin(bench, 2000, pending), [])
    await mailbox.send('for the next receiver')
    assert.deepEqual(values(await receiveMany(bench, 1)), ['for the next receiver'])
  }),

  waitCheck('receives nothing if the signal is already aborted', async (bench) => {
    await bench.mailbox.send('untouched')
    assert.deepEqual(await bench.mailbox.receive({ signal: AbortSignal.abort() }), [])
    assert.equal((await receiveOne(bench)).deliveries, 1)
  }),

  waitCheck('loses no message that arrives while the signal aborts', async (bench) => {
    for (const round of upTo(6)) await abortDuringSend(bench, bench.mailbox, round)
    await expectEmpty(bench.mailbox)
  }),
]

/**
 * The message is delivered to the aborted receive or to the next one; it must not stay hidden
 * without a receiver.
 */
async function abortDuringSend(
  bench: MailboxBench,
  mailbox: Mailbox,
  round: number,
): Promise<void> {
  const stop = new AbortController()
  const pending = mailbox.receive({ waitSeconds: 60, visibilitySeconds: 600, signal: stop.signal })
  if (round % 2 === 0) await bench.advance(20)
  const sending = mailbox.send(round)
  if (round % 3 === 0) await sending
  stop.abort()
  const [answer] = await Promise.all([waitWithin(bench, 2000, pending), sending])
  const taken = answer.length > 0 ? answer : await receiveMany(bench, 1)
  assert.deepEqual(values(taken), [round])
  const { exactDeliveries, remembers } = mailbox.powers
  if (exactDeliveries && remembers) assert.equal(taken[0]!.deliveries, 1)
  await acknowledgeAll(taken)
}
