import { describe, expect, it } from 'vitest'
import { errorTable, RedriveError, type ErrorCode } from '../../src/errors.ts'
import { memoryMailbox } from '../../src/mailboxes/memory/memory.ts'
import { fakeClock } from '../../src/testing/index.ts'
import { clause, row } from './rows.ts'

const code = (expected: ErrorCode): object => ({ code: expected })

describe(row('M1'), () => {
  describe(clause('M1', 'typed errors'), () => {
    it('MAILBOX_FULL: counts messages in flight, and there is room once they are acknowledged', async () => {
      const mailbox = memoryMailbox({ name: 'small', clock: fakeClock(), maxMessages: 2 })
      for (const n of [1, 2]) await mailbox.send(n)
      const [out] = await mailbox.receive()
      await expect(mailbox.send(3)).rejects.toMatchObject(code('MAILBOX_FULL'))
      await out!.acknowledge()
      await mailbox.send(3)
      expect(() => memoryMailbox({ name: 'none', maxMessages: 0 })).toThrow(RedriveError)
    })
  })

  describe(clause('M1', 'typed errors'), () => {
    it('each code defines whether to repeat the call', () => {
      const retryable = (of: ErrorCode): boolean => errorTable[of].retry
      expect(
        (['MAILBOX_FULL', 'MAILBOX_UNAVAILABLE'] satisfies ErrorCode[]).map(retryable),
      ).toEqual([true, true])
      const lasting = [
        'RECEIPT_EXPIRED',
        'MESSAGE_FINALIZED',
        'REPLY_UNAVAILABLE',
        'UNDECODABLE',
        'TOO_LARGE',
        'INVALID_INPUT',
        'CLOSED',
      ] satisfies ErrorCode[]
      expect(lasting.filter(retryable)).toEqual([])
    })
  })
})
