import assert from 'node:assert/strict'
import { toMs } from '../../letter/time.ts'
import type { Message } from '../../mailbox.ts'
import { checkOn, needs, type MailboxBench } from './check.ts'
import {
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
} from './stage.ts'

const check = checkOn('settle')

/** Every way to use a receipt is refused. */
async function refused(
  message: Message,
  code: 'RECEIPT_EXPIRED' | 'MESSAGE_FINALIZED',
  extend: boolean,
): Promise<void> {
  await rejectsWith(code, () => message.acknowledge(), 'acknowledge')
  await rejectsWith(code, () => message.nack(), 'nack')
  await rejectsWith(code, () => message.nack({ failed: false }), 'nack without failure')
  if (extend) await rejectsWith(code, () => message.extend(longSeconds), 'extend')
}

const refuses = (
  bench: MailboxBench,
  message: Message,
  code: 'RECEIPT_EXPIRED' | 'MESSAGE_FINALIZED',
): Promise<void> => refused(message, code, bench.mailbox.powers.extend)

export const settleChecks = [
  check('deletes an acknowledged message for ever', async (bench) => {
    const { mailbox } = bench
    await sendAll(mailbox, ['done', 'still there'])
    const [done, other] = await take(bench, 2, { visibilitySeconds: shortSeconds })
    assert.equal(done!.finalized, false)
    await done!.acknowledge()
    assert.equal(done!.finalized, true)
    assert.equal(other!.finalized, false)
    await bench.advance(lapseMs)
    if (!mailbox.powers.visibility) return nothing(mailbox)
    assert.deepEqual(ids(await take(bench, 1)), [other!.id])
    await nothing(mailbox)
  }),

  check('refuses everything once it is acknowledged', async (bench) => {
    await bench.mailbox.send('once', { replyTo: 'anyone' })
    const message = await takeOne(bench)
    await message.acknowledge()
    await refuses(bench, message, 'MESSAGE_FINALIZED')
    await rejectsWith('MESSAGE_FINALIZED', () => message.reply('too late'))
  }),

  check('refuses everything once it is given back', async (bench) => {
    await bench.mailbox.send('once', { replyTo: 'anyone' })
    const message = await takeOne(bench)
    await message.nack()
    assert.equal(message.finalized, true)
    await refuses(bench, message, 'MESSAGE_FINALIZED')
    await rejectsWith('MESSAGE_FINALIZED', () => message.reply('too late'))
    assert.equal((await takeOne(bench)).id, message.id)
    await nothing(bench.mailbox)
  }),

  check('lets one of many acknowledges win', async (bench) => {
    await bench.mailbox.send('once')
    const message = await takeOne(bench)
    const tries = Array.from({ length: 5 }, () => message.acknowledge())
    const results = await Promise.allSettled(tries)
    assert.equal(results.filter((one) => one.status === 'fulfilled').length, 1)
    for (const one of results)
      if (one.status === 'rejected')
        assert.equal((one.reason as { code: unknown }).code, 'MESSAGE_FINALIZED')
    await nothing(bench.mailbox)
  }),

  check('lets an acknowledge or a nack win when both come at once', async (bench) => {
    await bench.mailbox.send('either')
    const message = await takeOne(bench)
    const results = await Promise.allSettled([message.acknowledge(), message.nack()])
    const [acknowledged, givenBack] = results.map((one) => one.status === 'fulfilled')
    assert.notEqual(acknowledged, givenBack)
    if (givenBack) await (await takeOne(bench)).acknowledge()
    await nothing(bench.mailbox)
  }),

  check('gives a message back at once', async (bench) => {
    await bench.mailbox.send('again')
    const first = await takeOne(bench)
    await first.nack()
    const second = await takeOne(bench)
    assert.equal(second.id, first.id)
    assert.equal(second.value(), 'again')
    assert.equal(second.finalized, false)
    await second.acknowledge()
    await nothing(bench.mailbox)
  }),

  check(
    'gives a message back when the delay is over, not before',
    async (bench) => {
      await bench.mailbox.send('later')
      const first = await takeOne(bench)
      await first.nack({ delaySeconds: 1 })
      await nothing(bench.mailbox, 'not before')
      await refuses(bench, first, 'MESSAGE_FINALIZED')
      await bench.advance(lapseMs)
      assert.equal((await takeOne(bench)).id, first.id)
    },
    needs('delay'),
  ),

  check(
    'puts what is given back behind what waits',
    async (bench) => {
      await sendAll(bench.mailbox, ['a', 'b', 'c'])
      await (await takeOne(bench)).nack()
      assert.deepEqual(values(await take(bench, 3)), ['b', 'c', 'a'])
    },
    needs('ordered'),
  ),

  check('keeps to the bounds of a nack and of an extension', async (bench) => {
    const { powers } = bench.mailbox
    await bench.mailbox.send('held')
    const message = await takeOne(bench)
    for (const wrong of [-1, 43_201, Number.NaN, text('5')]) {
      const what = `${wrong} seconds`
      await rejectsWith('INVALID_INPUT', () => message.nack({ delaySeconds: wrong }), what)
      await rejectsWith('INVALID_INPUT', () => message.extend(wrong), what)
    }
    assert.equal(message.finalized, false)
    await nothing(bench.mailbox)
    if (powers.extend && powers.visibility) await message.extend(43_200)
    await message.nack(powers.delay ? { delaySeconds: 43_200 } : {})
    if (powers.delay) await nothing(bench.mailbox)
  }),

  check(
    'keeps a message hidden for as long as the receipt is extended',
    async (bench) => {
      await bench.mailbox.send('long work')
      const message = await takeOne(bench, { visibilitySeconds: shortSeconds })
      const before = toMs(message.visibleAt)
      await message.extend(longSeconds)
      assert.ok(toMs(message.visibleAt) > before + 30_000, 'it says until when')
      assert.equal(message.finalized, false)
      await bench.advance(lapseMs)
      await nothing(bench.mailbox)
      await message.acknowledge()
    },
    needs('visibility', 'extend'),
  ),

  check(
    'extends one message and no other',
    async (bench) => {
      const { mailbox } = bench
      await sendAll(mailbox, ['a', 'b', 'c'])
      const [extended, ...others] = await take(bench, 3, { visibilitySeconds: shortSeconds })
      await extended!.extend(longSeconds)
      await bench.advance(lapseMs)
      sameSet(ids(await take(bench, 2)), ids(others))
      await nothing(mailbox)
      await extended!.acknowledge()
    },
    needs('visibility', 'extend'),
  ),

  check(
    'gives a message again when the extension is over',
    async (bench) => {
      await bench.mailbox.send('too long')
      const message = await takeOne(bench, { visibilitySeconds: shortSeconds })
      await message.extend(shortSeconds)
      await bench.advance(lapseMs)
      const again = await takeOne(bench)
      assert.equal(again.id, message.id)
      await refuses(bench, message, 'RECEIPT_EXPIRED')
    },
    needs('visibility', 'extend'),
  ),

  check(
    'never makes a receipt shorter by extending it',
    async (bench) => {
      await bench.mailbox.send('held')
      const message = await takeOne(bench, { visibilitySeconds: longSeconds })
      const before = toMs(message.visibleAt)
      await message.extend(0)
      await message.extend(shortSeconds)
      assert.ok(toMs(message.visibleAt) >= before)
      await bench.advance(lapseMs)
      await nothing(bench.mailbox)
      await message.acknowledge()
    },
    needs('visibility', 'extend'),
  ),

  check(
    'refuses a receipt that has lapsed, though nobody else came',
    async (bench) => {
      await bench.mailbox.send('too late')
      const message = await takeOne(bench, { visibilitySeconds: shortSeconds })
      await bench.advance(lapseMs)
      await refuses(bench, message, 'RECEIPT_EXPIRED')
      assert.equal(message.finalized, false)
      const again = await takeOne(bench)
      assert.equal(again.id, message.id)
      await again.acknowledge()
    },
    needs('visibility'),
  ),

  check(
    'refuses the receipt of an earlier delivery, and leaves the later one alone',
    async (bench) => {
      const { mailbox } = bench
      await mailbox.send('passed on')
      const old = await takeOne(bench, { visibilitySeconds: shortSeconds })
      await bench.advance(lapseMs)
      const current = await takeOne(bench)
      await refuses(bench, old, 'RECEIPT_EXPIRED')
      await nothing(mailbox, 'the nack of an old receipt sets nothing free')
      await current.nack()
      const next = await takeOne(bench)
      await refuses(bench, old, 'RECEIPT_EXPIRED')
      assert.equal(next.deliveries, 3)
      if (mailbox.powers.remembers) assert.equal(next.failures, 1, 'one nack that counts')
      await next.acknowledge()
      await nothing(mailbox)
    },
    needs('visibility'),
  ),

  check('settles each message of a batch by itself', async (bench) => {
    await sendAll(bench.mailbox, ['a', 'b', 'c', 'd'])
    const taken = await take(bench, 4)
    const by = new Map(taken.map((message) => [message.value(), message]))
    await Promise.all([by.get('a')!.acknowledge(), by.get('c')!.acknowledge(), by.get('b')!.nack()])
    assert.deepEqual(values(await take(bench, 1)), ['b'])
    await nothing(bench.mailbox)
    await by.get('d')!.acknowledge()
  }),
]
