import { describe } from 'vitest'
import { runStoreContract } from '../../contract/run-store-contract.ts'
import { runStoreModel } from '../../contract/run-store-model.ts'
import { runAgreement } from '../run-agreement.ts'
import { missing, openPostgresBench } from './postgres-bench.ts'

describe.skipIf(missing)('on a real server', () => {
  runStoreContract('postgresStore', () => openPostgresBench())
  // A hundred runs, in parts that end well within the time that one test may take on a busy
  // machine.
  for (const part of ['first', 'second', 'third', 'last'])
    runStoreModel(`postgresStore, ${part} part,`, (clock) => openPostgresBench(clock), {
      numRuns: 25,
    })
  runAgreement('postgresStore', openPostgresBench, 5)
})
