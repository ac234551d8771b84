import { describe } from 'vitest'
import { checksOf, runStoreContract } from '../../contract/run-store-contract.ts'
import { runStoreModel } from '../../contract/run-store-model.ts'
import { atDepth } from '../../depth.ts'
import { openModelBench, openNarrowBench } from './partitions-bench.ts'
import { missing } from './postgres-bench.ts'

describe.skipIf(missing)('on a real server, kept by month', () => {
  // Records and counters are in tables without parts.
  const topics = ['add', 'dedupe', 'capacity', 'find', 'tally', 'claim', 'lanes', 'dependencies']
  const changes = ['renew', 'apply', 'applyAll', 'remove', 'keep', 'payloads']
  runStoreContract('postgresStore', () => openNarrowBench(), {
    inShort: checksOf(...topics, ...changes),
  })
  runStoreModel('postgresStore', (clock) => openModelBench(clock), { numRuns: atDepth(3, 10) })
})
