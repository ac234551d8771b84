import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { describe, expect, it } from 'vitest'
import { nextTurn } from '../../../src/clock/clock.ts'
import { useQueue } from '../../../src/mailboxes/memory/broker.ts'
import { memoryMailbox } from '../../../src/mailboxes/memory/memory.ts'
import { fakeClock } from '../../../src/testing/index.ts'

const rules = { maxMessages: Infinity, retentionMs: 0, report: () => {} }
const outgoing = { id: 'm', bytes: new Uint8Array(), contentType: 'text/plain', headers: {} }

describe('useQueue', () => {
  it('returns the same queue for the same clock, broker and name', () => {
    const clock = fakeClock()
    const { queue } = useQueue(clock, 'one', 'a')
    expect(useQueue(clock, 'one', 'a').queue).toBe(queue)
    expect(useQueue(clock, 'one', 'b').queue).not.toBe(queue)
    expect(useQueue(clock, 'two', 'a').queue).not.toBe(queue)
    expect(useQueue(fakeClock(), 'one', 'a').queue).not.toBe(queue)
  })

  it('keeps messages until the last mailbox of the broker closes', () => {
    const clock = fakeClock()
    const [a, b] = [useQueue(clock, 'one', 'a'), useQueue(clock, 'one', 'b')]
    a.queue.send(outgoing, 0, rules)
    a.leave()
    a.leave()
    const again = useQueue(clock, 'one', 'a')
    expect(again.queue.size).toBe(1)
    b.leave()
    again.leave()
    expect(useQueue(clock, 'one', 'a').queue.size).toBe(0)
  })

  it('removes an empty queue when its last handle leaves', () => {
    const clock = fakeClock()
    useQueue(clock, 'one', 'stays')
    const [first, second] = [useQueue(clock, 'one', 'a'), useQueue(clock, 'one', 'a')]
    first.leave()
    expect(useQueue(clock, 'one', 'a').queue).toBe(second.queue)
    const other = useQueue(clock, 'one', 'b')
    other.leave()
    expect(useQueue(clock, 'one', 'b').queue).not.toBe(other.queue)
  })

  it('releases a broker whose handles were dropped without close', async () => {
    setFlagsFromString('--expose-gc')
    const collect = runInNewContext('gc') as () => void
    const clock = fakeClock()
    const open = async (): Promise<WeakRef<object>> => {
      const { queue } = useQueue(clock, 'one', 'a')
      return new WeakRef(queue)
    }
    const queue = await open()
    for (let turn = 0; turn < 50 && queue.deref(); turn++) {
      await nextTurn()
      collect()
    }
    expect(queue.deref()).toBeUndefined()
  })
})

describe('memoryMailbox with a broker', () => {
  it('must be opened before use, and then shares its messages', async () => {
    const clock = fakeClock()
    const [one, other] = ['a', 'a'].map((name) => memoryMailbox({ name, clock, broker: 'x' }))
    await expect(one!.send(1)).rejects.toMatchObject({ code: 'CLOSED' })
    await Promise.all([one!.open(), one!.open(), other!.open()])
    await one!.send(1)
    const [message] = await other!.receive()
    expect(await one!.receive()).toEqual([])
    await other!.close()
    await expect(message!.acknowledge()).rejects.toMatchObject({ code: 'CLOSED' })
    expect(await one!.approximateCount()).toBe(1)
    await one!.close()
  })

  it('rejects unknown options by name', () => {
    expect(() => memoryMailbox({ name: 'a', maxMessage: 5 } as never)).toThrow(
      'unknown key "maxMessage" in memory mailbox options: did you mean "maxMessages"?',
    )
  })
})

describe('memoryMailbox with a retention', () => {
  it('has room and accepts an id again once messages have expired', async () => {
    const clock = fakeClock()
    const mailbox = memoryMailbox({ name: 'a', clock, maxMessages: 2, retentionSeconds: 60 })
    const counts: number[] = []
    mailbox.on('expired', ({ count }) => counts.push(count))
    for (const id of ['a', 'b']) await mailbox.send('old', { id })
    await expect(mailbox.send('c')).rejects.toMatchObject({ code: 'MAILBOX_FULL' })
    await clock.advance(60_000)
    await mailbox.send('new', { id: 'a' })
    expect(counts).toEqual([2])
    expect((await mailbox.receive({ max: 10 })).map((one) => one.value())).toEqual(['new'])
  })

  it('does not deliver a message that expired while it was hidden', async () => {
    const clock = fakeClock()
    const mailbox = memoryMailbox({ name: 'a', clock, retentionSeconds: 60 })
    const counts: number[] = []
    mailbox.on('expired', ({ count }) => counts.push(count))
    await mailbox.send('old')
    await mailbox.receive({ visibilitySeconds: 90 })
    const receiving = mailbox.receive({ waitSeconds: 300 })
    await clock.advance(90_000)
    expect(counts).toEqual([1])
    await mailbox.send('new')
    expect((await receiving).map((one) => one.value())).toEqual(['new'])
  })
})
