import { Client } from 'pg'
import { createClient } from 'redis'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { PrivateServer } from './control.ts'
import { lacksPrivate, privatePostgres, privateRedis } from './private.ts'

describe.skipIf(lacksPrivate.postgres())('a private PostgreSQL', () => {
  let server: PrivateServer
  beforeAll(async () => {
    server = await privatePostgres({ work_mem: '9MB' })
  }, 60_000)
  afterAll(() => server.remove())

  const connectClient = async (): Promise<Client> => {
    const client = new Client({ connectionString: server.url })
    client.on('error', () => {})
    await client.connect()
    return client
  }
  const ask = async (text: string): Promise<unknown[]> => {
    const client = await connectClient()
    try {
      return (await client.query(text)).rows
    } finally {
      await client.end()
    }
  }

  it('has the requested settings, and syncs to the disk', async () => {
    expect(await ask('show work_mem')).toEqual([{ work_mem: '9MB' }])
    expect(await ask('show fsync')).toEqual([{ fsync: 'on' }])
  })

  it('keeps committed data when killed, and restarts on the same port', async () => {
    await ask('create table kept (n int)')
    await ask('insert into kept values (7)')
    const connection = await connectClient()
    const cut = new Promise((resolve) => connection.once('end', resolve))
    await server.kill9()
    await cut
    await expect(ask('select 1')).rejects.toThrow('ECONNREFUSED')
    await server.start()
    expect(await ask('select n from kept')).toEqual([{ n: 7 }])
  })

  it.each(['fast', 'immediate'] as const)('ends its sessions when stopped: %s', async (mode) => {
    const connection = await connectClient()
    const cut = new Promise((resolve) => connection.once('end', resolve))
    await server.stop(mode)
    await cut
    await server.start()
    expect(await ask('select 1 as n')).toEqual([{ n: 1 }])
  })

  it('answers nothing while paused, not even on open connections', async () => {
    const settings = { connectionString: server.url, connectionTimeoutMillis: 300 }
    const client = new Client({ ...settings, query_timeout: 300 })
    await client.connect()
    server.pause()
    await expect(client.query('select 1')).rejects.toThrow('timeout')
    await expect(new Client(settings).connect()).rejects.toThrow('timeout')
    server.resume()
    expect(await ask('select 1 as n')).toEqual([{ n: 1 }])
    await client.end()
  })

  it('can be stopped while paused', async () => {
    server.pause()
    await server.stop()
    await server.start()
    expect(await ask('select 1 as n')).toEqual([{ n: 1 }])
  })
})

describe.skipIf(lacksPrivate.redis())('a private Redis', () => {
  let server: PrivateServer
  beforeAll(async () => {
    server = await privateRedis({ 'maxmemory-policy': 'allkeys-lru' })
  }, 60_000)
  afterAll(() => server.remove())

  const withClient = async <T>(
    { url }: PrivateServer,
    work: (client: ReturnType<typeof createClient>) => Promise<T>,
  ): Promise<T> => {
    const client = createClient({ url, socket: { reconnectStrategy: false } })
    client.on('error', () => {})
    await client.connect()
    try {
      return await work(client as ReturnType<typeof createClient>)
    } finally {
      client.destroy()
    }
  }

  it('has the requested settings, and syncs each write', async () => {
    const settings = await withClient(server, (client) =>
      client.configGet(['maxmemory-policy', 'appendfsync']),
    )
    expect(settings).toEqual({ 'maxmemory-policy': 'allkeys-lru', appendfsync: 'always' })
  })

  it('keeps acknowledged writes when killed', async () => {
    await withClient(server, (client) => client.set('kept', '7'))
    await server.kill9()
    await expect(withClient(server, (client) => client.get('kept'))).rejects.toThrow()
    await server.start()
    expect(await withClient(server, (client) => client.get('kept'))).toBe('7')
  })

  it('can have a replica with the same data', async () => {
    const replica = await privateRedis({}, server)
    try {
      await withClient(server, async (client) => {
        await client.set('followed', '8')
        expect(await client.wait(1, 20_000)).toBe(1)
      })
      expect(await withClient(replica, (client) => client.get('followed'))).toBe('8')
      await expect(withClient(replica, (client) => client.set('a', 'b'))).rejects.toThrow(
        'READONLY',
      )
    } finally {
      await replica.remove()
    }
  })
})
