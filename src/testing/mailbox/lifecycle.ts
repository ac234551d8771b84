import assert from 'node:assert/strict'
import { checkOn, needs, reopened } from './check.ts'
import {
  lapseMs,
  nothing,
  rejectsWith,
  sameBytes,
  sameSet,
  sendAll,
  shortSeconds,
  take,
  takeOne,
  values,
  within,
} from './stage.ts'

const check = checkOn('lifecycle')

/** An option that no method has. */
const unknownOption = (name: string): object => ({ [name]: 1 })

export const lifecycleChecks = [
  check('opens twice without harm', async (bench) => {
    await bench.mailbox.send('kept')
    await Promise.all([bench.mailbox.open(), bench.mailbox.open()])
    assert.equal(bench.mailbox.closed, false)
    assert.equal((await takeOne(bench)).value(), 'kept')
  }),

  check('is well, and says what it looked at', async ({ mailbox }) => {
    const { ok, checks, problems } = await mailbox.health()
    assert.deepEqual(problems, [])
    assert.equal(ok, true)
    assert.ok(Object.keys(checks).length > 0)
    for (const found of Object.values(checks)) assert.equal(typeof found, 'string')
  }),

  check('says what it can do', async ({ mailbox }) => {
    assert.match(mailbox.powers.kind, /^[a-z][a-z0-9-]*$/)
    assert.ok(mailbox.powers.maxBodyBytes >= 64 * 1024)
  }),

  check('refuses unknown options by name, and does nothing', async (bench) => {
    const { mailbox } = bench
    const refused = async (name: string, act: () => Promise<unknown>): Promise<void> => {
      await assert.rejects(act, (error: { code?: unknown; message?: unknown }) => {
        assert.equal(error.code, 'INVALID_INPUT')
        assert.match(String(error.message), new RegExp(`"${name}"`))
        return true
      })
    }
    await refused('delaySecond', () => mailbox.send('never', unknownOption('delaySecond')))
    await nothing(mailbox)
    await mailbox.send('once')
    await refused('visibility', () => mailbox.receive(unknownOption('visibility')))
    const message = await takeOne(bench)
    await refused('delay', () => message.nack(unknownOption('delay')))
    if (mailbox.browse) await refused('limits', () => mailbox.browse!(unknownOption('limits')))
    assert.equal(message.finalized, false)
    await message.acknowledge()
  }),

  check('wakes whoever waits when it is closed', async (bench) => {
    const { mailbox } = bench
    const { signal } = new AbortController()
    const options = [{}, { max: 10 }, { signal }]
    const asked = options.map((more) => mailbox.receive({ waitSeconds: 60, ...more }))
    await bench.advance(100)
    const closing = mailbox.close()
    assert.deepEqual(await within(bench, 5000, Promise.all(asked)), [[], [], []])
    await closing
  }),

  check('refuses everything once it is closed; whoever receives gets nothing', async (bench) => {
    const { mailbox } = bench
    await sendAll(mailbox, ['held', 'left'])
    const held = await takeOne(bench)
    assert.equal(mailbox.closed, false)
    await mailbox.close()
    assert.equal(mailbox.closed, true)
    assert.deepEqual(await mailbox.receive(), [])
    assert.deepEqual(await mailbox.receive({ max: 10, waitSeconds: 60 }), [])
    await rejectsWith('CLOSED', () => mailbox.send('too late'), 'send')
    await rejectsWith('CLOSED', () => mailbox.purge(), 'purge')
    await rejectsWith('CLOSED', () => mailbox.approximateCount(), 'approximateCount')
    await rejectsWith('CLOSED', () => mailbox.open(), 'open')
    if (mailbox.browse) await rejectsWith('CLOSED', () => mailbox.browse!(), 'browse')
    await rejectsWith('CLOSED', () => held.acknowledge(), 'acknowledge')
    await rejectsWith('CLOSED', () => held.nack(), 'nack')
    await rejectsWith('CLOSED', () => held.extend(60), 'extend')
    assert.equal(held.finalized, false)
    const { ok, problems } = await mailbox.health()
    assert.equal(ok, false)
    assert.ok(problems.length > 0)
  }),

  check('closes twice without harm', async ({ mailbox }) => {
    await Promise.all([mailbox.close(), mailbox.close()])
    await mailbox.close()
    assert.equal(mailbox.closed, true)
  }),

  check(
    'has everything again after it was closed: messages, counts, moments',
    async (bench) => {
      const { powers } = bench.mailbox
      const body = Buffer.from('a\0\u00ff', 'latin1')
      const options = { headers: { a: 'ü' }, contentType: 'image/x', replyTo: 'there' }
      const id = await bench.mailbox.send(body, options)
      const first = await takeOne(bench)
      await first.nack()
      const mailbox = await reopened(bench)
      if (powers.exactCount) assert.equal(await mailbox.approximateCount(), 1)
      const again = await takeOne(bench, {}, mailbox)
      assert.equal(again.id, id)
      sameBytes(again.body.bytes, body, 'body')
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
      await nothing(mailbox)
    },
    needs('durable'),
  ),

  check(
    'gives what was out when it was closed to somebody else in the end',
    async (bench) => {
      await sendAll(bench.mailbox, ['a', 'b', 'c'])
      await take(bench, 2, { visibilitySeconds: shortSeconds })
      const mailbox = await reopened(bench)
      await bench.advance(lapseMs)
      const taken = await take(bench, 3, {}, mailbox)
      sameSet(values(taken), ['a', 'b', 'c'])
    },
    needs('durable', 'visibility'),
  ),
]
