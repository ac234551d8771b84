import { AckPolicy, jetstream, jetstreamManager, type JsMsg } from '@nats-io/jetstream'
import { connect, headers, type NatsConnection } from '@nats-io/transport-node'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { until } from '../../scripts/servers/machine.ts'
import { natsTap } from '../../src/taps/nats.ts'
import { returnToSource } from '../../src/taps/return-to-source.ts'
import type { ForeignLetter, Keep, Tap } from '../../src/taps/tap.ts'
import type { PrivateServer } from '../servers/control.ts'
import { lacksPrivate, privateNats } from '../servers/private.ts'
import { freshName } from '../servers/servers.ts'
import { inbox } from './inbox.ts'
import { endsWhileItStarts } from './ends-while-it-starts.ts'
import { openLetters } from './letters.ts'

describe.skipIf(lacksPrivate.nats() !== undefined)('natsTap', () => {
  let server: PrivateServer
  let connection: NatsConnection
  let stream: string
  const taps: Tap[] = []

  beforeAll(async () => {
    server = await privateNats()
    connection = await connect({ servers: server.url })
  })

  afterAll(async () => {
    await connection.close()
    await server.remove()
  })

  beforeEach(async () => {
    stream = freshName()
    const { streams, consumers } = await jetstreamManager(connection)
    await streams.add({ name: stream, subjects: [`${stream}.>`] })
    await consumers.add(stream, {
      durable_name: 'worker',
      ack_policy: AckPolicy.Explicit,
      max_deliver: 3,
    })
  })

  afterEach(async () => {
    await Promise.all(taps.splice(0).map((tap) => tap.stop()))
  })

  const started = async (keep: Keep): Promise<Tap> => {
    const tap = natsTap({ url: server.url, stream, consumer: 'worker', keep })
    taps.push(tap)
    await tap.start()
    return tap
  }

  const next = async (): Promise<JsMsg> => {
    const worker = await jetstream(connection).consumers.get(stream, 'worker')
    const message = await worker.next()
    if (!message) throw new Error('nothing came')
    return message
  }

  /** Sends a message that the worker rejects until the server gives up on it. */
  const dies = async (body: string): Promise<void> => {
    const told = headers()
    told.set('Content-Type', 'text/plain')
    told.set('trace', 'abc')
    await jetstream(connection).publish(`${stream}.orders`, body, { headers: told })
    await refuse()
  }

  const refuse = async (times = 3): Promise<void> => {
    for (let deliveries = 0; deliveries < times; deliveries++) (await next()).nak()
    // The server notices that it has given up when it next tries to deliver something.
    const worker = await jetstream(connection).consumers.get(stream, 'worker')
    expect(await worker.next({ expires: 1000 })).toBeNull()
  }

  /** Sends a message, and returns the advisory of the server after a consumer gave up on it. */
  const gaveUp = async (seq: number, body: string): Promise<void> => {
    await jetstream(connection).publish(`${stream}.orders`, body)
    const subject = `$JS.EVENT.ADVISORY.CONSUMER.MAX_DELIVERIES.${stream}.worker`
    const advisory = { stream, consumer: 'worker', stream_seq: seq, deliveries: 3 }
    connection.publish(subject, JSON.stringify(advisory))
  }

  it('stores a message that a consumer gave up on, unchanged', async () => {
    const kept = inbox<ForeignLetter>()
    await started(async (foreign) => kept.put(foreign))
    await dies('poison')
    const foreign = await kept.next()
    expect(Buffer.from(foreign.body).toString()).toBe('poison')
    expect(foreign).toMatchObject({
      source: `${stream}/worker`,
      deliveries: 3,
      contentType: 'text/plain',
      headers: { 'Content-Type': 'text/plain', trace: 'abc' },
      messageId: `${stream}:1`,
      origin: { subject: `${stream}.orders`, stream, seq: '1' },
    })
    expect(foreign.reason).toContain('max_deliver')
  })

  it('stores a message that a consumer ended with TERM', async () => {
    const kept = inbox<ForeignLetter>()
    await started(async (foreign) => kept.put(foreign))
    await jetstream(connection).publish(`${stream}.orders`, 'poison')
    const message = await next()
    message.term()
    const foreign = await kept.next()
    expect(Buffer.from(foreign.body).toString()).toBe('poison')
    expect(foreign).toMatchObject({ deliveries: 1, messageId: `${stream}:1` })
    expect(foreign.reason).toBe('ended by its consumer at delivery 1 (TERM)')
  })

  it('stores the reason of a TERM if the server reports one', async () => {
    const kept = inbox<ForeignLetter>()
    await started(async (foreign) => kept.put(foreign))
    await jetstream(connection).publish(`${stream}.orders`, 'poison')
    const type = 'io.nats.jetstream.advisory.v1.terminated'
    const reason = 'no such customer'
    const advisory = { type, stream, consumer: 'worker', stream_seq: 1, deliveries: 1, reason }
    const subject = `$JS.EVENT.ADVISORY.CONSUMER.MSG_TERMINATED.${stream}.worker`
    connection.publish(subject, JSON.stringify(advisory))
    expect((await kept.next()).reason).toContain('(TERM): no such customer')
  })

  it('adds TERM to a stream that an earlier version created', async () => {
    const { streams } = await jetstreamManager(connection)
    await streams.delete('redrive-dead-letters').catch(() => {})
    const subjects = ['$JS.EVENT.ADVISORY.CONSUMER.MAX_DELIVERIES.>']
    await streams.add({ name: 'redrive-dead-letters', subjects, retention: 'interest' })
    const kept = inbox<ForeignLetter>()
    await started(async (foreign) => kept.put(foreign))
    await jetstream(connection).publish(`${stream}.orders`, 'poison')
    const message = await next()
    message.term()
    expect(await kept.next()).toMatchObject({ messageId: `${stream}:1` })
  })

  it('returns headers with several values and the message id unchanged', async () => {
    const { streams } = await jetstreamManager(connection)
    const kept = inbox<ForeignLetter>()
    const tap = await started(async (foreign) => kept.put(foreign))
    const told = headers()
    told.append('via', 'a')
    told.append('via', 'b, c')
    await jetstream(connection).publish(`${stream}.orders`, 'x', { headers: told, msgID: 'o-1' })
    const message = await next()
    message.term()
    const foreign = await kept.next()
    expect(foreign.headers).toMatchObject({ via: 'a, b, c' })
    const read = async (seq: number) => (await streams.getMessage(stream, { seq }))!.header
    // Within its duplicate window (two minutes) the stream rejects a second message with the same
    // id.
    await tap.returnToSource(foreign, 1)
    const within = await read(2)
    expect(within.values('via')).toEqual(['a', 'b, c'])
    expect(within.get('Nats-Msg-Id')).not.toBe('o-1')
    // A stream that has forgotten the id accepts the message with its original id.
    await streams.delete(stream)
    await streams.add({ name: stream, subjects: [`${stream}.>`] })
    await tap.returnToSource({ ...foreign, headers: { via: 'edited' } }, 2)
    const after = await read(1)
    expect(after.get('Nats-Msg-Id')).toBe('o-1')
    expect(after.values('via')).toEqual(['edited'])
  })

  it('reads a letter again until it is stored, and not after that', async () => {
    const seen = inbox<string>()
    let refusals = 1
    const keep: Keep = async (foreign) => {
      seen.put(foreign.messageId)
      if (refusals-- > 0) throw new Error('the store is unreachable')
    }
    await started(keep)
    await dies('poison')
    expect([await seen.next(), await seen.next()]).toEqual([`${stream}:1`, `${stream}:1`])
    await taps.splice(0)[0]!.stop()
    await started(keep)
    await dies('another')
    expect(await seen.next()).toBe(`${stream}:2`)
  })

  it('reads past letters that cannot be stored', async () => {
    const kept = inbox<string>()
    await started(async ({ messageId, body }) => {
      if (Buffer.from(body).toString() === 'bad') throw new Error('too large')
      kept.put(messageId)
    })
    for (let seq = 1; seq <= 31; seq++) await gaveUp(seq, seq < 31 ? 'bad' : 'good')
    expect(await kept.next()).toBe(`${stream}:31`)
  })

  it('stores messages that died while the tap was stopped', async () => {
    const kept = inbox<ForeignLetter>()
    const tap = await started(async (foreign) => kept.put(foreign))
    await tap.stop()
    await dies('meanwhile')
    await started(async (foreign) => kept.put(foreign))
    expect((await kept.next()).messageId).toBe(`${stream}:1`)
  })

  it('returns a letter to its subject once per generation', async () => {
    const kept = inbox<ForeignLetter>()
    const tap = await started(async (foreign) => kept.put(foreign))
    await dies('poison')
    const foreign = await kept.next()
    const mended = { ...foreign, body: Buffer.from('mended') }
    await tap.returnToSource(mended, 1)
    await tap.returnToSource(mended, 1)
    await tap.returnToSource(mended, 2)
    for (const seq of [2, 3]) {
      const message = await next()
      expect([message.string(), message.subject, message.seq]).toEqual([
        'mended',
        `${stream}.orders`,
        seq,
      ])
      expect(message.headers?.get('trace')).toBe('abc')
      message.ack()
    }
  })

  it('sends an edited letter as a new message', async () => {
    const kept = inbox<ForeignLetter>()
    const tap = await started(async (foreign) => kept.put(foreign))
    await dies('poison')
    const foreign = await kept.next()
    await tap.returnToSource(foreign, 1)
    await tap.returnToSource({ ...foreign, body: Buffer.from('mended') }, 1)
    for (const body of ['poison', 'mended']) {
      const message = await next()
      expect(message.string()).toBe(body)
      message.ack()
    }
  })

  it('stores a letter once, and returns it to its source over all its lives', async () => {
    await using letters = await openLetters()
    const { dlq, keepAndCrash } = letters
    const crashing = await started(keepAndCrash)
    await dies('poison')
    const { letter } = await letters.next('captured')
    expect(letter).toMatchObject({
      queue: `${stream}/worker`,
      state: 'parked',
      failure: { name: 'DeadLettered', message: 'given up after 3 deliveries (max_deliver)' },
      category: 'unknown',
      headers: { trace: 'abc' },
      payload: { contentType: 'text/plain' },
      source: { messageId: `${stream}:1`, deliveries: 3 },
      metadata: { origin: { stream, consumer: 'worker', subject: `${stream}.orders` } },
    })
    await crashing.stop()
    const tap = await started(letters.keep)
    expect(await letters.next('duplicate')).toMatchObject({ letter: { id: letter.id } })
    dlq.handle(letter.queue, returnToSource(tap))
    dlq.start()
    await dlq.retry(letter.id)
    expect((await letters.next('resolved')).letter.id).toBe(letter.id)
    const back = await next()
    expect([back.string(), back.subject]).toEqual(['poison', `${stream}.orders`])
    expect(back.headers?.get('trace')).toBe('abc')
    back.nak()
    await refuse(2)
    const again = (await letters.next('captured')).letter
    expect(again.metadata).toMatchObject({ replays: 1, originalId: `${stream}:1` })
    await dlq.retry(again.id)
    await letters.next('resolved')
    const twice = await next()
    expect(twice.headers?.values('redrive-replays')).toEqual(['2'])
    expect(twice.headers?.values('redrive-original-id')).toEqual([`${stream}:1`])
  })

  it('recreates its consumer if somebody has deleted it', async () => {
    const kept = inbox<string>()
    const troubles = inbox<unknown>()
    const keep: Keep = async ({ messageId }) => kept.put(messageId)
    const onError = (error: unknown): void => troubles.put(error)
    const tap = natsTap({ url: server.url, stream, consumer: 'worker', keep, onError })
    taps.push(tap)
    await tap.start()
    const all = 'redrive-dead-letters'
    const { consumers } = await jetstreamManager(connection)
    const own = (await consumers.list(all).next()).find(({ name }) => name.startsWith(stream))!.name
    const waits = async (): Promise<boolean> => (await consumers.info(all, own)).num_waiting > 0
    await until('it waits', waits, 20)
    await consumers.delete(all, own)
    await troubles.next()
    const listens = async (): Promise<boolean> =>
      consumers.info(all, own).then(
        () => true,
        () => false,
      )
    await until('it listens', listens, 20)
    await gaveUp(1, 'after')
    expect(await kept.next()).toBe(`${stream}:1`)
  })

  it('keeps a letter whose stream is gone', async () => {
    await using letters = await openLetters()
    const { dlq } = letters
    const tap = await started(letters.keep)
    await dies('poison')
    const { letter } = await letters.next('captured')
    await letters.next('parked')
    await (await jetstreamManager(connection)).streams.delete(stream)
    dlq.handle(letter.queue, returnToSource(tap))
    dlq.start()
    await dlq.retry(letter.id)
    const { failure } = (await letters.next('parked')).letter
    expect(failure.code).toBe('MAILBOX_UNAVAILABLE')
    expect(failure.message).toContain(`could not return the letter to the subject ${stream}.orders`)
  })

  it('deletes the message from its stream after it is stored, if `remove` is set', async () => {
    const kept = inbox<ForeignLetter>()
    const keep: Keep = async (foreign) => kept.put(foreign)
    const tap = natsTap({ url: server.url, stream, keep, remove: true })
    taps.push(tap)
    await tap.start()
    await dies('poison')
    await kept.next()
    await tap.stop()
    const { streams } = await jetstreamManager(connection)
    expect((await streams.info(stream)).state.messages).toBe(0)
  })

  it('reads nothing when it is stopped during its start', async () => {
    await endsWhileItStarts((clock) =>
      natsTap({ url: server.url, stream, keep: async () => {}, clock }),
    )
  })

  it('rejects start if the stream does not exist', async () => {
    const tap = natsTap({ url: server.url, stream: 'nowhere', keep: async () => {} })
    await expect(tap.start()).rejects.toMatchObject({ code: 'MAILBOX_UNAVAILABLE' })
    await tap.stop()
  })
})
