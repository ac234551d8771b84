import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import type { Mailbox } from '../../../src/mailbox.ts'
import { createProxy } from '../../faults/proxy.ts'
import type { PrivateServer } from '../../servers/control.ts'
import { lacksPrivate, privateRedis } from '../../servers/private.ts'
import { ask, expectSound, openedMailboxes } from './redis-bench.ts'

const unavailable = { code: 'MAILBOX_UNAVAILABLE' }

describe.skipIf(lacksPrivate.redis() !== undefined)('the Redis server of a mailbox', () => {
  const mailboxes = openedMailboxes()
  let server: PrivateServer

  beforeEach(async () => {
    server = await privateRedis()
  })

  afterEach(async () => {
    server.resume()
    await mailboxes.close()
    await server.remove()
  })

  it('is reported when it is unreachable at open, and may become reachable later', async () => {
    await server.stop()
    const mailbox = mailboxes.make({ url: server.url })
    await expect(mailbox.open()).rejects.toMatchObject(unavailable)
    expect((await mailbox.health()).ok).toBe(false)
    await server.start()
    await mailbox.open()
    expect((await mailbox.health()).ok).toBe(true)
  })

  it('fails every call while it is down, and has all acknowledged messages when it is back', async () => {
    const mailbox = await mailboxes.open({ url: server.url })
    const ids = await Promise.all(Array.from({ length: 20 }, (_, n) => mailbox.send(n)))
    const [held, again] = await mailbox.receive({ max: 2, visibilitySeconds: 600 })
    await server.kill9()
    await Promise.all([
      expect(mailbox.send('x')).rejects.toMatchObject(unavailable),
      expect(mailbox.receive({ waitSeconds: 600 })).rejects.toMatchObject(unavailable),
      expect(held!.acknowledge()).rejects.toMatchObject(unavailable),
      expect(mailbox.purge()).rejects.toMatchObject(unavailable),
      expect(mailbox.approximateCount()).rejects.toMatchObject(unavailable),
    ])
    expect((await mailbox.health()).ok).toBe(false)
    await server.start()
    await held!.acknowledge()
    await again!.nack()
    const got: string[] = []
    while (got.length < 19) {
      const messages = await mailbox.receive({ max: 10, visibilitySeconds: 600 })
      got.push(...messages.map(({ id }) => id))
    }
    expect(got.toSorted()).toEqual(ids.filter((id) => id !== held!.id).toSorted())
  })

  it('times out a call that is not answered', async () => {
    const mailbox = await mailboxes.open({ url: server.url, timeoutMs: 300 })
    server.pause()
    await expect(mailbox.send('x')).rejects.toMatchObject({
      ...unavailable,
      message: expect.stringMatching(/no answer within 300 ms/),
    })
    server.resume()
    await mailbox.send('y')
  })

  it('continues when the server has lost its scripts', async () => {
    const { url } = server
    const mailbox = await mailboxes.open({ url })
    for (const body of ['a', 'b']) {
      await ask(url, 'SCRIPT', 'FLUSH')
      await mailbox.send(body)
      await ask(url, 'SCRIPT', 'FLUSH')
      const [message] = await mailbox.receive()
      await ask(url, 'SCRIPT', 'FLUSH')
      await message!.extend(60)
      await ask(url, 'SCRIPT', 'FLUSH')
      await message!.acknowledge()
    }
    expect(await mailbox.approximateCount()).toBe(0)
  })

  it('loses no acknowledged write when it is killed repeatedly under load', async () => {
    const mailbox = await mailboxes.open({ url: server.url })
    const sent: string[] = []
    const settled = new Set<string>()
    const stop = new AbortController()
    const work = async (): Promise<void> => {
      while (!stop.signal.aborted)
        try {
          sent.push(await mailbox.send('x'))
          const [message] = await mailbox.receive({ visibilitySeconds: 1 })
          if (!message) continue
          // An acknowledgement whose answer was lost may have been done.
          settled.add(message.id)
          await message.acknowledge()
        } catch {
          // The next one may succeed.
        }
    }
    const workers = Array.from({ length: 8 }, work)
    for (let round = 0; round < 3; round++) {
      const before = sent.length
      while (sent.length < before + 50) await mailbox.health()
      await server.kill9()
      await server.start()
    }
    stop.abort()
    await Promise.all(workers)
    const left = new Set<string>()
    let after: string | undefined
    do {
      const page = await mailbox.browse!({ limit: 1000, ...(after ? { after } : {}) })
      for (const { id } of page.messages) left.add(id)
      after = page.after
    } while (after !== undefined)
    expect(sent.filter((id) => !settled.has(id) && !left.has(id))).toEqual([])
    await expectSound(server.url, '{redrive/m}')
  }, 60_000)

  it('stores a message once when it is sent again after a lost answer', async () => {
    const proxy = await createProxy(server.url)
    try {
      const mailbox = await mailboxes.open({ url: proxy.through(server.url), timeoutMs: 500 })
      // The server must know the script, or it would not come to run.
      await mailbox.send('y')
      await proxy.set('drop replies')
      await expect(mailbox.send('x', { id: 'x' })).rejects.toMatchObject(unavailable)
      await proxy.set('reset')
      await proxy.set('pass')
      expect(await expectSound(server.url, '{redrive/m}')).toBe(2)
      await sendPatiently(mailbox, 'x')
      expect(await mailbox.approximateCount()).toBe(2)
    } finally {
      proxy.close()
    }
  })

  it('delivers a message again when the answer to a receive was lost', async () => {
    const proxy = await createProxy(server.url)
    try {
      const cut = await mailboxes.open({ url: proxy.through(server.url), timeoutMs: 500 })
      const mailbox = await mailboxes.open({ url: server.url })
      await mailbox.receive()
      await mailbox.send('x')
      await proxy.set('drop replies')
      await expect(cut.receive({ visibilitySeconds: 1 })).rejects.toMatchObject(unavailable)
      const [message] = await mailbox.receive({ waitSeconds: 60 })
      expect(message).toMatchObject({ deliveries: 2, failures: 0 })
    } finally {
      proxy.close()
    }
  })
})

async function sendPatiently(mailbox: Mailbox, id: string): Promise<void> {
  for (;;)
    try {
      await mailbox.send('x', { id })
      return
    } catch (error) {
      expect(error).toMatchObject(unavailable)
    }
}
