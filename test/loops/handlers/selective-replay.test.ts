import { describe, expect, it } from 'vitest'
import { sleep } from '../../../src/clock/clock.ts'
import { mailboxDestination } from '../../../src/loops/destination.ts'
import {
  selectiveReplay,
  type SelectiveReplayOptions,
} from '../../../src/loops/handlers/selective-replay.ts'
import type { DeadMessage } from '../../../src/loops/dead-message.ts'
import type { Mailbox } from '../../../src/mailbox.ts'
import { memoryMailbox } from '../../../src/mailboxes/memory/memory.ts'
import { aDeadMessage } from '../a-dead-message.ts'
import { aLoop, faulty, type LoopBench } from '../a-loop.ts'

const timedOut = (dead: DeadMessage): boolean => dead.lastErrorType === 'TimeoutError'

/** Every third message is a timeout. */
async function filled(bench: LoopBench, count: number): Promise<void> {
  for (let n = 0; n < count; n++)
    await mailboxDestination(bench.dlq).keep(
      aDeadMessage({
        messageId: `m-${n}`,
        lastErrorType: n % 3 === 0 ? 'TimeoutError' : 'TypeError',
      }),
      undefined,
    )
}

const options = (bench: LoopBench): SelectiveReplayOptions => ({
  source: bench.requests,
  predicate: timedOut,
  clock: bench.clock,
  onEvent: bench.onEvent,
})

/**
 * The same mailbox of a broker that cannot browse, and may find nothing without waiting, like SQS.
 */
function unbrowsable(mailbox: Mailbox): Mailbox {
  const receive: Mailbox['receive'] = async ({ waitSeconds = 0, ...options } = {}) =>
    waitSeconds > 0 ? mailbox.receive(options) : []
  return new Proxy(mailbox, {
    get: (target, key) => {
      if (key === 'browse') return undefined
      if (key === 'receive') return receive
      const value: unknown = Reflect.get(target, key)
      return typeof value === 'function' ? (value.bind(target) as unknown) : value
    },
  })
}

describe('selectiveReplay', () => {
  it.each([
    ['browsed', (mailbox: Mailbox) => mailbox],
    ['not browsed', unbrowsable],
  ])('replays all matches of the whole queue, and leaves the rest in order, %s', async (_, way) => {
    const bench = aLoop()
    await filled(bench, 31)
    const report = await selectiveReplay(way(bench.dlq), options(bench))
    expect(report).toMatchObject({ scanned: 31, replayed: 11, complete: true })
    expect(report.results.map(({ messageId }) => messageId)).toContain('m-30')
    expect(await bench.requests.approximateCount()).toBe(11)
    expect(await bench.dlq.approximateCount()).toBe(20)
    expect(bench.eventsOf('dead-letter-handled')).toHaveLength(11)
    const left: unknown[] = []
    for (let batch = 0; batch < 2; batch++)
      for (const message of await bench.dlq.receive({ max: 10 })) {
        left.push((message.value() as DeadMessage).messageId)
        expect(message).toMatchObject({ failures: 0 })
        expect(message.deliveries).toBeLessThanOrEqual(2)
      }
    expect(left).toEqual(
      Array.from({ length: 31 }, (_, n) => `m-${n}`).filter((_, n) => n % 3 !== 0),
    )
  })

  it('does not touch a browsable queue without a match', async () => {
    const bench = aLoop()
    await filled(bench, 5)
    const dlq = faulty(bench.dlq)
    const report = await selectiveReplay(dlq.mailbox, { ...options(bench), predicate: () => false })
    expect(report).toEqual({ scanned: 5, replayed: 0, results: [], complete: true })
    expect(dlq.calls).toEqual([])
  })

  it.each([
    ['browsed', (mailbox: Mailbox) => mailbox],
    ['not browsed', unbrowsable],
  ])('reports matches in a dry run and sends nothing, %s', async (_, way) => {
    const bench = aLoop()
    await filled(bench, 4)
    const report = await selectiveReplay(way(bench.dlq), { ...options(bench), dryRun: true })
    expect(report.results).toEqual([
      { messageId: 'm-0', outcome: 'matched' },
      { messageId: 'm-3', outcome: 'matched' },
    ])
    expect(await bench.requests.approximateCount()).toBe(0)
    expect(await bench.dlq.receive({ max: 10 })).toHaveLength(4)
  })

  it('reports each message separately: sent, refused, failed, busy', async () => {
    const bench = aLoop()
    await filled(bench, 7)
    const [first] = await bench.dlq.receive({ visibilitySeconds: 600 })
    const capped = aDeadMessage({ messageId: 'capped', lastErrorType: 'TimeoutError', replays: 3 })
    await mailboxDestination(bench.dlq).keep(capped, undefined)
    const source = memoryMailbox({ name: 'requests', clock: bench.clock, maxMessages: 1 })
    const report = await selectiveReplay(bench.dlq, { ...options(bench), source })
    expect(report.results).toMatchObject([
      { messageId: 'm-3', outcome: 'replayed' },
      { messageId: 'm-6', outcome: 'failed', error: { code: 'MAILBOX_FULL' } },
      { messageId: 'capped', outcome: 'refused', why: 'already replayed 3 times' },
      { messageId: 'm-0', outcome: 'busy' },
    ])
    await first!.nack({ failed: false })
    expect(await bench.dlq.receive({ max: 10 })).toHaveLength(7)
  })

  it('continues after a predicate that throws, and releases everything when receive fails', async () => {
    const bench = aLoop()
    await filled(bench, 3)
    const report = await selectiveReplay(bench.dlq, {
      ...options(bench),
      predicate: (dead) => {
        if (dead.messageId === 'm-1') throw new Error('cannot say')
        return timedOut(dead)
      },
    })
    expect(report.replayed).toBe(1)
    expect(report.results).toMatchObject([{ messageId: 'm-1', outcome: 'failed' }, {}])

    const dlq = faulty(unbrowsable(bench.dlq))
    let seen = 0
    const breaking = selectiveReplay(dlq.mailbox, {
      ...options(bench),
      predicate: () => {
        if (++seen === 2) dlq.faults.receive = new Error('away')
        return false
      },
    })
    await expect(breaking).rejects.toThrow('away')
    expect(await bench.dlq.receive({ max: 10 })).toHaveLength(2)
  })

  it('stops at its limit and reports that there may be more', async () => {
    const bench = aLoop()
    await filled(bench, 10)
    const report = await selectiveReplay(bench.dlq, { ...options(bench), maxScanned: 4 })
    expect(report).toMatchObject({ scanned: 4, replayed: 2, complete: false })
    const dlq = unbrowsable(bench.dlq)
    const second = await selectiveReplay(dlq, { ...options(bench), maxScanned: 3 })
    expect(second).toMatchObject({ scanned: 3, complete: false })
  })

  it('is not complete if it took so long that a held message was delivered again', async () => {
    const bench = aLoop()
    await filled(bench, 12)
    const running = selectiveReplay(unbrowsable(bench.dlq), {
      ...options(bench),
      predicate: ({ messageId }) => messageId === 'm-0',
      visibilitySeconds: 300,
      transform: async (value) => {
        await sleep(bench.clock, 400_000)
        return value
      },
    })
    await bench.clock.advance(400_000)
    expect(await running).toMatchObject({ replayed: 1, complete: false })
    await bench.clock.advance(300_000)
    expect(await bench.dlq.approximateCount()).toBe(12)
  })

  it.each<[string, unknown]>([
    ['a promise', async () => false],
    ['a match', () => ['m-0']],
    ['nothing', () => undefined],
  ])('sends nothing when the predicate returns %s', async (_, predicate) => {
    const bench = aLoop()
    await filled(bench, 3)
    const given = predicate as SelectiveReplayOptions['predicate']
    const report = await selectiveReplay(bench.dlq, { ...options(bench), predicate: given })
    expect(report).toMatchObject({ scanned: 3, replayed: 0 })
    expect(report.results.map(({ outcome }) => outcome)).toEqual(['failed', 'failed', 'failed'])
    expect(String(report.results[0]?.error)).toContain('predicate must return true or false')
    expect(await bench.dlq.approximateCount()).toBe(3)
    expect(await bench.requests.approximateCount()).toBe(0)
  })
})
