import assert from 'node:assert/strict'
import { checkOn, needs, reopen } from './check.ts'
import {
  lapseMs,
  expectEmpty,
  expectRejection,
  expectSameBytes,
  expectSameSet,
  sendAll,
  shortSeconds,
  receiveMany,
  receiveOne,
  values,
  waitWithin,
} from './steps.ts'

const check = checkOn('lifecycle')

/** An option that no method has. */
const unknownOption = (name: string): object => ({ [name]: 1 })

export const lifecycleChecks = [
  check('can be opened twice', async (bench) => {
    await bench.mailbox.send('kept')
    await Promise.all([bench.mailbox.open(), bench.mailbox.open()])
    assert.equal(bench.mailbox.closed, false)
    assert.equal((await receiveOne(bench)).value(), 'kept')
  }),

  check('is healthy, and reports its checks', async ({ mailbox }) => {
    const { ok, checks, problems } = await mailbox.health()
    assert.deepEqual(problems, [])
    assert.equal(ok, true)
    assert.ok(Object.keys(checks).length > 0)
    for (const result of Object.values(checks)) assert.equal(typeof result, 'string')
  }),

  check('has powers with a kind and a maximum body size', async ({ mailbox }) => {
    assert.match(mailbox.powers.kind, /^[a-z][a-z0-9-]*$/)
    assert.ok(mailbox.powers.maxBodyBytes >= 64 * 1024)
  }),

  check('rejects unknown options by name, without any effect', async (bench) => {
    const { mailbox } = bench
    const expectRefused = async (name: string, act: () => Promise<unknown>): Promise<void> => {
      await assert.rejects(act, (error: { code?: unknown; message?: unknown }) => {
        assert.equal(error.code, 'INVALID_INPUT')
        assert.match(String(error.message), new RegExp(`"${name}"`))
        return true
      })
    }
    await expectRefused('delaySecond', () => mailbox.send('never', unknownOption('delaySecond')))
    await expectEmpty(mailbox)
    await mailbox.send('once')
    await expectRefused('visibility', () => mailbox.receive(unknownOption('visibility')))
    const message = await receiveOne(bench)
    await expectRefused('delay', () => message.nack(unknownOption('delay')))
    if (mailbox.browse)
      await expectRefused('limits', () => mailbox.browse!(unknownOption('limits')))
    assert.equal(message.finalized, false)
    await message.acknowledge()
  }),

  check('resolves waiting receives when it is closed', async (bench) => {
    const { mailbox } = bench
    const { signal } = new AbortController()
    const options = [{}, { max: 10 }, { signal }]
    const pending = options.map((extra) => mailbox.receive({ waitSeconds: 60, ...extra }))
    await bench.advance(100)
    const closing = mailbox.close()
    assert.deepEqual(await waitWithin(bench, 5000, Promise.all(pending)), [[], [], []])
    await closing
  }),

  check('rejects calls after close with CLOSED; receive returns no messages', async (bench) => {
    const { mailbox } = bench
    await sendAll(mailbox, ['held', 'left'])
    const held = await receiveOne(bench)
    assert.equal(mailbox.closed, false)
    await mailbox.close()
    assert.equal(mailbox.closed, true)
    assert.deepEqual(await mailbox.receive(), [])
    assert.deepEqual(await mailbox.receive({ max: 10, waitSeconds: 60 }), [])
    await expectRejection('CLOSED', () => mailbox.send('too late'), 'send')
    await expectRejection('CLOSED', () => mailbox.purge(), 'purge')
    await expectRejection('CLOSED', () => mailbox.approximateCount(), 'approximateCount')
    await expectRejection('CLOSED', () => mailbox.open(), 'open')
    if (mailbox.browse) await expectRejection('CLOSED', () => mailbox.browse!(), 'browse')
    await expectRejection('CLOSED', () => held.acknowledge(), 'acknowledge')
    await expectRejection('CLOSED', () => held.nack(), 'nack')
    await expectRejection('CLOSED', () => held.extend(60), 'extend')
    assert.equal(held.finalized, false)
    const { ok, problems } = await mailbox.health()
    assert.equal(ok, false)
    assert.ok(problems.length > 0)
  }),

  check('can be closed twice', async ({ mailbox }) => {
    await Promise.all([mailbox.close(), mailbox.close()])
    await mailbox.close()
    assert.equal(mailbox.closed, true)
  }),

  check(
    'keeps messages, counts and timestamps across a restart',
    async (bench) => {
      const { powers } = bench.mailbox
      const body = Buffer.from('a\0\u00ff', 'latin1')
      const options = { headers: { a: 'ü' }, contentType: 'image/x', replyTo: 'there' }
      const id = await bench.mailbox.send(body, options)
      const first = await receiveOne(bench)
      await first.nack()
      const mailbox = await reopen(bench)
      if (powers.exactCount) assert.equal(await mailbox.approximateCount(), 1)
      const again = await receiveOne(bench, {}, mailbox)
      assert.equal(again.id, id)
      expectSameBytes(again.body.bytes, body, 'body')
      assert.equal(again.body.contentType, 'image/x')
      assert.deepEqual({ ...again.headers }, { a: 'ü' })
      assert.equal(again.replyTo, 'there')
      assert.equal(again.enqueuedAt, first.enqueuedAt)
      assert.equal(again.deliveries, 2)
      if (powers.remembers) {
        assert.equal(again.failures, 1)
        assert.equal(again.firstReceivedAt, first.firstReceivedAt)
      }
      await again.acknowledge()
      await expectEmpty(mailbox)
    },
    needs('durable'),
  ),

  check(
    'redelivers in-flight messages after a restart',
    async (bench) => {
      await sendAll(bench.mailbox, ['a', 'b', 'c'])
      await receiveMany(bench, 2, { visibilitySeconds: shortSeconds })
      const mailbox = await reopen(bench)
      await bench.advance(lapseMs)
      const taken = await receiveMany(bench, 3, {}, mailbox)
      expectSameSet(values(taken), ['a', 'b', 'c'])
    },
    needs('durable', 'visibility'),
  ),
]
