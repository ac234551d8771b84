import { join } from 'node:path'
import { startFauxqs } from 'fauxqs'
import { describe, expect, it, vi } from 'vitest'
import { DLQConsumer } from '../../src/loops/dlq-consumer.ts'
import { MainLoop } from '../../src/loops/main-loop.ts'
import { openMailbox, resolverOf } from '../../src/connect/mailbox.ts'
import { fakeClock } from '../../src/testing/index.ts'
import { aFolder } from '../folders.ts'

const folder = aFolder('mailbox')

const startMs = fakeClock().now()

describe('openMailbox', () => {
  it('opens a mailbox by its URL and the name after the #', async () => {
    const mailbox = await openMailbox('memory:#requests')
    expect(mailbox.name).toBe('requests')
    await mailbox.send({ a: 1 })
    expect((await mailbox.receive())[0]?.value()).toEqual({ a: 1 })
    await mailbox.close()
  })

  it('decodes an escaped name, and prefers the name option', async () => {
    const clock = fakeClock()
    expect((await openMailbox('memory:#my%20letters', { clock })).name).toBe('my letters')
    expect((await openMailbox('memory:#100%', { clock })).name).toBe('100%')
    expect((await openMailbox('memory:#a', { name: 'b', clock })).name).toBe('b')
  })

  it.each([
    ['memory:', /needs a name.*memory:…#requests/],
    ['sqlite://mail.db#requests', /write sqlite:mail\.db for a file in this folder/],
    ['sqlite:#requests', /needs a file, such as sqlite:mail\.db#requests/],
    ['rediss', /must begin with a scheme/],
    ['reddis://localhost#a', /unknown mailbox scheme reddis: did you mean redis:\?/],
    ['ftp://localhost#a', /unknown mailbox scheme ftp:.*known: memory:, sqlite:, postgres:/],
    // As from an environment variable that is not set.
    [undefined, /must begin with a scheme/],
  ])('rejects %s and shows a valid URL', async (url, expected) => {
    await expect(openMailbox(url as string)).rejects.toMatchObject({
      code: 'INVALID_INPUT',
      message: expect.stringMatching(expected) as string,
    })
  })

  it('does not show a password in an error', async () => {
    const failed = await openMailbox('nowhere://me:hunter2@localhost#a').catch((error) => error)
    expect(String(failed)).not.toContain('hunter2')
  })

  it('replies to mailboxes of the same broker, and closes them with itself', async () => {
    const url = `sqlite:${join(folder, 'mail.db')}`
    const requests = await openMailbox(`${url}#requests`)
    await requests.send('ping', { replyTo: 'replies' })
    const [message] = await requests.receive()
    await message!.reply('pong')
    await requests.close()
    const replies = await openMailbox(`${url}#replies`)
    expect((await replies.receive())[0]?.value()).toBe('pong')
    await replies.close()
  })

  it('replies to the queue of the reply address, although the URL names another queue', async () => {
    const server = await startFauxqs({ port: 0, logger: false })
    for (const name of ['AWS_ACCESS_KEY_ID', 'AWS_SECRET_ACCESS_KEY']) vi.stubEnv(name, 'test')
    const requests = await openMailbox(
      `sqs://127.0.0.1:${server.port}/orders?region=us-east-1#requests`,
    )
    try {
      await requests.send('ping', { replyTo: 'replies' })
      const [message] = await requests.receive()
      await message!.reply('pong')
      expect(server.inspectQueue('replies')!.messages.ready).toHaveLength(1)
      expect(server.inspectQueue('orders')!.messages.ready).toEqual([])
    } finally {
      await requests.close()
      await server.stop()
      vi.unstubAllEnvs()
    }
  })

  it('lets mailboxes in memory reply to each other by name', async () => {
    const clock = fakeClock()
    const requests = await openMailbox('memory:#requests', { clock })
    const replies = await openMailbox('memory:#replies', { clock })
    let runs = 0
    const loop = new MainLoop({ requests, clock, process: () => (runs += 1) })
    await requests.send('work', { replyTo: 'replies' })
    await loop.run({ maxIterations: 1 })
    expect((await replies.receive())[0]?.value()).toMatchObject({ output: 1 })
    expect(await requests.approximateCount()).toBe(0)
    expect(runs).toBe(1)
    await requests.close()
    await replies.close()
  })

  it('shares messages in memory by broker and name', async () => {
    const clock = fakeClock()
    const urls = ['memory:#a', 'MEMORY:#a', 'memory:one#a', 'memory:two#a']
    const opened = await Promise.all(urls.map((url) => openMailbox(url, { clock })))
    const [sender, same, one, two] = opened
    await sender!.send('to all of this name')
    await one!.send('to one')
    expect((await same!.receive())[0]?.value()).toBe('to all of this name')
    expect((await one!.receive())[0]?.value()).toBe('to one')
    expect(await two!.receive()).toEqual([])
    await Promise.all(opened.map((mailbox) => mailbox.close()))
    const again = await openMailbox('memory:#a', { clock })
    expect(await again.approximateCount()).toBe(0)
    await again.close()
  })

  it('keeps dead letters forever by default, also when their handler fails', async () => {
    const clock = fakeClock()
    const url = `sqlite:${join(folder, 'kept.db')}`
    const deadLetters = await openMailbox(`${url}#requests-dlq`, { clock })
    await deadLetters.send('dead', { id: 'dead' })
    const consumer = new DLQConsumer({
      mailbox: deadLetters,
      clock,
      waitSeconds: 0,
      maxAttempts: 1000,
      handler: () => {
        throw new Error('the handler fails')
      },
    })
    for (const hours of [0, 1, 40, 80, 96, 30 * 24]) {
      clock.set(startMs + hours * 3_600_000)
      await consumer.run({ maxIterations: 1 })
      expect(await deadLetters.approximateCount()).toBe(1)
    }
    clock.set(startMs + 31 * 86_400_000)
    expect(await deadLetters.receive()).toMatchObject([{ id: 'dead', failures: 6 }])
    await deadLetters.close()
  })

  it.each([
    ['an option', '', { retentionSeconds: 60 }],
    ['a parameter of the URL', '?retentionSeconds=60', {}],
    ['an option that overrides the URL', '?retentionSeconds=9000', { retentionSeconds: 60 }],
  ])('expires messages when a retention is set by %s', async (_, query, options) => {
    for (const broker of ['memory:retention', `sqlite:${join(folder, 'brief.db')}`]) {
      const clock = fakeClock()
      const mailbox = await openMailbox(`${broker}${query}#a`, { ...options, clock })
      const counts: number[] = []
      mailbox.on('expired', ({ count }) => counts.push(count))
      await mailbox.send('brief')
      clock.set(clock.now() + 59_000)
      const [message] = await mailbox.receive()
      await message!.nack()
      clock.set(clock.now() + 1000)
      expect(await mailbox.receive()).toEqual([])
      expect(counts).toEqual([1])
      await mailbox.close()
    }
  })

  it.each([
    ['memory:?retentionSecond=5#a', 'unknown key "retentionSecond" in memory URL'],
    ['sqlite:mail.db?retentionSecs=5#a', 'did you mean "retentionSeconds"?'],
    ['postgres://host/db?retentionSecs=5#a', 'did you mean "retentionSeconds"?'],
    ['postgres://host/db?aplication_name=x#a', 'did you mean "application_name"?'],
    ['redis://host?prefx=a#a', 'did you mean "prefix"?'],
    ['amqp://host?heartbeats=5#a', 'did you mean "heartbeat"?'],
    ['nats://host?replica=3#a', 'did you mean "replicas"?'],
    ['sqs://host?regions=x#a', 'did you mean "region"?'],
    ['https://sqs.eu-west-1.amazonaws.com/1/q?region=x#a', 'known: retentionSeconds'],
    ['kafka://host?partition=3#a', 'did you mean "partitions"?'],
  ])('rejects the unknown parameter of %s by name', async (url, message) => {
    await expect(openMailbox(url)).rejects.toThrow(message)
  })

  it('rejects unknown options by name', async () => {
    await expect(openMailbox('memory:#a', { retentionSecs: 5 } as object)).rejects.toMatchObject({
      code: 'INVALID_CONFIG',
      message: 'unknown key "retentionSecs" in mailbox options: did you mean "retentionSeconds"?',
    })
  })

  it.each(['-1', 'soon', ''])('rejects a retention of %j', async (seconds) => {
    await expect(openMailbox(`memory:?retentionSeconds=${seconds}#a`)).rejects.toMatchObject({
      code: 'INVALID_CONFIG',
      message: expect.stringContaining('retentionSeconds must be from 0') as string,
    })
  })

  it('rejects a retention longer than that of SQS, with the reason', async () => {
    await expect(
      openMailbox('sqs://127.0.0.1:1?region=us-east-1#a', { retentionSeconds: 1_209_601 }),
    ).rejects.toMatchObject({
      code: 'INVALID_CONFIG',
      message: expect.stringContaining('sqs deletes messages after 1209600 seconds') as string,
    })
  })

  it('replies through the given resolver', async () => {
    const clock = fakeClock()
    const replies = await openMailbox('memory:#replies', { clock })
    const resolver = resolverOf([replies])
    const requests = await openMailbox('memory:#requests', { clock, resolver })
    await requests.send('ping', { replyTo: 'replies' })
    await requests.send('ping', { replyTo: 'unknown' })
    const [known, unknown] = await requests.receive({ max: 2 })
    await known!.reply('pong')
    expect((await replies.receive())[0]?.value()).toBe('pong')
    await expect(unknown!.reply('pong')).rejects.toMatchObject({ code: 'REPLY_UNAVAILABLE' })
  })
})
