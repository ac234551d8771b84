import { describe } from 'vitest'
import { runMailboxContract } from '../../contract/run-mailbox-contract.ts'
import { backend } from '../../servers/servers.ts'
import { postgresBenches } from './postgres-bench.ts'
import { clause } from '../../seeds/rows.ts'

const postgres = backend('postgres')
describe.skipIf(postgres.missing)(
  clause('M2', 'mailboxes on Postgres pass one contract suite'),
  () => {
    runMailboxContract('postgresMailbox', postgresBenches(postgres.url), { realTime: true })
  },
)
