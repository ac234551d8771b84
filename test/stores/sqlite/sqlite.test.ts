import { runStoreContract } from '../../contract/run-store-contract.ts'
import { runStoreModel } from '../../contract/run-store-model.ts'
import { runAgreement } from '../run-agreement.ts'
import { openSqliteBench } from './sqlite-bench.ts'

runStoreContract('sqliteStore', openSqliteBench)
runStoreModel('sqliteStore', openSqliteBench)
runAgreement('sqliteStore', openSqliteBench, 8)
