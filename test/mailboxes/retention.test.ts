import { describe, expect, it } from 'vitest'
import type { ReceiveRequest, Delivery } from '../../src/mailbox.ts'
import { mailbox } from '../../src/mailboxes/mailbox.ts'
import { retentionMsOf } from '../../src/backends/retention.ts'
import { fakeClock } from '../../src/testing/index.ts'
import { aDelivery, aDriver } from './a-driver.ts'

const hour = 3_600_000

describe('retentionMsOf', () => {
  it('is 0 by default', () => {
    expect(retentionMsOf()).toBe(0)
    expect(retentionMsOf(2.5)).toBe(2500)
  })

  it.each([-1, Number.NaN, Infinity, 3_155_760_001, '5' as unknown as number, null as never])(
    'refuses %s',
    (seconds) => {
      const refused = {
        code: 'INVALID_CONFIG',
        message: expect.stringContaining('retentionSeconds'),
      }
      expect(() => retentionMsOf(seconds)).toThrow(expect.objectContaining(refused))
    },
  )
})

describe('a mailbox whose driver does not expire messages itself', () => {
  const clock = fakeClock()
  const old = (id: string): Delivery =>
    aDelivery({ id, receipt: id, enqueuedMs: clock.now() - hour })
  const young = (id: string): Delivery =>
    aDelivery({ id, receipt: id, enqueuedMs: clock.now() - hour + 1 })

  const opened = (batches: Delivery[][], acknowledge: (receipt: string) => Promise<boolean>) => {
    const asks: ReceiveRequest[] = []
    const receive = async (ask: ReceiveRequest): Promise<Delivery[]> => {
      asks.push(ask)
      return batches.shift() ?? []
    }
    const box = mailbox(aDriver({ receive, acknowledge }), { clock, retentionSeconds: 3600 })
    const counts: number[] = []
    box.on('expired', ({ count }) => counts.push(count))
    return { box, counts, asks }
  }

  it('removes old messages and delivers the others', async () => {
    const removed: string[] = []
    const { box, counts } = opened([[old('a'), young('b'), old('c')]], async (receipt) => {
      removed.push(receipt)
      return true
    })
    expect((await box.receive({ max: 3 })).map(({ id }) => id)).toEqual(['b'])
    expect(removed).toEqual(['a', 'c'])
    expect(counts).toEqual([2])
  })

  it('continues to receive when all were old, until nothing is left', async () => {
    const { box, counts, asks } = opened([[old('a')], [old('b')]], async () => true)
    expect(await box.receive({ waitSeconds: 5 })).toEqual([])
    expect(counts).toEqual([1, 1])
    expect(asks.map(({ waitMs }) => waitMs)).toEqual([5000, 5000, 5000])
  })

  it('does not remove a message without a time of sending', async () => {
    const { box } = opened([[aDelivery({ id: 'a', enqueuedMs: 0 })]], async () => true)
    expect(await box.receive()).toHaveLength(1)
  })

  it('reports only removed messages, and delivers the rest although a removal failed', async () => {
    const { box, counts } = opened(
      [[old('stale'), old('fails'), young('b')], [old('stale')]],
      async (receipt) => {
        if (receipt === 'fails') throw new Error('away')
        return false
      },
    )
    expect((await box.receive({ max: 3 })).map(({ id }) => id)).toEqual(['b'])
    expect(await box.receive({ waitSeconds: 5 })).toEqual([])
    expect(counts).toEqual([])
  })

  it('rejects a retention longer than that of the broker', () => {
    const driver = aDriver({ powers: { ...aDriver().powers, maxRetentionSeconds: 100 } })
    expect(() => mailbox(driver, { clock, retentionSeconds: 101 })).toThrow(
      'test deletes messages after 100 seconds itself: retentionSeconds must be 100 or less, got 101',
    )
    expect(mailbox(driver, { clock, retentionSeconds: 100 }).name).toBe('a')
  })

  it('rejects unknown events and invalid listeners', () => {
    const box = mailbox(aDriver(), { clock })
    expect(() => box.on('expire' as 'expired', () => {})).toThrow('did you mean "expired"?')
    expect(() => box.on('expired', 'log' as never)).toThrow('must be a function, got string')
  })
})
