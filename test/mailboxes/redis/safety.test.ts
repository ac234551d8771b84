import { readFile } from 'node:fs/promises'
import { afterEach, describe, expect, it } from 'vitest'
import type { PrivateServer } from '../../servers/control.ts'
import { lacksPrivate, privateRedis } from '../../servers/private.ts'
import { ask, expectSound, openedMailboxes } from './redis-bench.ts'

describe.skipIf(lacksPrivate.redis() !== undefined)('the Redis server of a mailbox', () => {
  const servers: PrivateServer[] = []
  const mailboxes = openedMailboxes()

  afterEach(async () => {
    await mailboxes.close()
    await Promise.all(servers.splice(0).map((server) => server.remove()))
  })

  const start = async (...args: Parameters<typeof privateRedis>): Promise<PrivateServer> => {
    const server = await privateRedis(...args)
    servers.push(server)
    return server
  }

  it.each([
    ['that evicts', { 'maxmemory-policy': 'allkeys-lru' }, /noeviction/],
    ['without an append-only file', { appendonly: 'no' }, /appendonly/],
    ['that never syncs', { appendfsync: 'no' }, /appendfsync/],
  ])('is rejected if %s, unless allowVolatile is set', async (_what, settings, why) => {
    const { url } = await start(settings)
    await expect(mailboxes.open({ url })).rejects.toMatchObject({
      code: 'STORE_UNSAFE',
      message: expect.stringMatching(why),
    })
    const mailbox = await mailboxes.open({ url, allowVolatile: true })
    await mailbox.send('x')
    expect(mailbox.powers.durable).toBe(!('appendonly' in settings))
    expect((await mailbox.health()).problems).toEqual([])
  })

  it('is rejected in any case if it is a replica', async () => {
    const master = await start()
    const { url } = await start({}, master)
    await expect(mailboxes.open({ url, allowVolatile: true })).rejects.toMatchObject({
      code: 'STORE_UNSAFE',
    })
  })

  it('reports in health that it became unsafe after the mailbox was opened', async () => {
    const { url } = await start()
    const mailbox = await mailboxes.open({ url })
    expect((await mailbox.health()).ok).toBe(true)
    await ask(url, 'CONFIG', 'SET', 'maxmemory-policy', 'allkeys-lru')
    expect((await mailbox.health()).problems.join()).toMatch(/noeviction/)
  })

  it('is checked only by INFO where CONFIG is forbidden', async () => {
    const { url } = await start()
    await ask(url, 'ACL', 'SETUSER', 'app', 'on', '>pw', '~*', '&*', '+@all', '-config')
    const mailbox = await mailboxes.open({ url: url.replace('//', '//app:pw@') })
    const { ok, checks } = await mailbox.health()
    expect(ok).toBe(true)
    expect(checks['appendfsync']).toMatch(/unknown/)
  })

  it('needs no more permissions than its docs page lists', async () => {
    const { url } = await start()
    const page = await readFile('docs/operating/mailboxes/redis.md', 'utf8')
    const rights = /`(\+@hash [^`]*)`/.exec(page)![1]!.split(/\s+/)
    const user = ['SETUSER', 'app', 'on', '>pw', '~{redrive/m}*', '&{redrive/m}:wake']
    await ask(url, 'ACL', ...user, ...rights)
    const mailbox = await mailboxes.open({ url: url.replace('//', '//app:pw@') })
    const waiting = mailbox.receive({ waitSeconds: 60 })
    await mailbox.send('x')
    const [message] = await waiting
    await message!.extend(60)
    await message!.nack()
    expect((await mailbox.browse!()).messages).toHaveLength(1)
    expect((await mailbox.health()).ok).toBe(true)
    expect(await mailbox.purge()).toBe(1)
  })

  it('rejects a wrong password, and the error does not contain it', async () => {
    const { url } = await start()
    await ask(url, 'ACL', 'SETUSER', 'app', 'on', '>pw', '~*', '+@all')
    const mailbox = mailboxes.make({ url: url.replace('//', '//app:hush@') })
    const failure = await mailbox.open().catch((error: unknown) => error)
    expect(failure).toMatchObject({ code: 'MAILBOX_UNAVAILABLE' })
    expect((failure as Error).message).not.toMatch(/hush/)
  })

  it('rejects new messages when its memory is full, and lets existing ones be settled', async () => {
    const { url } = await start()
    const mailbox = await mailboxes.open({ url })
    for (const body of ['a', 'b', 'c', 'd']) await mailbox.send(body)
    await mailbox.receive({ visibilitySeconds: 0 })
    await ask(url, 'CONFIG', 'SET', 'maxmemory', '1')
    await expect(mailbox.send('x')).rejects.toMatchObject({
      code: 'MAILBOX_UNAVAILABLE',
      message: expect.stringMatching(/maxmemory/),
    })
    const [b, c] = await mailbox.receive({ max: 2 })
    await b!.extend(60)
    await b!.acknowledge()
    await c!.nack()
    expect(await expectSound(url, '{redrive/m}')).toBe(3)
    expect(await mailbox.purge()).toBe(3)
  })

  it('acknowledges with waitReplicas only writes that a replica has', async () => {
    const master = await start()
    const replica = await start({}, master)
    const { url } = master
    const mailbox = await mailboxes.open({ url, waitReplicas: 1, timeoutMs: 1000 })
    // The replica may still be on its way to its first copy.
    for (;;) if ((await mailbox.send('x', { id: 'x' }).catch(() => null)) !== null) break
    await replica.kill9()
    await expect(mailbox.send('y', { id: 'y' })).rejects.toMatchObject({
      code: 'MAILBOX_UNAVAILABLE',
      message: expect.stringMatching(/replicas confirmed the write/),
    })
    await replica.start()
    for (;;) if ((await mailbox.send('y', { id: 'y' }).catch(() => null)) !== null) break
    expect(await expectSound(url, '{redrive/m}')).toBe(2)
  })

  it('is rejected when a newer Redrive has changed the keys', async () => {
    const { url } = await start()
    await ask(url, 'HSET', '{redrive/m}:meta', 'schema', '99')
    await expect(mailboxes.open({ url })).rejects.toMatchObject({ code: 'STORE_UNSAFE' })
  })
})
