import { runMailboxContract } from '../../contract/run-mailbox-contract.ts'
import { openSqliteBench } from './sqlite-bench.ts'

runMailboxContract('sqliteMailbox', openSqliteBench)
