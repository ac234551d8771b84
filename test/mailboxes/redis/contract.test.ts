import { describe } from 'vitest'
import { runMailboxContract } from '../../contract/run-mailbox-contract.ts'
import { openRedisBench, single } from './redis-bench.ts'

describe.skipIf(single.missing !== undefined)('on a server', () => {
  runMailboxContract('redisMailbox', openRedisBench)
})
