import { describe, expect, it } from 'vitest'
import { TimedBatcher } from '../../../src/mailboxes/redis/timed-batcher.ts'

describe('TimedBatcher', () => {
  it('sends concurrent calls as one batch and returns each its own result', async () => {
    const batches: number[][] = []
    const calls = new TimedBatcher<number, number>(1000, async (asks) => {
      batches.push(asks)
      return asks.map((ask) => ask * 2)
    })
    expect(await Promise.all([1, 2, 3, 4].map((ask) => calls.call(ask)))).toEqual([2, 4, 6, 8])
    expect(batches).toEqual([[1, 2, 3, 4]])
  })

  it('fails a call that was queued for too long, without sending it', async () => {
    const sent: number[] = []
    const expired = -1
    const calls = new TimedBatcher<number, number>(expired, async (asks) => {
      sent.push(...asks)
      return asks
    })
    await expect(calls.call(1)).rejects.toMatchObject({ code: 'MAILBOX_UNAVAILABLE' })
    await calls.idle()
    expect(sent).toEqual([])
  })
})
