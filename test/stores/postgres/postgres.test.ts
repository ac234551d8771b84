import { describe } from 'vitest'
import { runStoreContract } from '../../contract/run-store-contract.ts'
import { runStoreModel } from '../../contract/run-store-model.ts'
import { atDepth } from '../../depth.ts'
import { runAgreement } from '../run-agreement.ts'
import { missing, openPostgresBench } from './postgres-bench.ts'

describe.skipIf(missing)('on a real server', () => {
  runStoreContract('postgresStore', () => openPostgresBench())
  // In parts that end well within the time that one test may take on a busy machine.
  for (const part of ['first', 'second', 'third', 'last'])
    runStoreModel(`postgresStore, ${part} part,`, (clock) => openPostgresBench(clock), {
      numRuns: atDepth(4, 25),
    })
  runAgreement('postgresStore', openPostgresBench, 5)
})
