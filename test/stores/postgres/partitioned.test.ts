import { describe } from 'vitest'
import { checksOf, runStoreContract } from '../../contract/run-store-contract.ts'
import { runStoreModel } from '../../contract/run-store-model.ts'
import { atDepth } from '../../depth.ts'
import { openModelBench, openNarrowBench } from './partitions-bench.ts'
import { missing } from './postgres-bench.ts'

describe.skipIf(missing)('on a real server, kept by month', () => {
  // These write or search tables with parts. Each check creates parts, which takes long.
  const topics = ['add', 'dedupe', 'find', 'tally', 'claim', 'apply', 'remove', 'keep']
  runStoreContract('postgresStore', () => openNarrowBench(), { inShort: checksOf(...topics) })
  runStoreModel('postgresStore', (clock) => openModelBench(clock), { numRuns: atDepth(4, 10) })
})
