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

  /** A stream of two messages, the older of which goes when there is no room. */
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

  const started = async (keep: Keep): Promise<Tap> => {
    const tap = natsTap({ url: server.url, stream, consumer: 'worker', keep })
    taps.push(tap)
    await tap.start()
    return tap
  }

  const publish = (body: string): Promise<unknown> =>
    jetstream(connection).publish(`${stream}.new`, body)

  const dies = async (body: string): Promise<void> => {
    await publish(body)
    const worker = await jetstream(connection).consumers.get(stream, 'worker')
    ;(await worker.next())!.nak()
    // The server notices that it has given up when it next looks for something to deliver.
    expect(await worker.next({ expires: 1000 })).toBeNull()
  }

  it('whose message is gone before anybody could read it says so, and does not send nothing back', async () => {
    const kept = inbox<ForeignLetter>()
    await (await started(async (letter) => kept.put(letter))).stop()
    await dies('dropped')
    for (const body of ['newer', 'newest']) await publish(body)
    const tap = await started(async (letter) => kept.put(letter))
    const letter = await kept.next()
    expect(letter).toMatchObject({ messageId: `${stream}:1`, deliveries: 1 })
    expect(letter.reason).toContain('was no longer in the stream')
    expect(letter.body).toHaveLength(0)
    await expect(tap.returnToSource(letter, 1)).rejects.toMatchObject({ code: 'INVALID_INPUT' })
  })

  it('fails to send back when the stream is gone, and the letter can go once it is there again', async () => {
    const kept = inbox<ForeignLetter>()
    const tap = await started(async (letter) => kept.put(letter))
    await dies('one')
    const letter = await kept.next()
    const { streams } = await jetstreamManager(connection)
    await streams.delete(stream)
    await expect(tap.returnToSource(letter, 1)).rejects.toMatchObject(unavailable)
    await streams.add({ name: stream, subjects: [`${stream}.>`] })
    await tap.returnToSource(letter, 1)
    expect((await streams.info(stream)).state.messages).toBe(1)
  })

  it('reads on by itself after the server was killed, and misses nothing', async () => {
    const kept = inbox<string>()
    await started(async ({ messageId }) => kept.put(messageId))
    await dies('one')
    expect(await kept.next()).toBe(`${stream}:1`)
    await connection.close()
    await server.kill9()
    await server.start()
    connection = await connect({ servers: server.url })
    await dies('two')
    for (let id = await kept.next(); id !== `${stream}:2`; id = await kept.next());
  })
})
