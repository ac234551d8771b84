import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { until } from '../../scripts/servers/machine.ts'
import type { Mailbox, Message } from '../../src/mailbox.ts'
import { kafkaTap } from '../../src/taps/kafka.ts'
import { openMailbox } from '../../src/connect/mailbox.ts'
import type { PrivateServer } from '../servers/control.ts'
import { lacksPrivate, privateKafka } from '../servers/private.ts'
import { mailboxKinds } from './mailbox-kinds.ts'
import { createProxy, type Proxy } from './proxy.ts'

const unavailable = { code: 'MAILBOX_UNAVAILABLE' }
const { postgres, redis, rabbitmq, nats, sqs } = mailboxKinds

describe(
  'a connection that loses the replies to sends',
  { concurrent: true, timeout: 60_000 },
  () => {
    for (const { kind, missing, begin } of [postgres, redis, rabbitmq, nats, sqs])
      it.skipIf(missing)(
        `to ${kind} leaves the outcome unknown, and sending again delivers the message`,
        async () => {
          const environment = await begin()
          const url = environment.url('doubt')
          const proxy = await createProxy(url)
          const mailbox = await openMailbox(proxy.through(url))
          const direct = await openMailbox(url)
          try {
            await expectDeliveredAfterRetry(mailbox, direct, proxy)
          } finally {
            await Promise.all([mailbox.close(), direct.close()])
            proxy.close()
            await environment.clear()
          }
        },
      )
  },
)

describe.skipIf(lacksPrivate.kafka())(
  'a connection to kafka that loses the replies',
  { timeout: 90_000 },
  () => {
    let proxy: Proxy
    let server: PrivateServer
    const url = (): string => `kafka://127.0.0.1:${proxy.port()}`

    /** The broker advertises the address of the proxy, so that all clients connect through it. */
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

    it('to a send leaves the outcome unknown, and sending again delivers the message', async () => {
      const mailbox = await openMailbox(`${url()}#doubt`)
      const direct = await openMailbox(`${url()}#doubt`)
      // A broker that has just started does not serve groups immediately.
      await until('groups were not served', () => succeeds(direct.approximateCount()), 30)
      try {
        await expectDeliveredAfterRetry(mailbox, direct, proxy)
      } finally {
        await Promise.all([mailbox.close(), direct.close()])
      }
    })

    it('to a return by a tap fails it, and trying again delivers the message', async () => {
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
        await loseReplies(proxy, () => tap.returnToSource(letter, 2))
        await until(
          'the letter was not returned',
          () => succeeds(tap.returnToSource(letter, 2)),
          20,
        )
        const generations = (await drain(home)).map(({ headers }) => headers['redrive-replays'])
        expect(generations.filter((one) => one === '1')).toHaveLength(1)
        expect(generations.filter((one) => one === '2').length).toBeGreaterThanOrEqual(1)
      } finally {
        await Promise.all([tap.stop(), home.close()])
      }
    })
  },
)

/** Runs `act` while all replies are lost, then resets all connections. */
async function loseReplies(proxy: Proxy, act: () => Promise<unknown>): Promise<void> {
  await proxy.set('drop replies')
  await expect(act()).rejects.toMatchObject(unavailable)
  await proxy.seen('reply dropped')
  await proxy.set('reset')
  await proxy.set('pass')
}

const succeeds = (act: Promise<unknown>): Promise<boolean> =>
  act.then(
    () => true,
    (error: unknown) => {
      expect(error).toMatchObject(unavailable)
      return false
    },
  )

async function expectDeliveredAfterRetry(
  mailbox: Mailbox,
  direct: Mailbox,
  proxy: Proxy,
): Promise<void> {
  // From here on, the connection is open and everything on the server exists.
  await mailbox.send('before')
  await loseReplies(proxy, () => mailbox.send('doubt', { id: 'doubt' }))
  await until(
    'the message was not sent',
    () => succeeds(mailbox.send('doubt', { id: 'doubt' })),
    20,
  )
  await mailbox.send('after')
  const values = (await drain(direct)).map((message) => message.value())
  for (const one of ['before', 'after'])
    expect(values.filter((value) => value === one)).toEqual([one])
  const { deduplicates } = direct.powers
  const copies = values.filter((value) => value === 'doubt').length
  expect(copies).toBeGreaterThanOrEqual(1)
  if (deduplicates) expect(copies).toBe(1)
}

async function drain(mailbox: Mailbox): Promise<Message[]> {
  const all: Message[] = []
  while ((await mailbox.approximateCount()) > 0) {
    const some = await mailbox.receive({ max: 10, waitSeconds: 20 })
    await Promise.all(some.map((message) => message.acknowledge()))
    all.push(...some)
  }
  return all
}
