import {
  CreateQueueCommand,
  DeleteMessageBatchCommand,
  ReceiveMessageCommand,
  SendMessageBatchCommand,
  SQSClient,
} from '@aws-sdk/client-sqs'
import { once } from 'node:events'
import { Worker } from 'node:worker_threads'
import { sqsMailbox } from '../../../src/mailboxes/sqs/sqs.ts'
import { body, runWorkers, type Pair, type Raw } from './pair.ts'

/** The emulator ignores credentials. */
const credentials = { accessKeyId: 'bench', secretAccessKey: 'bench' }
const region = 'us-east-1'
/** Maximum batch size of SQS. */
const maxBatch = 10

/** Uses an emulator: this measures the driver, not SQS. */
export async function open(): Promise<Pair> {
  const thread = new Worker(new URL('./fauxqs-thread.ts', import.meta.url))
  const [port] = (await once(thread, 'message')) as [number]
  const mailbox = sqsMailbox({
    url: `sqs://127.0.0.1:${port}?region=${region}`,
    name: 'bench',
    connection: { credentials },
  })
  const client = new SQSClient({ endpoint: `http://127.0.0.1:${port}`, region, credentials })
  const close = async (): Promise<void> => {
    await mailbox.close()
    client.destroy()
    await thread.terminate()
  }
  try {
    await mailbox.open()
    return { mailbox, ...(await rawOn(client)), close }
  } catch (error) {
    await close()
    throw error
  }
}

/** Sends, receives and deletes with one call per message, or in concurrent batches of up to ten. */
async function rawOn(client: SQSClient): Promise<{ raw: Raw; batched: Raw }> {
  const { QueueUrl } = await client.send(new CreateQueueCommand({ QueueName: 'raw' }))
  const trip = async (count: number): Promise<void> => {
    const bodies = Array.from({ length: count }, (_, n) => ({
      Id: String(n),
      MessageBody: body().toString('base64'),
    }))
    await client.send(new SendMessageBatchCommand({ QueueUrl, Entries: bodies }))
    for (let left = count; left > 0;) {
      const request = { QueueUrl, MaxNumberOfMessages: left, WaitTimeSeconds: 20 }
      const { Messages = [] } = await client.send(new ReceiveMessageCommand(request))
      const Entries = Messages.map(({ ReceiptHandle }, n) => ({ Id: String(n), ReceiptHandle }))
      await client.send(new DeleteMessageBatchCommand({ QueueUrl, Entries }))
      left -= Messages.length
    }
  }
  return {
    raw: (messages, inFlight) => runWorkers(messages, inFlight, () => trip(1)),
    batched: (messages, inFlight) =>
      runWorkers(Math.ceil(messages / maxBatch), Math.ceil(inFlight / maxBatch), () =>
        trip(maxBatch),
      ),
  }
}
