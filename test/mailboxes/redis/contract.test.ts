import { describe } from 'vitest'
import { runMailboxContract } from '../../contract/run-mailbox-contract.ts'
import { openRedisBench, single } from './redis-bench.ts'
import { clause } from '../../seeds/rows.ts'

describe.skipIf(single.missing !== undefined)(
  clause('M2', 'mailboxes on Redis pass one contract suite'),
  () => {
    runMailboxContract('redisMailbox', openRedisBench, { realTime: true })
  },
)
