import { describe } from 'vitest'
import { runStoreContract } from '../../contract/run-store-contract.ts'
import { runStoreModel } from '../../contract/run-store-model.ts'
import { openModelBench, openNarrowBench } from './partitions-bench.ts'
import { missing } from './postgres-bench.ts'

describe.skipIf(missing)('on a real server, kept by month', () => {
  runStoreContract('postgresStore', () => openNarrowBench())
  runStoreModel('postgresStore', (clock) => openModelBench(clock), { numRuns: 10 })
})
