import assert from 'node:assert/strict'
import { toMs } from '../../letter/time.ts'
import type { Message } from '../../mailbox.ts'
import { checkOn, needs, type MailboxBench } from './check.ts'
import {
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
} from './steps.ts'

const check = checkOn('settle')

/** Every use of the receipt is rejected with this code. */
async function expectRejected(
  bench: MailboxBench,
  message: Message,
  code: 'RECEIPT_EXPIRED' | 'MESSAGE_FINALIZED',
): Promise<void> {
  await expectRejection(code, () => message.acknowledge(), 'acknowledge')
  await expectRejection(code, () => message.nack(), 'nack')
  await expectRejection(code, () => message.nack({ failed: false }), 'nack without failure')
  if (bench.mailbox.powers.extend)
    await expectRejection(code, () => message.extend(longSeconds), 'extend')
}

export const settleChecks = [
  check('deletes an acknowledged message permanently', async (bench) => {
    const { mailbox } = bench
    await sendAll(mailbox, ['done', 'still there'])
    const [done, other] = await receiveMany(bench, 2, { visibilitySeconds: shortSeconds })
    assert.equal(done!.finalized, false)
    await done!.acknowledge()
    assert.equal(done!.finalized, true)
    assert.equal(other!.finalized, false)
    await bench.advance(lapseMs)
    if (!mailbox.powers.visibility) return expectEmpty(mailbox)
    assert.deepEqual(ids(await receiveMany(bench, 1)), [other!.id])
    await expectEmpty(mailbox)
  }),

  check('rejects every call on an acknowledged message', async (bench) => {
    await bench.mailbox.send('once', { replyTo: 'anyone' })
    const message = await receiveOne(bench)
    await message.acknowledge()
    await expectRejected(bench, message, 'MESSAGE_FINALIZED')
    await expectRejection('MESSAGE_FINALIZED', () => message.reply('too late'))
  }),

  check('rejects every call on a nacked message', async (bench) => {
    await bench.mailbox.send('once', { replyTo: 'anyone' })
    const message = await receiveOne(bench)
    await message.nack()
    assert.equal(message.finalized, true)
    await expectRejected(bench, message, 'MESSAGE_FINALIZED')
    await expectRejection('MESSAGE_FINALIZED', () => message.reply('too late'))
    assert.equal((await receiveOne(bench)).id, message.id)
    await expectEmpty(bench.mailbox)
  }),

  check('accepts one of many concurrent acknowledges', async (bench) => {
    await bench.mailbox.send('once')
    const message = await receiveOne(bench)
    const tries = Array.from({ length: 5 }, () => message.acknowledge())
    const results = await Promise.allSettled(tries)
    assert.equal(results.filter((one) => one.status === 'fulfilled').length, 1)
    for (const one of results)
      if (one.status === 'rejected')
        assert.equal((one.reason as { code: unknown }).code, 'MESSAGE_FINALIZED')
    await expectEmpty(bench.mailbox)
  }),

  check('accepts either the acknowledge or the nack if both are concurrent', async (bench) => {
    await bench.mailbox.send('either')
    const message = await receiveOne(bench)
    const results = await Promise.allSettled([message.acknowledge(), message.nack()])
    const [acknowledged, nacked] = results.map((one) => one.status === 'fulfilled')
    assert.notEqual(acknowledged, nacked)
    if (nacked) await (await receiveOne(bench)).acknowledge()
    await expectEmpty(bench.mailbox)
  }),

  check('redelivers a nacked message at once', async (bench) => {
    await bench.mailbox.send('again')
    const first = await receiveOne(bench)
    await first.nack()
    const second = await receiveOne(bench)
    assert.equal(second.id, first.id)
    assert.equal(second.value(), 'again')
    assert.equal(second.finalized, false)
    await second.acknowledge()
    await expectEmpty(bench.mailbox)
  }),

  check(
    'redelivers a nacked message after its delay, not before',
    async (bench) => {
      const { mailbox } = bench
      await sendAll(mailbox, ['later', 'much later'])
      const [first, second] = await receiveMany(bench, 2)
      await second!.nack({ delaySeconds: 600 })
      await first!.nack({ delaySeconds: 1 })
      if (bench.hasFakeTime) await expectEmpty(mailbox, 'before the delay is over')
      await expectRejected(bench, first!, 'MESSAGE_FINALIZED')
      await bench.advance(lapseMs)
      assert.equal((await receiveOne(bench)).id, first!.id)
      await expectEmpty(mailbox, 'before the longer delay is over')
    },
    needs('delay'),
  ),

  check(
    'puts a nacked message behind waiting messages',
    async (bench) => {
      await sendAll(bench.mailbox, ['a', 'b', 'c'])
      await (await receiveOne(bench)).nack()
      assert.deepEqual(values(await receiveMany(bench, 3)), ['b', 'c', 'a'])
    },
    needs('ordered'),
  ),

  check('rejects a nack delay or an extension out of range', async (bench) => {
    const { powers } = bench.mailbox
    await bench.mailbox.send('held')
    const message = await receiveOne(bench)
    for (const seconds of [-1, 43_201, Number.NaN, asNumber('5')]) {
      const what = `${seconds} seconds`
      await expectRejection('INVALID_INPUT', () => message.nack({ delaySeconds: seconds }), what)
      await expectRejection('INVALID_INPUT', () => message.extend(seconds), what)
    }
    assert.equal(message.finalized, false)
    await expectEmpty(bench.mailbox)
    if (powers.extend && powers.visibility) await message.extend(43_200)
    await message.nack(powers.delay ? { delaySeconds: 43_200 } : {})
    if (powers.delay) await expectEmpty(bench.mailbox)
  }),

  check(
    'hides a message until the end of its extension',
    async (bench) => {
      await bench.mailbox.send('long work')
      const message = await receiveOne(bench, { visibilitySeconds: shortSeconds })
      const before = toMs(message.visibleAt)
      await message.extend(longSeconds)
      assert.ok(toMs(message.visibleAt) > before + 30_000, 'visibleAt moves')
      assert.equal(message.finalized, false)
      await bench.advance(lapseMs)
      await expectEmpty(bench.mailbox)
      await message.acknowledge()
    },
    needs('visibility', 'extend'),
  ),

  check(
    'extends only the given message',
    async (bench) => {
      const { mailbox } = bench
      await sendAll(mailbox, ['a', 'b', 'c'])
      const [extended, ...others] = await receiveMany(bench, 3, { visibilitySeconds: shortSeconds })
      await extended!.extend(longSeconds)
      await bench.advance(lapseMs)
      expectSameSet(ids(await receiveMany(bench, 2)), ids(others))
      await expectEmpty(mailbox)
      await extended!.acknowledge()
    },
    needs('visibility', 'extend'),
  ),

  check(
    'redelivers a message after its extension',
    async (bench) => {
      await bench.mailbox.send('too long')
      const message = await receiveOne(bench, { visibilitySeconds: shortSeconds })
      await message.extend(shortSeconds)
      await bench.advance(lapseMs)
      const again = await receiveOne(bench)
      assert.equal(again.id, message.id)
      await expectRejected(bench, message, 'RECEIPT_EXPIRED')
    },
    needs('visibility', 'extend'),
  ),

  check(
    'never shortens a receipt by extending it',
    async (bench) => {
      await bench.mailbox.send('held')
      const message = await receiveOne(bench, { visibilitySeconds: longSeconds })
      const before = toMs(message.visibleAt)
      await message.extend(0)
      await message.extend(shortSeconds)
      assert.ok(toMs(message.visibleAt) >= before)
      await bench.advance(lapseMs)
      await expectEmpty(bench.mailbox)
      await message.acknowledge()
    },
    needs('visibility', 'extend'),
  ),

  check(
    'rejects an expired receipt even if no other receiver got the message',
    async (bench) => {
      await bench.mailbox.send('too late')
      const message = await receiveOne(bench, { visibilitySeconds: shortSeconds })
      await bench.advance(lapseMs)
      await expectRejected(bench, message, 'RECEIPT_EXPIRED')
      assert.equal(message.finalized, false)
      const again = await receiveOne(bench)
      assert.equal(again.id, message.id)
      await again.acknowledge()
    },
    needs('visibility'),
  ),

  check(
    'rejects the receipt of an earlier delivery without affecting the later one',
    async (bench) => {
      const { mailbox } = bench
      await mailbox.send('passed on')
      const old = await receiveOne(bench, { visibilitySeconds: shortSeconds })
      await bench.advance(lapseMs)
      const current = await receiveOne(bench)
      await expectRejected(bench, old, 'RECEIPT_EXPIRED')
      await expectEmpty(mailbox, 'the nack of an old receipt does not release the message')
      await current.nack()
      const next = await receiveOne(bench)
      await expectRejected(bench, old, 'RECEIPT_EXPIRED')
      assert.equal(next.deliveries, 3)
      if (mailbox.powers.remembers) assert.equal(next.failures, 1, 'only one nack counts')
      await next.acknowledge()
      await expectEmpty(mailbox)
    },
    needs('visibility'),
  ),

  check('settles each message of a batch independently', async (bench) => {
    await sendAll(bench.mailbox, ['a', 'b', 'c', 'd'])
    const taken = await receiveMany(bench, 4)
    const by = new Map(taken.map((message) => [message.value(), message]))
    await Promise.all([by.get('a')!.acknowledge(), by.get('c')!.acknowledge(), by.get('b')!.nack()])
    assert.deepEqual(values(await receiveMany(bench, 1)), ['b'])
    await expectEmpty(bench.mailbox)
    await by.get('d')!.acknowledge()
  }),
]
