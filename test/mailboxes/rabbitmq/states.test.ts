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
import { lacksPrivate, persistsQueue } from '../../servers/private.ts'

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

  describe('after the server was killed, and started with a full disk', () => {
    const unavailable = { code: 'MAILBOX_UNAVAILABLE' }
    const sent = Array.from({ length: 50 }, (_, n) => `id-${n}`)

    beforeAll(async () => {
      await persistsQueue(server, mailbox.name)
      await Promise.all(sent.map((id) => eventually(() => mailbox.send('sent', { id }))))
      await mailbox.send('left', { id: 'left' })
      await server.kill9()
      await expect(mailbox.send('nowhere')).rejects.toMatchObject(unavailable)
      appendFileSync(join(folder, 'rabbitmq.conf'), full)
      await server.start()
    }, 120_000)

    it('has all confirmed messages', async () => {
      const seen = new Set<string>()
      while (seen.size <= sent.length) {
        const message = await takeOne(mailbox)
        seen.add(message.id)
        if (message.id !== 'left') await message.acknowledge().catch(() => {})
      }
      expect([...seen].toSorted()).toEqual([...sent, 'left'].toSorted())
    })

    it('reports that the disk of the server is full, and messages can still be received', async () => {
      const held = await takeOne(mailbox, { visibilitySeconds: 1 })
      await expect(mailbox.send('too much')).rejects.toMatchObject(unavailable)
      // As soon as it knows, it does not even try.
      const refusal = (): Promise<string> =>
        mailbox.send('too much').then(String, (error: Error) => error.message)
      await expect
        .poll(refusal, { timeout: 30_000 })
        .toContain('does not accept messages at present')
      expect(await mailbox.health()).toMatchObject({ ok: false })
      // It cannot be published again, so it is requeued unchanged.
      const again = await takeOne(mailbox)
      expect(again.id).toBe(held.id)
      await expect(again.nack()).rejects.toMatchObject(unavailable)
      await again.acknowledge()
    })
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
