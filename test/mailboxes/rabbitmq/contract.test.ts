import { afterAll, describe } from 'vitest'
import { rabbitmqMailbox } from '../../../src/mailboxes/rabbitmq/rabbitmq.ts'
import { runMailboxContract } from '../../contract/run-mailbox-contract.ts'
import { backend, freshName } from '../../servers/servers.ts'
import { openMailboxBench } from '../bench.ts'
import { removeMailboxes } from './place.ts'
import { clause } from '../../seeds/rows.ts'

const { url, missing } = backend('rabbitmq')

describe.skipIf(missing)(clause('M2', 'mailboxes on RabbitMQ pass one contract suite'), () => {
  const opened: string[] = []
  afterAll(() => removeMailboxes(url, opened))
  const openBench = (): ReturnType<typeof openMailboxBench> =>
    openMailboxBench({
      prefix: `${freshName()} `,
      make: (name, resolver, more) => rabbitmqMailbox({ url, name, resolver, ...more }),
      leave: async (names) => {
        opened.push(...names)
      },
    })
  runMailboxContract('rabbitmqMailbox', openBench, { realTime: true })
})
