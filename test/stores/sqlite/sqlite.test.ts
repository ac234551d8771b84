import { runStoreContract } from '../../contract/run-store-contract.ts'
import { runStoreModel } from '../../contract/run-store-model.ts'
import { openSqliteBench } from './sqlite-bench.ts'

runStoreContract('sqliteStore', openSqliteBench)
runStoreModel('sqliteStore', openSqliteBench)
