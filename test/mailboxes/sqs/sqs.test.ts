import {
  ReceiveMessageCommand,
  SendMessageCommand,
  SQSClient,
  type SQSClientConfig,
} from '@aws-sdk/client-sqs'
import { startFauxqs, type FauxqsServer } from 'fauxqs'
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import type { Mailbox } from '../../../src/mailbox.ts'
import { sqsMailbox, type SqsMailboxOptions } from '../../../src/mailboxes/sqs/sqs.ts'
import { fakeClock } from '../../../src/testing/index.ts'
import { freshName } from '../../servers/servers.ts'
import { credentials, onFauxqs } from './on-fauxqs.ts'

describe('sqsMailbox', () => {
  let server: FauxqsServer
  let client: SQSClient
  const mailboxes: Mailbox[] = []

  beforeAll(async () => {
    server = await startFauxqs({ port: 0, logger: false })
    const endpoint = `http://127.0.0.1:${server.port}`
    client = new SQSClient({ endpoint, region: 'us-east-1', credentials })
  })

  afterAll(async () => {
    client.destroy()
    await server.stop()
  })

  afterEach(async () => {
    await Promise.all(mailboxes.splice(0).map((mailbox) => mailbox.close()))
  })

  const opened = async (options: Partial<SqsMailboxOptions> = {}): Promise<Mailbox> => {
    const mailbox = onFauxqs(server, { name: freshName(), ...options })
    mailboxes.push(mailbox)
    await mailbox.open()
    return mailbox
  }

  const urlOf = ({ name }: Mailbox): string => server.inspectQueue(name)!.url

  it('rejects its own expired receipt, whatever the service would do with it', async () => {
    const clock = fakeClock()
    const mailbox = await opened({ clock })
    await mailbox.send('held')
    const [message] = await mailbox.receive({ visibilitySeconds: 600 })
    // The receipt has expired for the holder, but not for the service.
    await clock.advance(600_000)
    await expect(message!.acknowledge()).rejects.toMatchObject({ code: 'RECEIPT_EXPIRED' })
    expect(server.inspectQueue(mailbox.name)!.messages.inflight).toHaveLength(1)
  })

  it('requests no more than twelve hours since a message was received', async () => {
    const clock = fakeClock()
    const mailbox = await opened({ clock })
    await mailbox.send('held')
    const [message] = await mailbox.receive({ visibilitySeconds: 7200 })
    await clock.advance(3_600_000)
    const beforeMs = Date.now()
    await message!.extend(43_200)
    const [held] = server.inspectQueue(mailbox.name)!.messages.inflight
    expect((held!.visibilityDeadline - beforeMs) / 1000).toBeLessThan(39_700)
  })

  it('delivers messages of other senders', async () => {
    const mailbox = await opened()
    const { MessageId } = await client.send(
      new SendMessageCommand({
        QueueUrl: urlOf(mailbox),
        MessageBody: '{"a":1}',
        MessageAttributes: {
          'Content-Type': { DataType: 'String', StringValue: 'application/json' },
          tag: { DataType: 'String', StringValue: 'b' },
        },
      }),
    )
    await client.send(new SendMessageCommand({ QueueUrl: urlOf(mailbox), MessageBody: 'text' }))
    const [named, bare] = await mailbox.receive({ max: 10 })
    expect(named).toMatchObject({ id: MessageId, headers: { tag: 'b' } })
    expect(named!.value()).toEqual({ a: 1 })
    expect(bare!.value()).toBe('text')
  })

  it('sends text as text, and other bodies in base64', async () => {
    const mailbox = await opened()
    await mailbox.send({ readable: true })
    await mailbox.send(Uint8Array.of(0, 1))
    const { Messages = [] } = await client.send(
      new ReceiveMessageCommand({ QueueUrl: urlOf(mailbox), MaxNumberOfMessages: 10 }),
    )
    expect(Messages.map(({ Body }) => Body)).toEqual(['{"readable":true}', 'base64,AAE='])
  })

  it('records the first delivery, but not the failures', async () => {
    const mailbox = await opened()
    await mailbox.send('dated')
    const [first] = await mailbox.receive()
    await first!.nack({ failed: false })
    const [second] = await mailbox.receive()
    expect(second).toMatchObject({
      firstReceivedAt: first!.firstReceivedAt,
      enqueuedAt: first!.enqueuedAt,
      deliveries: 2,
      failures: 1,
    })
  })

  it('sends many messages at once, even if together they are too large for one call', async () => {
    const mailbox = await opened()
    const body = new Uint8Array(200_000)
    await Promise.all(Array.from({ length: 10 }, () => mailbox.send(body)))
    expect(await mailbox.approximateCount()).toBe(10)
  })

  it('rejects a delay over 900 seconds and too many headers, like SQS', async () => {
    const mailbox = await opened()
    const refused = expect.objectContaining({ code: 'INVALID_INPUT' }) as Error
    await expect(mailbox.send('x', { delaySeconds: 901 })).rejects.toThrow(refused)
    const headers = Object.fromEntries(
      Array.from({ length: 4 }, (_, n) => [`h${n}`, 'x'.repeat(8000)]),
    )
    const body = new Uint8Array(mailbox.powers.maxBodyBytes)
    await expect(mailbox.send(body, { headers })).rejects.toMatchObject({ code: 'TOO_LARGE' })
    expect(await mailbox.approximateCount()).toBe(0)
  })

  it('serves the next waiter with the poll of one that gave up', async () => {
    const mailbox = await opened()
    const stop = new AbortController()
    const receiving = mailbox.receive({ waitSeconds: 20, signal: stop.signal })
    stop.abort()
    expect(await receiving).toEqual([])
    const next = mailbox.receive({ waitSeconds: 20 })
    await mailbox.send('late')
    const [message] = await next
    expect(message).toMatchObject({ deliveries: 1 })
  })

  it('preserves the order within a group of a FIFO queue', async () => {
    const name = `${freshName()}.fifo`
    const mailbox = await opened({ name })
    const headers = { 'redrive-group': 'one' }
    for (const n of [1, 2, 3]) await mailbox.send(n, { headers })
    for (const n of [1, 2, 3]) {
      const [message] = await mailbox.receive()
      expect(message?.value()).toBe(n)
      expect(await mailbox.receive({ max: 10 }), 'none before it is settled').toEqual([])
      await message!.acknowledge()
    }
    await expect(mailbox.send(4, { delaySeconds: 1 })).rejects.toMatchObject({
      code: 'INVALID_INPUT',
    })
  })

  it('gives all messages of one response of a FIFO queue to one waiter, since they may be of one group', async () => {
    const inputs: unknown[] = []
    const mailbox = await opened({
      name: `${freshName()}.fifo`,
      connection: { credentials, logger: recordInputs('ReceiveMessageCommand', inputs) },
    })
    const waiting = [1, 2, 3].map(() => mailbox.receive({ waitSeconds: 20 }))
    for (const n of [1, 2, 3]) await mailbox.send(n)
    await Promise.all(waiting)
    expect(inputs.length).toBeGreaterThan(0)
    for (const one of inputs) expect(one).toMatchObject({ MaxNumberOfMessages: 1 })
  })

  it('shares messages among many waiters', async () => {
    const mailbox = await opened()
    const numbers = Array.from({ length: 40 }, (_, n) => n)
    const receiving = numbers.map(() => mailbox.receive({ waitSeconds: 20 }))
    await Promise.all(numbers.map((n) => mailbox.send(n)))
    const found = (await Promise.all(receiving)).flat()
    expect(found.map((message) => Number(message.value())).toSorted((a, b) => a - b)).toEqual(
      numbers,
    )
    expect(found.every(({ deliveries }) => deliveries === 1)).toBe(true)
  })

  it('stores messages as long as SQS can', async () => {
    const mailbox = await opened()
    const { checks } = await mailbox.health()
    expect(checks).toMatchObject({ retentionSeconds: '1209600', retention: '1209600 s' })
    expect(mailbox.powers.maxRetentionSeconds).toBe(1_209_600)
  })

  it('reports a foreign queue that deletes messages earlier than required', async () => {
    const name = freshName()
    server.createQueue(name, { attributes: { MessageRetentionPeriod: '345600' } })
    const { ok, problems } = await (await opened({ name })).health()
    expect(ok).toBe(false)
    expect(problems).toEqual([expect.stringContaining('deletes messages after 345600 seconds')])
    expect((await (await opened({ name, retentionSeconds: 86_400 })).health()).ok).toBe(true)
  })

  it('reads the retention from its URL, and removes it for SQS', async () => {
    const name = freshName()
    server.createQueue(name)
    const queue = `http://127.0.0.1:${server.port}/000000000000/${name}`
    const connection = {
      credentials,
      region: 'us-east-1',
      endpoint: queue.slice(0, -name.length - 14),
    }
    const mailbox = await opened({ name, url: `${queue}?retentionSeconds=60`, connection })
    expect((await mailbox.health()).checks).toMatchObject({ retention: '60 s', queue: name })
  })
})

describe('an SQS with outages', () => {
  it('is reported by every operation, and works again afterwards', async () => {
    const first = await startFauxqs({ port: 0, logger: false })
    const mailbox = onFauxqs(first, { name: 'orders' })
    await mailbox.open()
    await mailbox.send('held')
    const [held] = await mailbox.receive()
    const { port } = first
    await first.stop()
    const away = { code: 'MAILBOX_UNAVAILABLE' }
    await expect(mailbox.send('lost')).rejects.toMatchObject(away)
    await expect(mailbox.receive()).rejects.toMatchObject(away)
    await expect(mailbox.receive({ waitSeconds: 60 })).rejects.toMatchObject(away)
    await expect(held!.acknowledge()).rejects.toMatchObject(away)
    await expect(mailbox.approximateCount()).rejects.toMatchObject(away)
    expect((await mailbox.health()).ok).toBe(false)
    const second = await startFauxqs({ port, logger: false })
    second.createQueue('orders')
    await mailbox.send('there')
    const [message] = await mailbox.receive({ waitSeconds: 5 })
    expect(message?.value()).toBe('there')
    await mailbox.close()
    await second.stop()
  })

  it('rejects open at once if the server is unreachable', async () => {
    const mailbox = sqsMailbox({
      name: 'orders',
      url: 'sqs://127.0.0.1:1?region=us-east-1',
      connection: { credentials },
    })
    await expect(mailbox.open()).rejects.toMatchObject({ code: 'MAILBOX_UNAVAILABLE' })
    await mailbox.close()
  })
})

/** A logger for the client that records the input of one of its commands. */
function recordInputs(command: string, inputs: unknown[]): NonNullable<SQSClientConfig['logger']> {
  const info = (entry: { commandName?: string; input?: unknown }): void => {
    if (entry.commandName === command) inputs.push(entry.input)
  }
  const ignore = (): void => {}
  return { info, debug: ignore, warn: ignore, error: ignore }
}
