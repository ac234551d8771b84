import assert from 'node:assert/strict'
import type { Mailbox } from '../../mailbox.ts'
import { checkOn, needs, type MailboxBench } from './check.ts'
import {
  acknowledgeAll,
  ids,
  lapseMs,
  longSeconds,
  nothing,
  rejectsWith,
  sameSet,
  sendAll,
  shortSeconds,
  take,
  takeOne,
  text,
  values,
  within,
} from './stage.ts'

const check = checkOn('receive')

const upTo = (count: number): number[] => Array.from({ length: count }, (_, n) => n)

export const receiveChecks = [
  check(
    'goes in the order of sending',
    async (bench) => {
      await sendAll(bench.mailbox, upTo(25))
      const one = await take(bench, 1)
      const batch = await take(bench, 10)
      const rest: unknown[] = []
      for (let n = 0; n < 14; n++) rest.push(...values(await take(bench, 1)))
      assert.deepEqual([...values(one), ...values(batch), ...rest], upTo(25))
    },
    needs('ordered'),
  ),

  check('gives one message unless more are asked for, and never more than that', async (bench) => {
    const { mailbox } = bench
    await sendAll(mailbox, upTo(14))
    const taken = await within(bench, 10_000, mailbox.receive({ waitSeconds: 5 }))
    assert.equal(taken.length, 1)
    for (const max of [1, 2, 10]) {
      const batch = await within(bench, 10_000, mailbox.receive({ max, waitSeconds: 5 }))
      assert.ok(batch.length >= 1 && batch.length <= max, `1 to ${max}, not ${batch.length}`)
      taken.push(...batch)
    }
    taken.push(...(await take(bench, 14 - taken.length)))
    sameSet(values(taken), upTo(14))
    await nothing(mailbox)
  }),

  check('answers at once with an empty list when there is nothing', async (bench) => {
    assert.deepEqual(await bench.mailbox.receive(), [])
    assert.deepEqual(await bench.mailbox.receive({ max: 10, waitSeconds: 0 }), [])
  }),

  check('hides what it gives', async (bench) => {
    await bench.mailbox.send('mine')
    await takeOne(bench)
    await nothing(bench.mailbox)
  }),

  check('keeps to its bounds, and takes nothing beyond them', async (bench) => {
    const { mailbox } = bench
    await mailbox.send('still there')
    const refused = {
      'no message': { max: 0 },
      'less than none': { max: -1 },
      'eleven messages': { max: 11 },
      'one and a half': { max: 1.5 },
      'max that is no number': { max: Number.NaN },
      'max as text': { max: text('5') },
      'a visibility below zero': { visibilitySeconds: -1 },
      'a visibility over twelve hours': { visibilitySeconds: 43_201 },
      'a visibility that is no number': { visibilitySeconds: Number.NaN },
      'a visibility without end': { visibilitySeconds: Infinity },
      'a visibility as text': { visibilitySeconds: text('5') },
      'a wait below zero': { waitSeconds: -1 },
      'a wait that is no number': { waitSeconds: Number.NaN },
      'a wait as text': { waitSeconds: text('5') },
    }
    for (const [what, options] of Object.entries(refused))
      await rejectsWith('INVALID_INPUT', () => mailbox.receive(options), what)
    const asked = { max: 10, visibilitySeconds: 43_200 }
    const message = await takeOne(bench, asked)
    assert.equal(message.deliveries, 1)
    await message.acknowledge()
  }),

  check(
    'gives a message for no time at all, so that the next one to ask has it too',
    async (bench) => {
      const { mailbox } = bench
      await mailbox.send('glimpsed')
      const asked = { max: 10, visibilitySeconds: 0, waitSeconds: 5 }
      const first = await within(bench, 10_000, mailbox.receive(asked))
      assert.deepEqual(values(first), ['glimpsed'], 'once in a batch')
      const second = await takeOne(bench)
      assert.equal(second.id, first[0]!.id)
      assert.equal(second.deliveries, 2)
      await rejectsWith('RECEIPT_EXPIRED', () => first[0]!.acknowledge())
      await second.acknowledge()
      await nothing(mailbox)
    },
    needs('visibility'),
  ),

  check(
    'gives a message again when its visibility has lapsed',
    async (bench) => {
      const { mailbox } = bench
      await mailbox.send('comes again')
      const first = await takeOne(bench, { visibilitySeconds: shortSeconds })
      await nothing(mailbox, 'not before')
      await bench.advance(lapseMs)
      const second = await takeOne(bench)
      assert.equal(second.id, first.id)
      assert.equal(second.value(), 'comes again')
    },
    needs('visibility'),
  ),

  check(
    'hides each message for as long as its own receive said',
    async (bench) => {
      const { mailbox } = bench
      const [long, short] = await sendAll(mailbox, ['a', 'b'])
      const first = await takeOne(bench, { visibilitySeconds: longSeconds })
      await takeOne(bench, { visibilitySeconds: shortSeconds })
      await bench.advance(lapseMs)
      const again = await takeOne(bench)
      sameSet([first.id, again.id], [long, short])
      await nothing(mailbox)
      await first.acknowledge()
    },
    needs('visibility'),
  ),

  check('bears what a receiver does to its copy', async (bench) => {
    await bench.mailbox.send(Buffer.from('as it was'), { headers: { a: 'b' } })
    const first = await takeOne(bench)
    first.body.bytes.fill(0)
    Object.assign(first.headers, { a: 'changed' })
    await first.nack()
    const second = await takeOne(bench)
    assert.equal(Buffer.from(second.body.bytes).toString(), 'as it was')
    assert.deepEqual({ ...second.headers }, { a: 'b' })
  }),
]

const waiting = checkOn('wait')

export const waitChecks = [
  waiting('gets a message that comes late, and does not wait for more', async (bench) => {
    const { mailbox } = bench
    const asked = mailbox.receive({ max: 10, waitSeconds: 60 })
    await bench.advance(100)
    await mailbox.send('late')
    assert.deepEqual(values(await within(bench, 3000, asked)), ['late'])
  }),

  waiting('takes at once what is there already', async (bench) => {
    await bench.mailbox.send('there')
    const asked = bench.mailbox.receive({ max: 10, waitSeconds: 60 })
    assert.deepEqual(values(await within(bench, 3000, asked)), ['there'])
  }),

  waiting('ends with an empty list when the time is over', async (bench) => {
    const asked = bench.mailbox.receive({ max: 10, waitSeconds: 1 })
    assert.deepEqual(await within(bench, 4000, asked), [])
    await bench.mailbox.send('after that')
    assert.equal((await takeOne(bench)).deliveries, 1)
  }),

  waiting(
    'gets a message whose visibility lapses meanwhile',
    async (bench) => {
      await bench.mailbox.send('left behind')
      await takeOne(bench, { visibilitySeconds: shortSeconds })
      const asked = bench.mailbox.receive({ waitSeconds: 60 })
      const [again] = await within(bench, 4000, asked)
      assert.equal(again?.deliveries, 2)
    },
    needs('visibility'),
  ),

  waiting(
    'gets a delayed message when its time comes',
    async (bench) => {
      await bench.mailbox.send('much later', { delaySeconds: 600 })
      const asked = bench.mailbox.receive({ waitSeconds: 60 })
      await bench.mailbox.send('later', { delaySeconds: 1 })
      assert.deepEqual(values(await within(bench, 4000, asked)), ['later'])
    },
    needs('delay'),
  ),

  waiting('gets a message that is given back', async (bench) => {
    await bench.mailbox.send('back')
    const first = await takeOne(bench)
    const asked = bench.mailbox.receive({ waitSeconds: 60 })
    await bench.advance(50)
    await first.nack()
    assert.deepEqual(ids(await within(bench, 3000, asked)), [first.id])
  }),

  waiting('gives one message to one of those who wait', async (bench) => {
    const { mailbox } = bench
    const asked = Promise.all(upTo(5).map(() => mailbox.receive({ max: 10, waitSeconds: 1 })))
    await bench.advance(100)
    await mailbox.send('for one')
    const answers = await within(bench, 5000, asked)
    sameSet(
      answers.map((one) => one.length),
      [0, 0, 0, 0, 1],
    )
  }),

  waiting('gives a message to each of those who wait, if there are enough', async (bench) => {
    const { mailbox } = bench
    const asked = Promise.all(upTo(5).map(() => mailbox.receive({ waitSeconds: 60 })))
    await bench.advance(100)
    await Promise.all(upTo(5).map((n) => mailbox.send(n)))
    const answers = await within(bench, 5000, asked)
    sameSet(values(answers.flat()), upTo(5))
  }),

  waiting(
    'gives a message to each of those who wait when several show at once',
    async (bench) => {
      const { mailbox } = bench
      await sendAll(mailbox, upTo(3))
      await take(bench, 3, { visibilitySeconds: shortSeconds })
      const asked = Promise.all(upTo(3).map(() => mailbox.receive({ waitSeconds: 60 })))
      const answers = await within(bench, 4000, asked)
      sameSet(values(answers.flat()), upTo(3))
    },
    needs('visibility'),
  ),

  waiting('ends when the signal aborts, and leaves nothing hidden', async (bench) => {
    const { mailbox } = bench
    const stop = new AbortController()
    const asked = mailbox.receive({ max: 10, waitSeconds: 60, signal: stop.signal })
    await bench.advance(100)
    stop.abort()
    assert.deepEqual(await within(bench, 2000, asked), [])
    await mailbox.send('for whoever comes next')
    assert.deepEqual(values(await take(bench, 1)), ['for whoever comes next'])
  }),

  waiting('takes nothing when the signal has aborted before', async (bench) => {
    await bench.mailbox.send('untouched')
    assert.deepEqual(await bench.mailbox.receive({ signal: AbortSignal.abort() }), [])
    assert.equal((await takeOne(bench)).deliveries, 1)
  }),

  waiting('loses no message that comes as the signal aborts', async (bench) => {
    for (const round of upTo(6)) await abortAsItComes(bench, bench.mailbox, round)
    await nothing(bench.mailbox)
  }),
]

/**
 * The message is delivered to the one who gave up, or to the next one who asks; it does not stay
 * hidden with nobody.
 */
async function abortAsItComes(bench: MailboxBench, mailbox: Mailbox, round: number): Promise<void> {
  const stop = new AbortController()
  const asked = mailbox.receive({ waitSeconds: 60, visibilitySeconds: 600, signal: stop.signal })
  if (round % 2 === 0) await bench.advance(20)
  const sending = mailbox.send(round)
  if (round % 3 === 0) await sending
  stop.abort()
  const [answer] = await Promise.all([within(bench, 2000, asked), sending])
  const taken = answer.length > 0 ? answer : await take(bench, 1)
  assert.deepEqual(values(taken), [round])
  const { exactDeliveries, remembers } = mailbox.powers
  if (exactDeliveries && remembers) assert.equal(taken[0]!.deliveries, 1)
  await acknowledgeAll(taken)
}
