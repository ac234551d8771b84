import { AckPolicy, DiscardPolicy, jetstream, jetstreamManager } from '@nats-io/jetstream'
import { connect, type NatsConnection } from '@nats-io/transport-node'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { natsTap } from '../../src/taps/nats.ts'
import type { ForeignLetter, Keep, Tap } from '../../src/taps/tap.ts'
import type { PrivateServer } from '../servers/control.ts'
import { lacksPrivate, privateNats } from '../servers/private.ts'
import { inbox } from '../taps/inbox.ts'

const unavailable = { code: 'MAILBOX_UNAVAILABLE' }
const stream = 'orders'

describe.skipIf(lacksPrivate.nats())('a tap on a stream of NATS', () => {
  let server: PrivateServer
  let connection: NatsConnection
  const taps: Tap[] = []

  /** A stream of at most two messages, which discards the oldest. */
  beforeEach(async () => {
    server = await privateNats()
    connection = await connect({ servers: server.url })
    const { streams, consumers } = await jetstreamManager(connection)
    const room = { max_msgs: 2, discard: DiscardPolicy.Old }
    await streams.add({ name: stream, subjects: [`${stream}.>`], ...room })
    await consumers.add(stream, {
      durable_name: 'worker',
      ack_policy: AckPolicy.Explicit,
      max_deliver: 1,
    })
  })

  afterEach(async () => {
    await Promise.all(taps.splice(0).map((tap) => tap.stop()))
    await connection.close()
    await server.remove()
  })

  const startTap = async (keep: Keep): Promise<Tap> => {
    const tap = natsTap({ url: server.url, stream, consumer: 'worker', keep })
    taps.push(tap)
    await tap.start()
    return tap
  }

  const publish = (body: string): Promise<unknown> =>
    jetstream(connection).publish(`${stream}.new`, body)

  const addDeadMessage = async (body: string): Promise<void> => {
    await publish(body)
    const worker = await jetstream(connection).consumers.get(stream, 'worker')
    ;(await worker.next())!.nak()
    // The server notices the exhausted message at its next attempt to deliver something.
    expect(await worker.next({ expires: 1000 })).toBeNull()
  }

  it('reports a message that was deleted before it was read, and refuses to return an empty one', async () => {
    const kept = inbox<ForeignLetter>()
    await (await startTap(async (letter) => kept.put(letter))).stop()
    await addDeadMessage('dropped')
    for (const body of ['newer', 'newest']) await publish(body)
    const tap = await startTap(async (letter) => kept.put(letter))
    const letter = await kept.next()
    expect(letter).toMatchObject({ messageId: `${stream}:1`, deliveries: 1 })
    expect(letter.reason).toContain('was no longer in the stream')
    expect(letter.body).toHaveLength(0)
    await expect(tap.returnToSource(letter, 1)).rejects.toMatchObject({ code: 'INVALID_INPUT' })
  })

  it('fails to return a letter when the stream is gone, and returns it once the stream exists again', async () => {
    const kept = inbox<ForeignLetter>()
    const tap = await startTap(async (letter) => kept.put(letter))
    await addDeadMessage('one')
    const letter = await kept.next()
    const { streams } = await jetstreamManager(connection)
    await streams.delete(stream)
    await expect(tap.returnToSource(letter, 1)).rejects.toMatchObject(unavailable)
    await streams.add({ name: stream, subjects: [`${stream}.>`] })
    await tap.returnToSource(letter, 1)
    expect((await streams.info(stream)).state.messages).toBe(1)
  })

  it('continues after the server was killed, and misses nothing', async () => {
    const kept = inbox<string>()
    await startTap(async ({ messageId }) => kept.put(messageId))
    await addDeadMessage('one')
    expect(await kept.next()).toBe(`${stream}:1`)
    await connection.close()
    await server.kill9()
    await server.start()
    connection = await connect({ servers: server.url })
    await addDeadMessage('two')
    for (let id = await kept.next(); id !== `${stream}:2`; id = await kept.next());
  })
})
