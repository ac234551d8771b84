import { ListQueuesCommand, SQSClient } from '@aws-sdk/client-sqs'
import { startFauxqs, type FauxqsServer } from 'fauxqs'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import type { Mailbox } from '../../../src/mailbox.ts'
import { sqsMailbox } from '../../../src/mailboxes/sqs/sqs.ts'
import { freshName } from '../../servers/servers.ts'
import { credentials } from './on-fauxqs.ts'

describe('sqsMailbox with a client of the application', () => {
  let server: FauxqsServer
  let client: SQSClient
  let mailbox: Mailbox

  beforeAll(async () => {
    server = await startFauxqs({ port: 0, logger: false })
    const endpoint = `http://127.0.0.1:${server.port}`
    client = new SQSClient({ endpoint, region: 'us-east-1', credentials })
  })
  afterAll(async () => {
    client.destroy()
    await server.stop()
  })
  beforeEach(async () => {
    mailbox = sqsMailbox({ client, name: freshName() })
    await mailbox.open()
  })
  afterEach(() => mailbox.close())

  it('delivers messages from the queue that is named like the mailbox', async () => {
    await mailbox.send({ n: 1 })
    const [message] = await mailbox.receive({ waitSeconds: 5 })
    expect(message!.value()).toEqual({ n: 1 })
    await message!.acknowledge()
    const { QueueUrls = [] } = await client.send(new ListQueuesCommand())
    expect(QueueUrls.some((queue) => queue.endsWith(`/${mailbox.name}`))).toBe(true)
  })

  it('leaves the client usable when it closes', async () => {
    await mailbox.close()
    expect(await client.send(new ListQueuesCommand())).toHaveProperty('$metadata')
  })

  it('rejects another object, url and client together, and neither of them', () => {
    const invalid = expect.objectContaining({ code: 'INVALID_CONFIG' })
    const other = { send: () => {}, config: { serviceId: 'S3' } } as unknown as SQSClient
    expect(() => sqsMailbox({ client: other, name: 'm' })).toThrow(invalid)
    expect(() => sqsMailbox({ url: 'sqs:///m', client, name: 'm' })).toThrow(invalid)
    expect(() => sqsMailbox({ name: 'm' })).toThrow(invalid)
  })
})
