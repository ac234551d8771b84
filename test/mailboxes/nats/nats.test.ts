import { jetstream, jetstreamManager } from '@nats-io/jetstream'
import { connect, headers, type Msg, type NatsConnection } from '@nats-io/transport-node'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { systemClock } from '../../../src/clock/clock.ts'
import type { Mailbox } from '../../../src/mailbox.ts'
import { consumer, toNaming } from '../../../src/mailboxes/nats/naming.ts'
import { natsMailbox, type NatsMailboxOptions } from '../../../src/mailboxes/nats/nats.ts'
import { natsPlace } from '../../servers/broker-places.ts'
import type { Place } from '../../servers/places.ts'
import { backend } from '../../servers/servers.ts'

const { url, missing } = backend('nats')

describe.skipIf(missing)('natsMailbox', () => {
  let connection: NatsConnection
  let place: Place
  const mailboxes: Mailbox[] = []

  beforeAll(async () => {
    connection = await connect({ servers: url })
  })

  afterAll(() => connection.close())

  beforeEach(() => {
    place = natsPlace(url)
  })

  afterEach(async () => {
    await Promise.all(mailboxes.splice(0).map((mailbox) => mailbox.close()))
    await place.clear()
  })

  const opened = async (options: Partial<NatsMailboxOptions> = {}): Promise<Mailbox> => {
    const mailbox = natsMailbox({ name: 'orders', url, prefix: place.name, ...options })
    mailboxes.push(mailbox)
    await mailbox.open()
    return mailbox
  }

  it('recreates its consumer if somebody has deleted it', async () => {
    const mailbox = await opened()
    const { stream } = toNaming(place.name, 'orders')
    const { consumers } = await jetstreamManager(connection)
    const waiting = mailbox.receive({ waitSeconds: 60 })
    // The answer to this request arrives after the server knows the pull.
    await mailbox.approximateCount()
    await consumers.delete(stream, consumer)
    await mailbox.send('waited for')
    const [first] = await waiting
    expect(first?.value()).toBe('waited for')
    await first!.acknowledge()
    await mailbox.send('there before')
    await consumers.delete(stream, consumer)
    const [second] = await mailbox.receive()
    expect(second?.value()).toBe('there before')
    await second!.acknowledge()
    expect(await mailbox.approximateCount()).toBe(0)
  })

  it('reports that the stream may be deleted if nothing accepts a message', async () => {
    const mailbox = await opened()
    const { streams } = await jetstreamManager(connection)
    await streams.delete(toNaming(place.name, 'orders').stream)
    await expect(mailbox.send('x')).rejects.toMatchObject({
      code: 'MAILBOX_UNAVAILABLE',
      message: expect.stringContaining('the stream was deleted') as string,
    })
    await expect(mailbox.receive()).rejects.toMatchObject({ code: 'MAILBOX_UNAVAILABLE' })
  })

  it('delays a message no longer than the maximum delay, however wrong the clock is', async () => {
    const decadeMs = 10 * 365 * 24 * 3600 * 1000
    const clock = { ...systemClock, now: () => systemClock.now() - decadeMs }
    const mailbox = await opened({ clock })
    const { stream } = toNaming(place.name, 'orders')
    const acks = connection.subscribe(`$JS.ACK.${stream}.>`)
    await connection.flush()
    await mailbox.send('later', { delaySeconds: 5 })
    expect(await mailbox.receive()).toEqual([])
    const { value: ack } = await acks[Symbol.asyncIterator]().next()
    acks.unsubscribe()
    expect((ack as Msg).string()).toBe('-NAK {"delay":43200000000000}')
  })

  it('delivers messages that others publish to its subject', async () => {
    const mailbox = await opened()
    const { stream, subject } = toNaming(place.name, 'orders')
    const sentHeaders = headers()
    sentHeaders.append('Content-Type', 'application/json')
    sentHeaders.append('tag', 'a')
    sentHeaders.append('tag', 'b')
    const client = jetstream(connection)
    await client.publish(subject, '{"a":1}', { headers: sentHeaders, msgID: 'theirs' })
    await client.publish(subject, Uint8Array.of(0, 255))
    const [named, bare] = await mailbox.receive({ max: 10 })
    expect(named).toMatchObject({ id: 'theirs', deliveries: 1 })
    expect(named!.headers).toMatchObject({ tag: 'a, b' })
    expect(named!.value()).toEqual({ a: 1 })
    expect(bare!.id).toBe(`${stream}:2`)
    expect(bare!.body).toMatchObject({ contentType: 'application/octet-stream', size: 2 })
  })

  it('ignores a header of ours that somebody else wrote', async () => {
    const mailbox = await opened()
    const { subject } = toNaming(place.name, 'orders')
    const forgeries = [
      '{',
      'null',
      '{"id":5}',
      '{"id":"x","type":"y","odd":{"a":1}}',
      ...['1e300', '-1', '43200001'].map((ms) => `{"id":"x","type":"y","delayMs":${ms}}`),
    ]
    for (const forged of forgeries) {
      const sentHeaders = headers()
      sentHeaders.set('Redrive', forged)
      await jetstream(connection).publish(subject, 'body', { headers: sentHeaders })
    }
    const taken = await mailbox.receive({ max: 10 })
    expect(taken.map(({ body }) => body.contentType)).toEqual(
      forgeries.map(() => 'application/octet-stream'),
    )
  })

  it('delays a message even if nobody polled before its time', async () => {
    const mailbox = await opened()
    await mailbox.send('later', { delaySeconds: 0.05 })
    const counts: number[] = []
    for (let n = 0; n < 3; n++) {
      const [message] = await mailbox.receive({ waitSeconds: 5 })
      counts.push(message!.deliveries)
      await message!.nack()
    }
    expect(counts).toEqual([1, 2, 3])
  })

  it('finds due messages behind delayed ones, without waiting', async () => {
    const mailbox = await opened()
    for (let n = 0; n < 5; n++) await mailbox.send('later', { delaySeconds: 600 })
    await mailbox.send('now')
    const [message] = await mailbox.receive()
    expect(message?.value()).toBe('now')
  })

  it('accepts no more than maxMessages', async () => {
    const mailbox = await opened({ maxMessages: 2 })
    await mailbox.send(1)
    await mailbox.send(2)
    await expect(mailbox.send(3)).rejects.toMatchObject({ code: 'MAILBOX_FULL' })
    const [message] = await mailbox.receive()
    await message!.acknowledge()
    await mailbox.send(3)
    expect(await mailbox.approximateCount()).toBe(2)
  })

  it('rejects headers that leave no room for the body', async () => {
    const mailbox = await opened()
    const body = new Uint8Array(mailbox.powers.maxBodyBytes)
    const large = Object.fromEntries(
      Array.from({ length: 4 }, (_, n) => [`h${n}`, 'x'.repeat(8000)]),
    )
    await expect(mailbox.send(body, { headers: large })).rejects.toMatchObject({
      code: 'TOO_LARGE',
    })
    expect(await mailbox.approximateCount()).toBe(0)
  })

  it('does not change an existing stream, and reports its problems', async () => {
    const { stream, subject } = toNaming(place.name, 'orders')
    const { streams, consumers } = await jetstreamManager(connection)
    await streams.add({ name: stream, subjects: [subject], storage: 'memory', max_msgs: 9 })
    await consumers.add(stream, {
      durable_name: consumer,
      ack_policy: 'explicit',
      max_deliver: 5,
    })
    const mailbox = await opened()
    expect(mailbox.powers.durable).toBe(false)
    const { ok, problems } = await mailbox.health()
    expect(ok).toBe(false)
    expect(problems.join()).toMatch(/memory.*discard: old.*max_deliver/)
  })

  it('stores on disk, without delivery limit, and deletes nothing when full', async () => {
    await opened()
    const { stream } = toNaming(place.name, 'orders')
    const { streams, consumers } = await jetstreamManager(connection)
    const { config } = await streams.info(stream)
    expect(config).toMatchObject({ storage: 'file', discard: 'new', retention: 'workqueue' })
    const { config: reading } = await consumers.info(stream, consumer)
    expect(reading.max_deliver).toBe(-1)
  })

  it('opens from several processes at once', async () => {
    const all = await Promise.all(Array.from({ length: 5 }, () => opened()))
    await all[0]!.send('x')
    const [message] = await all[4]!.receive({ waitSeconds: 5 })
    expect(message?.value()).toBe('x')
  })
})

describe('natsMailbox', () => {
  it.each([
    [{ url: 'http://localhost' }, /nats:\/\//],
    [{ url: 'nats://localhost?colour=red' }, /colour/],
    [{ url: 'nats://localhost?replicas=9' }, /replicas/],
    [{ url: 'nats://localhost', prefix: 'a.b' }, /prefix/],
    [{ url: 'nats://localhost', maxMessages: 0 }, /maxMessages/],
    [{ url: 'nats://localhost', dedupeSeconds: -1 }, /dedupeSeconds/],
  ])('rejects %o by name', (options, message) => {
    const make = (): Mailbox => natsMailbox({ name: 'a', ...options })
    expect(make).toThrow(expect.objectContaining({ code: 'INVALID_INPUT' }) as Error)
    expect(make).toThrow(message)
  })
})
