import {
  CreateQueueCommand,
  DeleteQueueCommand,
  GetQueueAttributesCommand,
  ReceiveMessageCommand,
  SendMessageCommand,
  SQSClient,
  type Message,
} from '@aws-sdk/client-sqs'
import { startFauxqs, type FauxqsServer } from 'fauxqs'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { sqsTap } from '../../src/taps/sqs.ts'
import { returnToSource } from '../../src/taps/return-to-source.ts'
import type { ForeignLetter, Keep, Tap } from '../../src/taps/tap.ts'
import { freshName } from '../servers/servers.ts'
import { inbox } from './inbox.ts'
import { openLetters } from './letters.ts'

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

  /**
   * Sends a message that is received twice and never deleted: the third receive does not find it.
   */
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

  it('stores a message of the dead letter queue, then deletes it there', async () => {
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

  it('reads past letters that cannot be stored', async () => {
    const kept = inbox<string>()
    const sendAll = async (bodies: string[]): Promise<void> => {
      for (const MessageBody of bodies)
        await client.send(new SendMessageCommand({ QueueUrl: dead, MessageBody }))
    }
    await sendAll([...Array.from({ length: 30 }, () => 'bad'), 'good'])
    await started(async ({ body }) => {
      const text = Buffer.from(body).toString()
      if (text === 'bad') throw new Error('too large')
      kept.put(text)
    })
    expect(await kept.next()).toBe('good')
    await sendAll(['another'])
    expect(await kept.next()).toBe('another')
  })

  it('reads a letter again until it is stored', async () => {
    const seen = inbox<string>()
    let refusals = 1
    await started(async (foreign) => {
      seen.put(foreign.messageId)
      if (refusals-- > 0) throw new Error('the store is unreachable')
    })
    const messageId = await dies('poison')
    expect([await seen.next(), await seen.next()]).toEqual([messageId, messageId])
  })

  it('leaves a letter in its queue while it cannot be stored', async () => {
    const seen = inbox<string>()
    const tap = await started(async (foreign) => {
      seen.put(foreign.messageId)
      throw new Error('the store is unreachable')
    })
    const messageId = await dies('poison')
    await seen.next()
    await tap.stop()
    const { messages } = server.inspectQueue(`${name}-dead`)!
    const left = [...messages.ready, ...messages.inflight.map(({ message }) => message)]
    expect(left.map((message) => message.messageId)).toEqual([messageId])
  })

  it('returns a letter with its attributes to the queue in which it died', async () => {
    const kept = inbox<ForeignLetter>()
    const tap = await started(async (foreign) => kept.put(foreign))
    await dies('poison')
    const foreign = await kept.next()
    await tap.returnToSource({ ...foreign, body: Buffer.from('mended') }, 1)
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

  it('stores a letter once, and returns it to its source over all its lives', async () => {
    await using letters = await openLetters()
    const { dlq, keep, keepAndCrash, next } = letters
    const crashing = await started(keepAndCrash)
    const messageId = await dies('poison')
    const { letter } = await next('captured')
    expect(letter).toMatchObject({
      queue: `${name}-dead`,
      state: 'parked',
      failure: { message: 'given up after too many deliveries (maxReceiveCount)' },
      category: 'unknown',
      headers: { trace: 'abc' },
      source: { messageId },
      metadata: { origin: { queue: name } },
    })
    await crashing.stop()
    const tap = await started(keep)
    expect(await next('duplicate')).toMatchObject({ letter: { id: letter.id } })
    dlq.handle(letter.queue, returnToSource(tap))
    dlq.start()
    await dlq.edit(letter.id, {
      headers: { trace: 'def' },
      by: 'somebody',
      reason: 'another trace',
    })
    await dlq.retry(letter.id)
    expect((await next('resolved')).letter.id).toBe(letter.id)
    const [back] = await received(source)
    expect(back).toMatchObject({
      Body: 'poison',
      MessageAttributes: {
        trace: { DataType: 'String', StringValue: 'def' },
        raw: { DataType: 'Binary' },
        'redrive-replays': { StringValue: '1' },
      },
    })
    for (const expected of [1, 0]) expect(await received(source)).toHaveLength(expected)
    const again = (await next('captured')).letter
    expect(again.metadata).toMatchObject({ replays: 1, originalId: messageId })
  })

  it('keeps a letter whose queue is gone, and returns it once the queue exists again', async () => {
    await using letters = await openLetters()
    const { dlq, keep, next } = letters
    const tap = await started(keep)
    await dies('poison')
    const { letter } = await next('captured')
    await next('parked')
    await client.send(new DeleteQueueCommand({ QueueUrl: source }))
    dlq.handle(letter.queue, returnToSource(tap))
    dlq.start()
    await dlq.retry(letter.id)
    const { failure } = (await next('parked')).letter
    expect(failure.code).toBe('MAILBOX_UNAVAILABLE')
    expect(failure.message).toContain(`could not return the letter to the queue ${name}`)
    source = await createQueue(name)
    await dlq.retry(letter.id)
    await next('resolved')
    expect(await received(source)).toMatchObject([{ Body: 'poison' }])
  })

  it('omits the lineage attributes if SQS allows no more attributes', async () => {
    const tap = await started(async () => {})
    const headers = Object.fromEntries(Array.from({ length: 9 }, (_, i) => [`h${i}`, 'x']))
    const letter = { body: Buffer.from('full'), contentType: 'text/plain', messageId: 'm', headers }
    await tap.returnToSource({ ...letter, origin: { queue: name } }, 1)
    const [message] = await received(source)
    expect(Object.keys(message!.MessageAttributes!).toSorted()).toEqual([
      ...Object.keys(headers),
      'redrive-replays',
    ])
  })

  it('rejects returning a letter whose source queue is unknown', async () => {
    const kept = inbox<ForeignLetter>()
    const tap = await started(async (foreign) => kept.put(foreign))
    await dies('poison')
    const foreign = await kept.next()
    await expect(tap.returnToSource({ ...foreign, origin: {} }, 1)).rejects.toMatchObject({
      code: 'INVALID_INPUT',
    })
  })

  it('rejects start if the queue does not exist', async () => {
    const tap = sqsTap({
      url: `sqs://127.0.0.1:${server.port}/nowhere?region=us-east-1`,
      connection: { credentials },
      keep: async () => {},
    })
    await expect(tap.start()).rejects.toMatchObject({ code: 'MAILBOX_UNAVAILABLE' })
    await tap.stop()
  })
})
