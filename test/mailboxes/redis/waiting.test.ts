import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import type { Mailbox } from '../../../src/mailbox.ts'
import { createProxy, type Proxy } from '../../faults/proxy.ts'
import type { PrivateServer } from '../../servers/control.ts'
import { lacksPrivate, privateRedis } from '../../servers/private.ts'
import { freshName } from '../../servers/servers.ts'
import { ask, openedMailboxes } from './redis-bench.ts'

describe.skipIf(lacksPrivate.redis() !== undefined)('a waiting receiver', () => {
  const mailboxes = openedMailboxes()
  let server: PrivateServer
  let proxy: Proxy
  let name: string

  beforeAll(async () => {
    server = await privateRedis()
  })
  afterAll(() => server.remove())

  beforeEach(async () => {
    name = freshName()
    proxy = await createProxy(server.url)
  })

  afterEach(async () => {
    await mailboxes.close()
    proxy.close()
  })

  /** The receive loads the script into the server, so that later calls need one request. */
  const open = async (url = server.url): Promise<Mailbox> => {
    const mailbox = await mailboxes.open({ url, name })
    await mailbox.receive()
    return mailbox
  }

  it('that aborts before the response leaves the message undelivered and first', async () => {
    const mailbox = await open(proxy.through(server.url))
    const other = await open()
    for (const body of ['a', 'b']) await other.send(body)
    await proxy.set('hold replies')
    const leaving = new AbortController()
    const waiting = mailbox.receive({ signal: leaving.signal, visibilitySeconds: 600 })
    await proxy.seen('reply held')
    leaving.abort()
    expect(await waiting).toEqual([])
    expect((await other.health()).checks['hidden']).toBe('1')
    await proxy.set('pass')
    while ((await other.health()).checks['hidden'] !== '0');
    const [message] = await other.receive()
    expect(message!.value()).toBe('a')
    expect(message!.deliveries).toBe(1)
  })

  it('that aborts early does not change the delivery count of a message', async () => {
    const mailbox = await open(proxy.through(server.url))
    const other = await open()
    await other.send('a')
    const [first] = await other.receive()
    await first!.nack({ failed: false })
    await proxy.set('hold replies')
    const leaving = new AbortController()
    const waiting = mailbox.receive({ signal: leaving.signal, visibilitySeconds: 600 })
    await proxy.seen('reply held')
    leaving.abort()
    expect(await waiting).toEqual([])
    await proxy.set('pass')
    while ((await other.health()).checks['hidden'] !== '0');
    const [message] = await other.receive()
    expect(message).toMatchObject({ deliveries: 1, firstReceivedAt: first!.firstReceivedAt })
  })

  it('gets nothing when the mailbox closes, and messages in flight are returned', async () => {
    const mailbox = await open(proxy.through(server.url))
    const other = await open()
    await other.send('a')
    await proxy.set('hold replies')
    const waiting = mailbox.receive({ visibilitySeconds: 600, waitSeconds: 600 })
    await proxy.seen('reply held')
    const closing = mailbox.close()
    expect(await waiting).toEqual([])
    await proxy.set('pass')
    await closing
    const [message] = await other.receive()
    expect(message).toMatchObject({ deliveries: 1 })
  })

  it('gets its message although connections are reset repeatedly', async () => {
    const mailbox = await open(proxy.through(server.url))
    const other = await open()
    const receive = async (): Promise<unknown[]> => {
      try {
        return await mailbox.receive({ waitSeconds: 60, visibilitySeconds: 1 })
      } catch (error) {
        expect(error).toMatchObject({ code: 'MAILBOX_UNAVAILABLE' })
        return receive()
      }
    }
    for (let round = 0; round < 3; round++) {
      const waiting = receive()
      await proxy.seen('request passed')
      await proxy.set('reset')
      await proxy.set('pass')
      await other.send(round)
      expect(await waiting).toHaveLength(1)
    }
  })

  it('polls without notifications', async () => {
    await ask(server.url, 'ACL', 'SETUSER', 'deaf', 'on', '>pw', '~*', 'resetchannels', '+@all')
    const mailbox = await open(server.url.replace('//', '//deaf:pw@'))
    const waiting = mailbox.receive({ waitSeconds: 60 })
    await mailbox.send('a')
    expect(await waiting).toHaveLength(1)
  })
})
