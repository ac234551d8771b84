import { describe } from 'vitest'
import { runStoreContract } from '../../contract/run-store-contract.ts'
import { runStoreModel } from '../../contract/run-store-model.ts'
import { atDepth } from '../../depth.ts'
import { runAgreement } from '../run-agreement.ts'
import { openRedisBench, single } from './redis-bench.ts'

describe.skipIf(single.missing !== undefined)('on a server', () => {
  runStoreContract('redisStore', () => openRedisBench())
  runStoreModel('redisStore', openRedisBench, { numRuns: atDepth(20, 100) })
  runAgreement('redisStore', openRedisBench, 6)
})
