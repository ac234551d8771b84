import { runStoreContract } from '../../contract/run-store-contract.ts'
import { runStoreModel } from '../../contract/run-store-model.ts'
import { atDepth } from '../../depth.ts'
import { runAgreement } from '../run-agreement.ts'
import { openSqliteBench } from './sqlite-bench.ts'

runStoreContract('sqliteStore', openSqliteBench)
runStoreModel('sqliteStore', openSqliteBench, { numRuns: atDepth(60, 300) })
runAgreement('sqliteStore', openSqliteBench, 8)
