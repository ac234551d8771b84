// A worker that a message kills. The test restarts it until the message is dead-lettered.
import { appendFileSync, readFileSync } from 'node:fs'
import { MainLoop } from '../../src/loops/main-loop.ts'
import { natsMailbox } from '../../src/mailboxes/nats/nats.ts'
import { sqliteMailbox } from '../../src/mailboxes/sqlite/sqlite.ts'
import { immediate } from '../../src/policy/backoff.ts'
import { DLQPolicy } from '../../src/policy/dlq-policy.ts'

/** The message is rate limited this often, and then kills every worker. */
const [url = '', prefix = '', runs = '', limited = '0'] = process.argv.slice(2)

class RateLimitError extends Error {}

const mailbox = (name: string): ReturnType<typeof natsMailbox> =>
  url.startsWith('nats') ? natsMailbox({ url, prefix, name }) : sqliteMailbox({ path: url, name })
const requests = mailbox('requests')
const dlq = mailbox('requests-dlq')
await requests.open()
await dlq.open()

const loop = new MainLoop({
  requests,
  visibilitySeconds: 1,
  backoff: immediate(),
  dlq: {
    to: dlq,
    policy: new DLQPolicy({ maxDeliveryCount: 3, excludeErrors: [RateLimitError] }),
  },
  process: () => {
    const seen = readFileSync(runs, 'utf8').split('\n').length - 1
    appendFileSync(runs, seen < Number(limited) ? 'limited\n' : 'ended\n')
    if (seen < Number(limited)) throw new RateLimitError('slow down')
    process.kill(process.pid, 'SIGKILL')
  },
  onEvent: ({ type }) => {
    if (type === 'dead-lettered') void loop.shutdown()
  },
})
await loop.run()
process.exit(0)
