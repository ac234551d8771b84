import { describe, expect, it } from 'vitest'
import { MainLoop, DLQPolicy } from '../../src/index.ts'
import { fakeClock, testMailbox, type FakeClock } from '../../src/testing/index.ts'
import { runMailboxContract, type ClosableMailboxBench } from '../contract/run-mailbox-contract.ts'
import { openMailboxBench } from '../mailboxes/bench.ts'

function bench(clock: FakeClock): Promise<ClosableMailboxBench> {
  return openMailboxBench({
    make: (name, resolver, more) => testMailbox({ name, clock, resolver, ...more }),
    time: clock,
  })
}

runMailboxContract('testMailbox', () => bench(fakeClock()))

describe('testMailbox', () => {
  it('records sent messages', async () => {
    const mailbox = testMailbox({ name: 'requests' })
    const id = await mailbox.send({ n: 1 }, { headers: { a: 'b' }, replyTo: 'r', delaySeconds: 5 })
    await mailbox.send(new Uint8Array([0xff]), { contentType: 'application/json' })
    expect(mailbox.sent).toEqual([
      {
        id,
        value: { n: 1 },
        headers: { a: 'b' },
        replyTo: 'r',
        delaySeconds: 5,
        sentAt: '2026-01-01T00:00:00.000Z',
      },
      expect.objectContaining({ value: new Uint8Array([0xff]), delaySeconds: 0 }),
    ])
  })

  it('records the outcome of deliveries', async () => {
    const mailbox = testMailbox()
    for (const id of ['a', 'b', 'c']) await mailbox.send(id, { id })
    const [a, b, c] = await mailbox.receive({ max: 3 })
    await a!.acknowledge()
    await b!.nack({ delaySeconds: 60 })
    await c!.nack({ failed: false })
    expect(mailbox.settled).toEqual([
      { id: 'a', outcome: 'acknowledged' },
      { id: 'b', outcome: 'nacked', failed: true, delaySeconds: 60 },
      { id: 'c', outcome: 'nacked', failed: false, delaySeconds: 0 },
    ])
  })

  it('fails on request for the given number of calls, without effect', async () => {
    const mailbox = testMailbox()
    const full = new Error('the disk is full')
    mailbox.failNext('send', full, 2)
    mailbox.failNext('send')
    for (const expected of [full, full]) await expect(mailbox.send('never')).rejects.toBe(expected)
    await expect(mailbox.send('never')).rejects.toMatchObject({ code: 'MAILBOX_UNAVAILABLE' })
    expect(mailbox.sent).toEqual([])
    await mailbox.send('now', { replyTo: 'replies' })
    mailbox.failNext('receive')
    await expect(mailbox.receive()).rejects.toMatchObject({ code: 'MAILBOX_UNAVAILABLE' })
    const [message] = await mailbox.receive()
    for (const operation of ['acknowledge', 'nack', 'extend', 'reply'] as const)
      mailbox.failNext(operation, full)
    await expect(message!.extend(60)).rejects.toBe(full)
    await expect(message!.reply('answer')).rejects.toBe(full)
    await expect(message!.nack()).rejects.toBe(full)
    await expect(message!.acknowledge()).rejects.toBe(full)
    expect(message!.finalized).toBe(false)
    expect(mailbox.settled).toEqual([])
    await message!.acknowledge()
  })

  it('rejects unknown operations in failNext, and unknown options', () => {
    expect(() => testMailbox().failNext('ack' as 'nack')).toThrow('did you mean "acknowledge"?')
    expect(() => testMailbox({ names: 'a' } as object)).toThrow('did you mean "name"?')
  })

  it('redelivers unsettled messages, and rejects the old receipts', async () => {
    const mailbox = testMailbox()
    for (const id of ['a', 'b']) await mailbox.send(id, { id })
    const [a] = await mailbox.receive({ max: 2 })
    expect(mailbox.redeliver('b')).toBe(1)
    expect(await mailbox.receive({ max: 2 })).toMatchObject([{ id: 'b', deliveries: 2 }])
    expect(mailbox.redeliver()).toBe(2)
    expect(mailbox.redeliver()).toBe(0)
    await expect(a!.acknowledge()).rejects.toMatchObject({ code: 'RECEIPT_EXPIRED' })
    expect(await mailbox.receive({ max: 2 })).toHaveLength(2)
  })

  it('follows its clock: delays end, receipts expire, retention removes messages', async () => {
    const mailbox = testMailbox({ retentionSeconds: 3600 })
    let expired = 0
    mailbox.on('expired', ({ count }) => (expired += count))
    await mailbox.send('later', { delaySeconds: 60 })
    const receiving = mailbox.receive({ waitSeconds: 120, visibilitySeconds: 30 })
    await mailbox.advance(60_000)
    expect(await receiving).toHaveLength(1)
    await mailbox.advance(30_000)
    expect(await mailbox.receive({ visibilitySeconds: 30 })).toHaveLength(1)
    await mailbox.advance(3_600_000)
    expect(await mailbox.receive()).toEqual([])
    expect(expired).toBe(1)
  })

  it('records the replies and dead letters of a loop', async () => {
    const clock = fakeClock()
    const requests = testMailbox({ name: 'orders', clock })
    const dead = testMailbox({ name: 'orders-dlq', clock })
    const loop = new MainLoop<number, number>({
      requests,
      clock,
      waitSeconds: 0,
      dlq: { to: dead, policy: new DLQPolicy({ maxDeliveryCount: 1 }) },
      process: (n) => {
        if (n < 0) throw new RangeError('negative')
        return 2 * n
      },
    })
    await requests.send(21, { replyTo: 'replies' })
    await requests.send(-1)
    await loop.run({ maxIterations: 2 })
    expect(requests.repliesTo('replies').sent).toMatchObject([{ value: { output: 42 } }])
    expect(dead.sent).toMatchObject([{ value: { lastErrorType: 'RangeError' } }])
    expect(requests.settled.map(({ outcome }) => outcome)).toEqual(['acknowledged', 'acknowledged'])
  })
})
