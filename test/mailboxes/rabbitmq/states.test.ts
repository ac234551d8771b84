import { appendFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import {
  createNode,
  epmdCommand,
  greetRabbitmq,
  nodeName,
  rabbitmqCommand,
  rabbitmqUrl,
} from '../../../scripts/servers/rabbitmq.ts'
import type { Mailbox, Message, ReceiveOptions } from '../../../src/mailbox.ts'
import { rabbitmqMailbox } from '../../../src/mailboxes/rabbitmq/rabbitmq.ts'
import { begin, type PrivateServer } from '../../servers/control.ts'
import { lacksPrivate } from '../../servers/private.ts'

const lacking = lacksPrivate.rabbitmq()
const patience = { timeout: 180_000 }

/** A server that allows holding a message for two seconds only. */
const shortTimeout = 'consumer_timeout = 2000\n'
const frequentChecks = '[{rabbit, [{channel_tick_interval, 500}]}].\n'
/** A server whose disk never has enough space, so that it blocks publishing. */
const full = 'disk_free_limit.absolute = 900000GB\n'

describe.skipIf(lacking)('a mailbox in RabbitMQ', patience, () => {
  let server: PrivateServer
  let folder: string
  let mailbox: Mailbox

  beforeAll(async () => {
    server = await begin({
      ports: 3,
      prepare: (made) => {
        folder = made
        createNode(folder)
        appendFileSync(join(folder, 'rabbitmq.conf'), shortTimeout)
        writeFileSync(join(folder, 'advanced.config'), frequentChecks)
      },
      beside: epmdCommand,
      command: rabbitmqCommand,
      isOurs: async ([port], made) => (await greetRabbitmq(port!)).includes(nodeName(made)),
      url: rabbitmqUrl,
      signals: { smart: 'SIGTERM', fast: 'SIGTERM', immediate: 'SIGTERM' },
    })
    mailbox = rabbitmqMailbox({ url: server.url, name: 'orders', timeoutMs: 2000 })
    await mailbox.open()
  }, 120_000)

  afterAll(async () => {
    await mailbox?.close()
    await server?.remove()
  }, 60_000)

  it('redelivers a message after the delivery timeout of the server, and rejects the old receipt', async () => {
    await mailbox.send('slow')
    const old = await takeOne(mailbox)
    const again = await takeOne(mailbox)
    expect(again).toMatchObject({ id: old.id, deliveries: 2, failures: 0 })
    await expect(old.acknowledge()).rejects.toMatchObject({ code: 'RECEIPT_EXPIRED' })
    await again.acknowledge()
  })

  it('has all confirmed messages after the server was killed', async () => {
    // The server itself persists a new queue with a delay.
    await server.stop()
    await server.start()
    const sent = await Promise.all(
      Array.from({ length: 50 }, (_, n) => eventually(() => mailbox.send(n, { id: `id-${n}` }))),
    )
    await server.kill9()
    await expect(mailbox.send('nowhere')).rejects.toMatchObject({ code: 'MAILBOX_UNAVAILABLE' })
    await server.start()
    const seen = new Set<string>()
    while (seen.size < sent.length) {
      const message = await takeOne(mailbox)
      seen.add(message.id)
      await eventually(() => message.acknowledge()).catch(() => {})
    }
    expect([...seen].toSorted()).toEqual([...new Set(sent)].toSorted())
  })

  it('reports that the disk of the server is full, and messages can still be received', async () => {
    await eventually(() => mailbox.send('there before'))
    await server.stop()
    appendFileSync(join(folder, 'rabbitmq.conf'), full)
    await server.start()
    const held = await takeOne(mailbox, { visibilitySeconds: 1 })
    expect(held.value()).toBe('there before')
    const unavailable = { code: 'MAILBOX_UNAVAILABLE' }
    await expect(mailbox.send('too much')).rejects.toMatchObject(unavailable)
    // As soon as it knows, it does not even try.
    const refusal = (): Promise<string> =>
      mailbox.send('too much').then(String, (error: Error) => error.message)
    await expect.poll(refusal, { timeout: 30_000 }).toContain('does not accept messages at present')
    expect(await mailbox.health()).toMatchObject({ ok: false })
    // It cannot be published again, so it is requeued unchanged.
    const again = await takeOne(mailbox)
    expect(again.id).toBe(held.id)
    await expect(again.nack()).rejects.toMatchObject(unavailable)
    await again.acknowledge()
  })
})

async function takeOne(from: Mailbox, options: ReceiveOptions = {}): Promise<Message> {
  for (;;) {
    const request = { waitSeconds: 30, visibilitySeconds: 60, ...options }
    const [message] = await eventually(() => from.receive(request))
    if (message) return message
  }
}

/** Calls wait by themselves for a while, so repeating is enough. */
async function eventually<T>(call: () => Promise<T>): Promise<T> {
  for (let tries = 0; ; tries++)
    try {
      return await call()
    } catch (error) {
      if (tries === 50) throw error
    }
}
