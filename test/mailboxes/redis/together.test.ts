import { describe, expect, it } from 'vitest'
import { together } from '../../../src/mailboxes/redis/together.ts'

describe('together', () => {
  it('sends what comes at once as one, and gives each its answer', async () => {
    const batches: number[][] = []
    const calls = together<number, number>(1000, { weight: 0 }, async (asks) => {
      batches.push(asks)
      return asks.map((ask) => ask * 2)
    })
    expect(await Promise.all([1, 2, 3, 4].map((ask) => calls.call(ask)))).toEqual([2, 4, 6, 8])
    expect(batches).toEqual([[1, 2, 3, 4]])
  })

  it('fails what has waited for too long behind others, without sending it', async () => {
    const sent: number[] = []
    const impatient = -1
    const calls = together<number, number>(impatient, { weight: 0 }, async (asks) => {
      sent.push(...asks)
      return asks
    })
    await expect(calls.call(1)).rejects.toMatchObject({ code: 'MAILBOX_UNAVAILABLE' })
    await calls.idle()
    expect(sent).toEqual([])
  })
})
