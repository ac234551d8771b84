import {
  CreateQueueCommand,
  GetQueueAttributesCommand,
  ReceiveMessageCommand,
  SendMessageCommand,
  SQSClient,
  type Message,
} from '@aws-sdk/client-sqs'
import { startFauxqs, type FauxqsServer } from 'fauxqs'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { sqsTap } from '../../src/taps/sqs.ts'
import type { ForeignLetter, Keep, Tap } from '../../src/taps/tap.ts'
import { freshName } from '../servers/servers.ts'
import { inbox } from './inbox.ts'

const credentials = { accessKeyId: 'test', secretAccessKey: 'test' }

describe('sqsTap', () => {
  let server: FauxqsServer
  let client: SQSClient
  let name: string
  let source: string
  let dead: string
  const taps: Tap[] = []

  beforeAll(async () => {
    server = await startFauxqs({ port: 0, logger: false })
    const endpoint = `http://127.0.0.1:${server.port}`
    client = new SQSClient({ endpoint, region: 'us-east-1', credentials })
  })

  afterAll(async () => {
    client.destroy()
    await server.stop()
  })

  const createQueue = async (
    QueueName: string,
    Attributes: Record<string, string> = {},
  ): Promise<string> => {
    const { QueueUrl } = await client.send(new CreateQueueCommand({ QueueName, Attributes }))
    return QueueUrl!
  }

  beforeEach(async () => {
    name = freshName()
    dead = await createQueue(`${name}-dead`)
    const AttributeNames = ['QueueArn' as const]
    const { Attributes } = await client.send(
      new GetQueueAttributesCommand({ QueueUrl: dead, AttributeNames }),
    )
    const deadLetterTargetArn = Attributes!.QueueArn
    source = await createQueue(name, {
      RedrivePolicy: JSON.stringify({ deadLetterTargetArn, maxReceiveCount: 2 }),
    })
  })

  afterEach(async () => {
    await Promise.all(taps.splice(0).map((tap) => tap.stop()))
  })

  const started = async (keep: Keep): Promise<Tap> => {
    const tap = sqsTap({
      url: `sqs://127.0.0.1:${server.port}/${name}-dead?region=us-east-1`,
      connection: { credentials },
      sourceQueue: name,
      keep,
    })
    taps.push(tap)
    await tap.start()
    return tap
  }

  const received = async (QueueUrl: string): Promise<Message[]> => {
    const { Messages = [] } = await client.send(
      new ReceiveMessageCommand({
        QueueUrl,
        VisibilityTimeout: 0,
        MessageAttributeNames: ['All'],
        MaxNumberOfMessages: 10,
      }),
    )
    return Messages
  }

  /** Sends one that is received twice and never deleted: the third receive finds it gone. */
  const dies = async (MessageBody: string): Promise<string> => {
    const MessageAttributes = {
      trace: { DataType: 'String', StringValue: 'abc' },
      raw: { DataType: 'Binary', BinaryValue: Uint8Array.of(0, 255) },
    }
    const { MessageId } = await client.send(
      new SendMessageCommand({ QueueUrl: source, MessageBody, MessageAttributes }),
    )
    for (const expected of [1, 1, 0]) expect(await received(source)).toHaveLength(expected)
    return MessageId!
  }

  it('keeps what SQS put into the dead letter queue, and deletes it there', async () => {
    const kept = inbox<ForeignLetter>()
    const tap = await started(async (foreign) => kept.put(foreign))
    const messageId = await dies('{"poison":true}')
    const foreign = await kept.next()
    expect(Buffer.from(foreign.body).toString()).toBe('{"poison":true}')
    expect(foreign).toMatchObject({
      source: `${name}-dead`,
      headers: { trace: 'abc' },
      messageId,
      origin: { queue: name },
    })
    expect(foreign.deliveries).toBeGreaterThanOrEqual(2)
    await tap.stop()
    const { messages } = server.inspectQueue(`${name}-dead`)!
    expect([...messages.ready, ...messages.inflight]).toEqual([])
  })

  it('brings a letter again until it is kept', async () => {
    const seen = inbox<string>()
    let refusals = 1
    await started(async (foreign) => {
      seen.put(foreign.messageId)
      if (refusals-- > 0) throw new Error('the store is away')
    })
    const messageId = await dies('poison')
    expect([await seen.next(), await seen.next()]).toEqual([messageId, messageId])
  })

  it('leaves a letter in its queue while nobody can keep it', async () => {
    const seen = inbox<string>()
    const tap = await started(async (foreign) => {
      seen.put(foreign.messageId)
      throw new Error('the store is away')
    })
    const messageId = await dies('poison')
    await seen.next()
    await tap.stop()
    const { messages } = server.inspectQueue(`${name}-dead`)!
    const left = [...messages.ready, ...messages.inflight.map(({ message }) => message)]
    expect(left.map((message) => message.messageId)).toEqual([messageId])
  })

  it('sends a letter back to the queue that it died in, with its attributes', async () => {
    const kept = inbox<ForeignLetter>()
    const tap = await started(async (foreign) => kept.put(foreign))
    await dies('poison')
    const foreign = await kept.next()
    await tap.sendBack({ ...foreign, body: Buffer.from('mended') }, 1)
    const [message] = await received(source)
    expect(message).toMatchObject({
      Body: 'mended',
      MessageAttributes: {
        trace: { DataType: 'String', StringValue: 'abc' },
        raw: { DataType: 'Binary' },
      },
    })
    expect(Buffer.from(message!.MessageAttributes!['raw']!.BinaryValue!)).toEqual(Buffer.of(0, 255))
  })

  it('does not guess where a letter came from', async () => {
    const kept = inbox<ForeignLetter>()
    const tap = await started(async (foreign) => kept.put(foreign))
    await dies('poison')
    const foreign = await kept.next()
    await expect(tap.sendBack({ ...foreign, origin: {} }, 1)).rejects.toMatchObject({
      code: 'INVALID_INPUT',
    })
  })

  it('refuses to start when there is no such queue', async () => {
    const tap = sqsTap({
      url: `sqs://127.0.0.1:${server.port}/nowhere?region=us-east-1`,
      connection: { credentials },
      keep: async () => {},
    })
    await expect(tap.start()).rejects.toMatchObject({ code: 'MAILBOX_UNAVAILABLE' })
    await tap.stop()
  })
})
