import { afterAll, describe } from 'vitest'
import { natsMailbox } from '../../../src/mailboxes/nats/nats.ts'
import { runMailboxContract } from '../../contract/run-mailbox-contract.ts'
import { natsPlace } from '../../servers/broker-places.ts'
import { backend } from '../../servers/servers.ts'
import { openMailboxBench } from '../bench.ts'
import { clause } from '../../seeds/rows.ts'

const { url, missing } = backend('nats')

describe.skipIf(missing)(
  clause('M2', 'mailboxes on NATS JetStream pass one contract suite'),
  () => {
    const place = natsPlace(url)
    afterAll(() => place.clear())
    let count = 0
    const openBench = (): ReturnType<typeof openMailboxBench> => {
      const prefix = `${place.name}_${(count += 1)}`
      return openMailboxBench({
        make: (name, resolver, more) => natsMailbox({ name, url, resolver, prefix, ...more }),
      })
    }
    runMailboxContract('natsMailbox', openBench, { realTime: true })
  },
)
