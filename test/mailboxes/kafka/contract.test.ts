import { afterAll, describe } from 'vitest'
import { kafkaMailbox } from '../../../src/mailboxes/kafka/kafka.ts'
import { runMailboxContract } from '../../contract/run-mailbox-contract.ts'
import { kafkaPlace } from '../../servers/broker-places.ts'
import { backend } from '../../servers/servers.ts'
import { openMailboxBench } from '../bench.ts'
import { clause } from '../../seeds/rows.ts'

const { url, missing } = backend('kafka')

describe.skipIf(missing)(clause('M2', 'mailboxes on Kafka pass one contract suite'), () => {
  const place = kafkaPlace(url)
  afterAll(() => place.clear())
  let count = 0
  const openBench = (): ReturnType<typeof openMailboxBench> => {
    const prefix = `${place.name}.${(count += 1)}.`
    return openMailboxBench({
      make: (name, resolver, more) => kafkaMailbox({ name, url, resolver, prefix, ...more }),
    })
  }
  runMailboxContract('kafkaMailbox', openBench, { realTime: true })
})
