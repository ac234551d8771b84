import { describe } from 'vitest'
import { checksOf, runStoreContract } from '../../contract/run-store-contract.ts'
import { openServerTimeBench, single } from './redis-bench.ts'

describe.skipIf(single.missing !== undefined)('with the time of the server', () => {
  runStoreContract('redisStore', openServerTimeBench, {
    inShort: checksOf('claim', 'lanes', 'renew', 'watch'),
  })
})
