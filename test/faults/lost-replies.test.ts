import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { until } from '../../scripts/servers/machine.ts'
import type { Mailbox, Message } from '../../src/mailbox.ts'
import { kafkaTap } from '../../src/taps/kafka.ts'
import { openMailbox } from '../../src/connect/mailbox.ts'
import type { PrivateServer } from '../servers/control.ts'
import { lacksPrivate, privateKafka } from '../servers/private.ts'
import { mailboxKinds } from './mailbox-grounds.ts'
import { createProxy, type Proxy } from './proxy.ts'

const unavailable = { code: 'MAILBOX_UNAVAILABLE' }
const { postgres, redis, rabbitmq, nats, sqs } = mailboxKinds

describe(
  'a way that loses the replies to what was sent',
  { concurrent: true, timeout: 60_000 },
  () => {
    for (const { kind, missing, begin } of [postgres, redis, rabbitmq, nats, sqs])
      it.skipIf(missing)(`to ${kind} leaves it in doubt: sent again, it is there`, async () => {
        const ground = await begin()
        const url = ground.url('doubt')
        const proxy = await createProxy(url)
        const mailbox = await openMailbox(proxy.through(url))
        const direct = await openMailbox(url)
        try {
          await doubted(mailbox, direct, proxy)
        } finally {
          await Promise.all([mailbox.close(), direct.close()])
          proxy.close()
          await ground.clear()
        }
      })
  },
)

describe.skipIf(lacksPrivate.kafka())(
  'a way to kafka that loses the replies',
  { timeout: 90_000 },
  () => {
    let proxy: Proxy
    let server: PrivateServer
    const url = (): string => `kafka://127.0.0.1:${proxy.port()}`

    /** Clients go on to the address that the broker names, which is that of the proxy. */
    beforeAll(async () => {
      proxy = await createProxy('kafka://127.0.0.1:1')
      const advertised = `PLAINTEXT://127.0.0.1:${proxy.port()}`
      server = await privateKafka({ 'advertised.listeners': advertised })
      proxy.aim(`kafka://${server.url}`)
    }, 90_000)

    afterAll(async () => {
      proxy?.close()
      await server?.remove()
    }, 60_000)

    it('to what was sent leaves it in doubt: sent again, it is there', async () => {
      const mailbox = await openMailbox(`${url()}#doubt`)
      const direct = await openMailbox(`${url()}#doubt`)
      // A broker that has just started does not know its groups at once.
      await until('groups are served', () => isDone(direct.approximateCount()), 30)
      try {
        await doubted(mailbox, direct, proxy)
      } finally {
        await Promise.all([mailbox.close(), direct.close()])
      }
    })

    it('to what a tap sends back fails it: tried again, it is there', async () => {
      const home = await openMailbox(`${url()}#home`)
      const tap = kafkaTap({ url: url(), topics: /none/, keep: async () => {}, timeoutMs: 1000 })
      const letter = {
        body: Buffer.from('back'),
        contentType: 'text/plain',
        headers: {},
        messageId: 'dead:0:0',
        origin: { topic: 'redrive.home', partition: '0' },
      }
      try {
        await tap.returnToSource(letter, 1)
        await lost(proxy, () => tap.returnToSource(letter, 2))
        await until('it was sent back', () => isDone(tap.returnToSource(letter, 2)), 20)
        const generations = (await drained(home)).map(({ headers }) => headers['redrive-replays'])
        expect(generations.filter((one) => one === '1')).toHaveLength(1)
        expect(generations.filter((one) => one === '2').length).toBeGreaterThanOrEqual(1)
      } finally {
        await Promise.all([tap.stop(), home.close()])
      }
    })
  },
)

/** Nothing that the server says arrives, and then all connections are new ones. */
async function lost(proxy: Proxy, act: () => Promise<unknown>): Promise<void> {
  await proxy.set('drop replies')
  await expect(act()).rejects.toMatchObject(unavailable)
  await proxy.seen('reply dropped')
  await proxy.set('reset')
  await proxy.set('pass')
}

const isDone = (act: Promise<unknown>): Promise<boolean> =>
  act.then(
    () => true,
    (error: unknown) => {
      expect(error).toMatchObject(unavailable)
      return false
    },
  )

async function doubted(mailbox: Mailbox, direct: Mailbox, proxy: Proxy): Promise<void> {
  // From here on, the connection stands and everything that it needs is there.
  await mailbox.send('before')
  await lost(proxy, () => mailbox.send('doubt', { id: 'doubt' }))
  await until('it was sent', () => isDone(mailbox.send('doubt', { id: 'doubt' })), 20)
  await mailbox.send('after')
  const values = (await drained(direct)).map((message) => message.value())
  for (const one of ['before', 'after'])
    expect(values.filter((value) => value === one)).toEqual([one])
  const { deduplicates } = direct.powers
  const copies = values.filter((value) => value === 'doubt').length
  expect(copies).toBeGreaterThanOrEqual(1)
  if (deduplicates) expect(copies).toBe(1)
}

async function drained(mailbox: Mailbox): Promise<Message[]> {
  const all: Message[] = []
  while ((await mailbox.approximateCount()) > 0) {
    const some = await mailbox.receive({ max: 10, waitSeconds: 20 })
    await Promise.all(some.map((message) => message.acknowledge()))
    all.push(...some)
  }
  return all
}
