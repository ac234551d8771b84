import { startFauxqs, type FauxqsServer } from 'fauxqs'
import { afterAll, beforeAll, describe } from 'vitest'
import { queueNameOf } from '../../../src/backends/sqs/address.ts'
import { runMailboxContract } from '../../contract/run-mailbox-contract.ts'
import { freshName } from '../../servers/servers.ts'
import { openMailboxBench } from '../bench.ts'
import { onFauxqs } from './on-fauxqs.ts'
import { clause } from '../../seeds/rows.ts'

let server: FauxqsServer

beforeAll(async () => {
  server = await startFauxqs({ port: 0, logger: false })
})

afterAll(() => server.stop())

describe(clause('M2', 'mailboxes on SQS pass one contract suite'), () => {
  runMailboxContract(
    'sqsMailbox on a standard queue',
    () =>
      openMailboxBench({
        make: (name, resolver, more) => onFauxqs(server, { name, resolver, ...more }),
        prefix: `${freshName()}-`,
      }),
    { realTime: true },
  )

  runMailboxContract(
    'sqsMailbox on a FIFO queue',
    () =>
      openMailboxBench({
        make: (name, resolver, more) => {
          const url = `sqs://127.0.0.1:${server.port}/${queueNameOf(name)}.fifo?region=us-east-1`
          return onFauxqs(server, { name, resolver, url, ...more })
        },
        prefix: `${freshName()}-`,
      }),
    { realTime: true },
  )
})
