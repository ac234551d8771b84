import { once } from 'node:events'
import { createServer, type AddressInfo } from 'node:net'
import { jetstreamManager } from '@nats-io/jetstream'
import { connect } from '@nats-io/transport-node'
import { afterEach, describe, expect, it } from 'vitest'
import { until } from '../../../scripts/servers/machine.ts'
import type { Mailbox, Message } from '../../../src/mailbox.ts'
import { toNaming } from '../../../src/mailboxes/nats/naming.ts'
import { natsMailbox } from '../../../src/mailboxes/nats/nats.ts'
import { createProxy, type Proxy } from '../../faults/proxy.ts'
import type { PrivateServer } from '../../servers/control.ts'
import { lacksPrivate, privateNats } from '../../servers/private.ts'

const away = { code: 'MAILBOX_UNAVAILABLE' }

/** A server that rejects all credentials, like one whose users are not loaded yet. */
async function refusing(): Promise<{
  url: string
  refused: (times: number) => Promise<void>
  close: () => void
}> {
  const info = { server_id: 'A', version: '2.11.0', proto: 1, max_payload: 1024, headers: true }
  const gate = createServer((socket) => {
    socket.on('error', () => {})
    socket.write(`INFO ${JSON.stringify({ ...info, auth_required: true })}\r\n`)
    socket.once('data', () => {
      socket.end("-ERR 'Authorization Violation'\r\n")
      gate.emit('refused')
    })
  })
  gate.listen(0, '127.0.0.1')
  await once(gate, 'listening')
  return {
    url: `nats://127.0.0.1:${(gate.address() as AddressInfo).port}`,
    refused: async (times) => {
      for (let n = 0; n < times; n++) await once(gate, 'refused')
    },
    close: () => gate.close(),
  }
}

describe.skipIf(lacksPrivate.nats() !== undefined)('a NATS server with outages', () => {
  let server: PrivateServer
  let proxy: Proxy | undefined
  const mailboxes: Mailbox[] = []

  afterEach(async () => {
    await Promise.all(mailboxes.splice(0).map((mailbox) => mailbox.close()))
    proxy?.close()
    proxy = undefined
    await server.remove()
  })

  const opened = async (url: string): Promise<Mailbox> => {
    const mailbox = natsMailbox({ name: 'orders', url })
    mailboxes.push(mailbox)
    await mailbox.open()
    return mailbox
  }

  const proxied = async (): Promise<[Mailbox, Proxy]> => {
    server = await privateNats()
    proxy = await createProxy(server.url)
    return [await opened(`nats://127.0.0.1:${proxy.port()}`), proxy]
  }

  const isBack = (mailbox: Mailbox): Promise<unknown> =>
    until('the mailbox is healthy again', async () => (await mailbox.health()).ok, 20)

  const drained = async (mailbox: Mailbox): Promise<Message[]> => {
    const all: Message[] = []
    for (;;) {
      const batch = await mailbox.receive({ max: 10, waitSeconds: 1 })
      if (batch.length === 0) return all
      await Promise.all(batch.map((message) => message.acknowledge()))
      all.push(...batch)
    }
  }

  it('loses nothing when it is killed, and open deliveries can be settled afterwards', async () => {
    server = await privateNats()
    const mailbox = await opened(server.url)
    const sent = await Promise.all(Array.from({ length: 20 }, (_, n) => mailbox.send(n)))
    const held = await mailbox.receive({ max: 5, visibilitySeconds: 600 })
    expect(held).toHaveLength(5)
    await held[0]!.acknowledge()
    const [given] = await mailbox.receive()
    await given!.nack()
    await server.kill9()
    await expect(mailbox.send('lost')).rejects.toMatchObject(away)
    await expect(mailbox.receive()).rejects.toMatchObject(away)
    await expect(held[1]!.acknowledge()).rejects.toMatchObject(away)
    expect((await mailbox.health()).ok).toBe(false)
    await server.start()
    await isBack(mailbox)
    await Promise.all(held.slice(1).map((message) => message.acknowledge()))
    const rest = await drained(mailbox)
    const seen = new Set([...held, ...rest].map((message) => message.id))
    expect(sent.filter((id) => !seen.has(id))).toEqual([])
  })

  it('ends a waiting receive when the connection breaks, and serves the next one', async () => {
    const [mailbox, between] = await proxied()
    const waiting = mailbox.receive({ waitSeconds: 60 })
    const refused = expect(waiting).rejects.toMatchObject(away)
    await between.seen('reply passed')
    await between.set('reset')
    await refused
    await between.set('pass')
    await isBack(mailbox)
    const id = await mailbox.send('after')
    const [message] = await mailbox.receive({ waitSeconds: 5 })
    expect([message?.id, message?.deliveries]).toEqual([id, 1])
  })

  it('reports an unknown outcome of send; sent again, the message is stored once', async () => {
    const [mailbox, between] = await proxied()
    await between.set('hold replies')
    await expect(mailbox.send('perhaps', { id: 'same' })).rejects.toMatchObject(away)
    await between.set('pass')
    await isBack(mailbox)
    await mailbox.send('perhaps', { id: 'same' })
    expect(await mailbox.approximateCount()).toBe(1)
  })

  it('allows repeating an acknowledgement whose answer was lost', async () => {
    const [mailbox, between] = await proxied()
    await mailbox.send('done')
    const [message] = await mailbox.receive({ visibilitySeconds: 600 })
    await between.set('hold replies')
    await expect(message!.acknowledge()).rejects.toMatchObject(away)
    await between.set('pass')
    await isBack(mailbox)
    await message!.acknowledge()
    expect(message!.finalized).toBe(true)
    expect(await mailbox.approximateCount()).toBe(0)
  })

  it('releases a message that was in flight to a receiver that gave up', async () => {
    const [mailbox, between] = await proxied()
    const other = await opened(server.url)
    const stop = new AbortController()
    const waiting = mailbox.receive({ waitSeconds: 60, signal: stop.signal })
    // The answer to this request arrives after the server knows the pull.
    await mailbox.approximateCount()
    await between.set('hold replies')
    await other.send('passing')
    await between.seen('reply held')
    stop.abort()
    expect(await waiting).toEqual([])
    await between.set('pass')
    const [message] = await other.receive({ waitSeconds: 10 })
    expect([message?.value(), message?.deliveries]).toEqual(['passing', 2])
  })

  it('closes when the server no longer answers, even if nobody waits for a message', async () => {
    const [mailbox, between] = await proxied()
    await mailbox.send('before')
    await between.set('blackhole')
    await mailbox.close()
    expect(mailbox.closed).toBe(true)
  })

  it('reconnects once its credentials are accepted again, however often they were rejected', async () => {
    const [mailbox, between] = await proxied()
    const gatekeeper = await refusing()
    try {
      between.aim(gatekeeper.url)
      await between.set('reset')
      await between.set('pass')
      await gatekeeper.refused(4)
      between.aim(server.url)
      await isBack(mailbox)
    } finally {
      gatekeeper.close()
    }
    await mailbox.send('after')
    const [message] = await mailbox.receive({ waitSeconds: 5 })
    expect(message?.value()).toBe('after')
  })

  it('rejects open at once if the server is unreachable', async () => {
    server = await privateNats()
    const mailbox = natsMailbox({ name: 'orders', url: 'nats://user:hunter2@127.0.0.1:1' })
    mailboxes.push(mailbox)
    const error: unknown = await mailbox.open().catch((thrown: unknown) => thrown)
    expect(error).toMatchObject(away)
    expect(String(error)).not.toContain('hunter2')
  })

  it('continues after somebody else has purged the stream', async () => {
    server = await privateNats()
    const mailbox = await opened(server.url)
    await Promise.all(Array.from({ length: 5 }, (_, n) => mailbox.send(n)))
    await mailbox.receive({ max: 2 })
    const connection = await connect({ servers: server.url })
    const { streams } = await jetstreamManager(connection)
    await streams.purge(toNaming('redrive', 'orders').stream)
    await connection.close()
    expect(await mailbox.receive({ max: 10 })).toEqual([])
    await mailbox.send('new')
    const [message] = await mailbox.receive({ max: 10 })
    expect(message?.value()).toBe('new')
  })
})
