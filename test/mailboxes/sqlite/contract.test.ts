import { describe } from 'vitest'
import { runMailboxContract } from '../../contract/run-mailbox-contract.ts'
import { openSqliteBench } from './sqlite-bench.ts'
import { clause } from '../../seeds/rows.ts'

describe(clause('M2', 'mailboxes on SQLite pass one contract suite'), () => {
  runMailboxContract('sqliteMailbox', openSqliteBench)
})
