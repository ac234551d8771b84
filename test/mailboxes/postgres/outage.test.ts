import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import type { Mailbox } from '../../../src/mailbox.ts'
import { postgresMailbox } from '../../../src/mailboxes/postgres/postgres.ts'
import { fakeClock } from '../../../src/testing/index.ts'
import { createProxy, type Proxy } from '../../faults/proxy.ts'
import type { PrivateServer } from '../../servers/control.ts'
import { postgresPlace, type Place } from '../../servers/places.ts'
import { lacksPrivate, privatePostgres } from '../../servers/private.ts'
import { backend } from '../../servers/servers.ts'

const unavailable = { code: 'MAILBOX_UNAVAILABLE' }

describe.skipIf(lacksPrivate.postgres())(
  'postgresMailbox during an outage of its server',
  { timeout: 60_000 },
  () => {
    let server: PrivateServer
    let mailbox: Mailbox

    beforeAll(async () => {
      server = await privatePostgres()
      mailbox = postgresMailbox({ url: server.url, name: 'work' })
      await mailbox.open()
    }, 60_000)
    afterAll(async () => {
      await mailbox.close()
      await server.remove()
    })

    it('reports an outage, and continues once the server is back', async () => {
      await mailbox.send('kept')
      const [held] = await mailbox.receive()
      await server.kill9()
      await expect(mailbox.send('lost')).rejects.toMatchObject(unavailable)
      await expect(mailbox.receive({ waitSeconds: 60 })).rejects.toMatchObject(unavailable)
      await expect(held!.acknowledge()).rejects.toMatchObject(unavailable)
      await expect(mailbox.approximateCount()).rejects.toMatchObject(unavailable)
      expect(await mailbox.health()).toMatchObject({ ok: false })
      await server.start()
      await held!.acknowledge()
      expect(await mailbox.approximateCount()).toBe(0)
    })

    it('times out on a server that does not answer', async () => {
      await mailbox.send('there')
      server.pause()
      try {
        const calls = [
          mailbox.send('new'),
          mailbox.receive({ waitSeconds: 60 }),
          mailbox.approximateCount(),
        ]
        for (const outcome of await Promise.allSettled(calls))
          expect(outcome).toMatchObject({ status: 'rejected', reason: unavailable })
      } finally {
        server.resume()
      }
      expect(await mailbox.purge()).toBeGreaterThan(0)
    })

    it('loses no sent message when the server is killed under load', async () => {
      const sent = new Set<string>()
      const seen = new Set<string>()
      const stop = { sending: new AbortController(), working: new AbortController() }
      const reached = (count: number): Promise<void> =>
        new Promise((resolve) => {
          const check = (): void => (sent.size >= count ? resolve() : void setImmediate(check))
          check()
        })
      const send = async (lane: number): Promise<void> => {
        for (let n = 0; !stop.sending.signal.aborted; n++)
          try {
            sent.add(await mailbox.send(n, { id: `${lane}:${n}` }))
          } catch (error) {
            expect(error).toMatchObject(unavailable)
          }
      }
      const work = async (): Promise<void> => {
        while (!stop.working.signal.aborted)
          try {
            const options = { max: 10, visibilitySeconds: 2, waitSeconds: 3 }
            const batch = await mailbox.receive(options)
            for (const { id } of batch) seen.add(id)
            for (const message of batch) await message.acknowledge()
          } catch (error) {
            expect(['MAILBOX_UNAVAILABLE', 'RECEIPT_EXPIRED']).toContain(
              (error as { code: string }).code,
            )
          }
      }
      const senders = [0, 1, 2].map(send)
      const workers = [0, 1, 2].map(work)
      await reached(300)
      await server.kill9()
      await server.start()
      await reached(sent.size + 300)
      await server.stop('immediate')
      await server.start()
      await reached(sent.size + 300)
      stop.sending.abort()
      await Promise.all(senders)
      while ((await mailbox.approximateCount().catch(() => 1)) > 0)
        await new Promise((resolve) => setImmediate(resolve))
      stop.working.abort()
      await Promise.all(workers)
      expect([...sent].filter((id) => !seen.has(id))).toEqual([])
    })
  },
)

const postgres = backend('postgres')

describe.skipIf(postgres.missing)('postgresMailbox that loses a connection', () => {
  let place: Place
  let proxy: Proxy
  let direct: Mailbox
  let mailbox: Mailbox

  /**
   * One connection and a fake clock: only the calls of the test go through the proxy.
   */
  beforeEach(async () => {
    place = postgresPlace(postgres.url)
    proxy = await createProxy(postgres.url)
    const options = { name: 'work', schema: place.name }
    direct = postgresMailbox({ ...options, url: postgres.url })
    const url = proxy.through(postgres.url)
    mailbox = postgresMailbox({ ...options, url, poolSize: 1, clock: fakeClock() })
    await direct.open()
    await mailbox.open()
    // The first poll also sweeps; later ones do not.
    expect(await mailbox.receive()).toEqual([])
    expect(await mailbox.approximateCount()).toBe(0)
  })
  afterEach(async () => {
    await Promise.all([mailbox.close(), direct.close()])
    proxy.close()
    await place.clear()
  })

  it.each(['before', 'after'] as const)(
    'stores a message once when the connection of a send is cut %s the commit',
    async (when) => {
      proxy.cutAt('INSERT', when)
      await mailbox.send('once', { id: 'mine' })
      await proxy.seen('cut')
      expect(await direct.approximateCount()).toBe(1)
      await mailbox.send('again', { id: 'mine' })
      expect(await direct.approximateCount()).toBe(1)
    },
  )

  it('repeats a send once for each connection of the pool', async () => {
    const url = proxy.through(postgres.url)
    const two = postgresMailbox({
      name: 'work',
      schema: place.name,
      url,
      poolSize: 2,
      clock: fakeClock(),
    })
    await two.open()
    proxy.cutAt('INSERT', 'before')
    void proxy.seen('cut').then(() => proxy.cutAt('INSERT', 'after'))
    await two.send('once', { id: 'mine' })
    await proxy.seen('cut', 2)
    expect(await direct.approximateCount()).toBe(1)
    await two.close()
  })

  it.each(['before', 'after'] as const)(
    'rejects an acknowledge that is cut %s the commit, and accepts it when repeated',
    async (when) => {
      await direct.send('work')
      const [message] = await mailbox.receive()
      proxy.cutAt('SELECT', when)
      await expect(message!.acknowledge()).rejects.toMatchObject(unavailable)
      expect(await direct.approximateCount()).toBe(when === 'before' ? 1 : 0)
      await message!.acknowledge()
      expect(message!.finalized).toBe(true)
      expect(await direct.approximateCount()).toBe(0)
    },
  )

  it('returns a message once when a nack is repeated', async () => {
    await direct.send('work')
    const [message] = await mailbox.receive()
    proxy.cutAt('SELECT', 'after')
    await expect(message!.nack()).rejects.toMatchObject(unavailable)
    const [again] = await direct.receive()
    expect(again).toMatchObject({ deliveries: 2, failures: 1 })
    await message!.nack()
    await again!.acknowledge()
  })

  it('does not return the next delivery when a nack is repeated', async () => {
    await direct.send('work')
    const [message] = await mailbox.receive()
    proxy.cutAt('SELECT', 'after')
    await expect(message!.nack({ failed: false })).rejects.toMatchObject(unavailable)
    const [again] = await direct.receive()
    expect(again).toMatchObject({ deliveries: 1, failures: 0 })
    await message!.nack({ failed: false })
    await again!.acknowledge()
  })

  it('does not confuse an acknowledge with a nack of unknown outcome', async () => {
    await direct.send('work')
    const [message] = await mailbox.receive()
    proxy.cutAt('SELECT', 'after')
    await expect(message!.nack()).rejects.toMatchObject(unavailable)
    await expect(message!.acknowledge()).rejects.toMatchObject({ code: 'RECEIPT_EXPIRED' })
    expect(await direct.approximateCount()).toBe(1)
  })

  it('rejects a receipt that is used twice, when no answer was lost', async () => {
    await direct.send('work')
    const [message] = await mailbox.receive()
    const [first, second] = await Promise.allSettled([message!.acknowledge(), message!.nack()])
    expect([first.status, second.status]).toEqual(['fulfilled', 'rejected'])
  })

  it('delivers a message again when the answer to a receive was lost', async () => {
    await direct.send('work')
    await proxy.set('truncate')
    await expect(mailbox.receive({ visibilitySeconds: 1 })).rejects.toMatchObject(unavailable)
    const [message] = await direct.receive({ waitSeconds: 20 })
    expect(message).toMatchObject({ deliveries: 2, failures: 0 })
  })
})
