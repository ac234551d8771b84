// A worker that every message kills. Arguments: the file of the mailboxes, the excluded errors.
import { MainLoop } from '../../src/loops/main-loop.ts'
import { sqliteMailbox } from '../../src/mailboxes/sqlite/sqlite.ts'
import { DLQPolicy } from '../../src/policy/dlq-policy.ts'

const [path = '', ...excludeErrors] = process.argv.slice(2)
const requests = sqliteMailbox({ path, name: 'requests' })
const dlq = sqliteMailbox({ path, name: 'requests-dlq' })
await requests.open()
await dlq.open()
await new MainLoop({
  requests,
  visibilitySeconds: 0.2,
  dlq: { to: dlq, policy: new DLQPolicy({ maxDeliveryCount: 3, excludeErrors }) },
  process: () => process.kill(process.pid, 'SIGKILL'),
}).run()
