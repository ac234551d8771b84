import assert from 'node:assert/strict'
import type { Mailbox } from '../../mailbox.ts'
import { checkOn, needs, type MailboxBench } from './check.ts'
import {
  lapseMs,
  longSeconds,
  expectEmpty,
  expectRejection,
  shortSeconds,
  receiveOne,
  values,
  waitWithin,
} from './steps.ts'

const check = checkOn('retention')

const dayMs = 86_400_000

/** Receives until `count` messages were reported as expired. None of them may be delivered. */
async function expectExpired(bench: MailboxBench, mailbox: Mailbox, count: number): Promise<void> {
  const stop = new AbortController()
  let left = count
  const reported = new Promise<void>((resolve) => {
    mailbox.on('expired', (event) => (left -= event.count) <= 0 && resolve())
  })
  const { signal } = stop
  const pending = mailbox.receive({
    max: 10,
    waitSeconds: 60,
    visibilitySeconds: longSeconds,
    signal,
  })
  await waitWithin(bench, 20_000, reported)
  stop.abort()
  assert.deepEqual(values(await pending), [])
  assert.equal(left, 0)
}

export const retentionChecks = [
  check('keeps messages forever, or as long as the broker allows, by default', async (bench) => {
    const { mailbox } = bench
    let reported = 0
    mailbox.on('expired', ({ count }) => (reported += count))
    await mailbox.send('old')
    if (bench.hasFakeTime) await bench.advance(30 * dayMs)
    const [old] = await waitWithin(bench, 10_000, mailbox.receive({ waitSeconds: 5 }))
    assert.equal(old?.value(), 'old')
    const { maxRetentionSeconds } = mailbox.powers
    const expected = maxRetentionSeconds === undefined ? 'for ever' : `${maxRetentionSeconds} s`
    const { checks } = await mailbox.health()
    assert.equal(checks['retention'], expected)
    assert.equal(checks['expired'], '0')
    assert.equal(reported, 0)
  }),

  check('removes messages older than the retention, and reports their number', async (bench) => {
    const mailbox = await bench.withRetention(shortSeconds)
    for (const body of ['a', 'b']) await mailbox.send(body)
    await bench.advance(lapseMs)
    await expectExpired(bench, mailbox, 2)
    const fresh = await mailbox.send('fresh')
    assert.equal((await receiveOne(bench, {}, mailbox)).id, fresh)
    const { checks } = await mailbox.health()
    assert.equal(checks['retention'], `${shortSeconds} s`)
    assert.equal(checks['expired'], '2')
    if (mailbox.powers.exactCount) assert.equal(await mailbox.approximateCount(), 1)
  }),

  check('does not remove an in-flight message, however old it is', async (bench) => {
    const mailbox = await bench.withRetention(shortSeconds)
    await mailbox.send('slow')
    const message = await receiveOne(bench, {}, mailbox)
    await bench.advance(lapseMs)
    await expectEmpty(mailbox)
    await message.acknowledge()
    assert.equal((await mailbox.health()).checks['expired'], '0')
  }),

  check(
    'rejects a delay that is not shorter than the retention',
    async (bench) => {
      const mailbox = await bench.withRetention(shortSeconds)
      await expectRejection('INVALID_INPUT', () =>
        mailbox.send('late', { delaySeconds: shortSeconds }),
      )
      await expectEmpty(mailbox)
    },
    needs('delay'),
  ),

  check('does not call a listener that was removed', async (bench) => {
    const mailbox = await bench.withRetention(shortSeconds)
    const remove = mailbox.on('expired', () => assert.fail('the listener was removed'))
    remove()
    remove()
    await mailbox.send('old')
    await bench.advance(lapseMs)
    await expectExpired(bench, mailbox, 1)
  }),
]
