import { describe, expect, it } from 'vitest'
import { memoryMailbox } from '../../src/mailboxes/memory/memory.ts'
import { fakeClock, type FakeClock } from '../../src/testing/index.ts'
import { runMailboxContract, type ClosableMailboxBench } from '../contract/run-mailbox-contract.ts'
import { runMailboxModel } from '../contract/run-mailbox-model.ts'
import { clause } from '../seeds/rows.ts'
import { openMailboxBench } from './bench.ts'

function bench(clock: FakeClock): Promise<ClosableMailboxBench> {
  return openMailboxBench({
    make: (name, resolver, more) => memoryMailbox({ name, clock, resolver, ...more }),
    time: clock,
  })
}

describe(clause('M2', 'mailboxes on memory pass one contract suite'), () => {
  runMailboxContract('memoryMailbox', () => bench(fakeClock()))
})
runMailboxModel('memoryMailbox', () => bench(fakeClock()))

describe('memoryMailbox', () => {
  it('rejects maxMessages below 1', () => {
    for (const maxMessages of [0, -1, Number.NaN])
      expect(() => memoryMailbox({ name: 'a', maxMessages })).toThrow(/maxMessages/)
  })

  it('rejects a cursor that browse did not return', async () => {
    const mailbox = memoryMailbox({ name: 'a' })
    for (const after of ['x', '-1', '1.5', ''])
      await expect(mailbox.browse!({ after })).rejects.toMatchObject({ code: 'INVALID_INPUT' })
  })

  it('counts visible, delivered and delayed messages towards maxMessages', async () => {
    const mailbox = memoryMailbox({ name: 'a', clock: fakeClock(), maxMessages: 3 })
    for (const n of [1, 2]) await mailbox.send(n)
    await mailbox.send(3, { id: 'third', delaySeconds: 60 })
    const [first] = await mailbox.receive()
    const full = { code: 'MAILBOX_FULL', message: expect.stringContaining('3 messages') }
    await expect(mailbox.send(4)).rejects.toMatchObject(full)
    expect(await mailbox.send('again', { id: 'third' })).toBe('third')
    await first!.acknowledge()
    await mailbox.send(4)
    expect(await mailbox.approximateCount()).toBe(3)
  })

  it('serves waiting receivers in the order of arrival', async () => {
    const mailbox = memoryMailbox({ name: 'a', clock: fakeClock() })
    const receiving = [1, 2, 3].map(() => mailbox.receive({ max: 10, waitSeconds: 60 }))
    for (const n of [1, 2, 3]) await mailbox.send(n)
    const answers = await Promise.all(receiving)
    expect(answers.map((batch) => batch.map((one) => one.value()))).toEqual([[1], [2], [3]])
  })

  it('puts lapsed messages behind visible ones, in the order of their times', async () => {
    const clock = fakeClock()
    const mailbox = memoryMailbox({ name: 'a', clock })
    for (const n of [1, 2, 3, 4]) await mailbox.send(n)
    for (const visibilitySeconds of [3, 1, 2]) await mailbox.receive({ visibilitySeconds })
    await clock.advance(2000)
    await mailbox.send(5)
    await clock.advance(2000)
    const taken = await mailbox.receive({ max: 10 })
    expect(taken.map((one) => one.value())).toEqual([4, 2, 3, 5, 1])
  })

  it('wakes a receiver exactly when a message becomes visible again', async () => {
    const clock = fakeClock()
    const mailbox = memoryMailbox({ name: 'a', clock })
    await mailbox.send('held')
    const [held] = await mailbox.receive({ visibilitySeconds: 2 })
    let answer: unknown[] | undefined
    void mailbox.receive({ waitSeconds: 60 }).then((batch) => (answer = batch))
    await clock.advance(1000)
    await held!.extend(3)
    await clock.advance(2999)
    expect(answer).toBeUndefined()
    await clock.advance(1)
    expect(answer).toHaveLength(1)
  })

  it('wakes a receiver for a message hidden after it started to wait', async () => {
    const clock = fakeClock()
    const mailbox = memoryMailbox({ name: 'a', clock })
    await mailbox.send('long')
    await mailbox.receive({ visibilitySeconds: 600 })
    const receiving = mailbox.receive({ waitSeconds: 60 })
    await mailbox.send('short', { delaySeconds: 1 })
    await clock.advance(1000)
    expect((await receiving).map((one) => one.value())).toEqual(['short'])
  })

  it('ignores steps of the wall clock', async () => {
    const clock = fakeClock()
    const mailbox = memoryMailbox({ name: 'a', clock })
    await mailbox.send('held')
    const [held] = await mailbox.receive({ visibilitySeconds: 60 })
    clock.set(clock.now() + 24 * 3_600_000)
    expect(await mailbox.receive()).toEqual([])
    await held!.acknowledge()
  })

  it('leaves no timer after a result, a timeout, an abort or a close', async () => {
    const clock = fakeClock()
    const mailbox = memoryMailbox({ name: 'a', clock })
    await mailbox.send('held')
    await mailbox.receive({ visibilitySeconds: 600 })
    expect(clock.pending()).toBe(0)
    const answered = mailbox.receive({ waitSeconds: 60 })
    await mailbox.send('now')
    await answered
    expect(clock.pending()).toBe(0)
    const late = mailbox.receive({ waitSeconds: 1 })
    expect(clock.pending()).toBe(2)
    await clock.advance(1000)
    expect(await late).toEqual([])
    expect(clock.pending()).toBe(0)
    const stop = new AbortController()
    const stopped = mailbox.receive({ waitSeconds: 60, signal: stop.signal })
    stop.abort()
    expect(await stopped).toEqual([])
    expect(clock.pending()).toBe(0)
    const closed = mailbox.receive({ waitSeconds: 60 })
    await mailbox.close()
    expect(await closed).toEqual([])
    expect(clock.pending()).toBe(0)
  })

  it('is separate from another mailbox of the same name', async () => {
    const [one, other] = [memoryMailbox({ name: 'a' }), memoryMailbox({ name: 'a' })]
    await one.send(1)
    expect(await other.receive()).toEqual([])
  })
})
