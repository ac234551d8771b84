import { describe } from 'vitest'
import { runMailboxContract } from '../../contract/run-mailbox-contract.ts'
import { backend } from '../../servers/servers.ts'
import { openPostgresBench } from './postgres-bench.ts'

const postgres = backend('postgres')
describe.skipIf(postgres.missing)('on PostgreSQL', () => {
  runMailboxContract('postgresMailbox', () => openPostgresBench(postgres.url))
})
