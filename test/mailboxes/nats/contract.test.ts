import { describe } from 'vitest'
import { natsMailbox } from '../../../src/mailboxes/nats/nats.ts'
import { runMailboxContract } from '../../contract/run-mailbox-contract.ts'
import { natsPlace } from '../../servers/broker-places.ts'
import { backend } from '../../servers/servers.ts'
import { openMailboxBench } from '../bench.ts'

const { url, missing } = backend('nats')

describe.skipIf(missing)('NATS', () => {
  runMailboxContract('natsMailbox', () => {
    const place = natsPlace(url)
    return openMailboxBench({
      make: (name, resolver) => natsMailbox({ name, url, resolver, prefix: place.name }),
      leave: () => place.clear(),
    })
  })
})
