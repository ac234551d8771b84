import { describe, expect, it } from 'vitest'
import { createClient } from '../../src/api/client.ts'
import { withServerInEachTest, type TestServer } from './a-server.ts'

let server: TestServer

withServerInEachTest((started) => (server = started))

const as = (token: string) => createClient({ url: server.url, token })
const unauthenticated = { problem: { status: 401, code: 'UNAUTHENTICATED' } }
const hourMs = 3_600_000

describe('tokens over HTTP', () => {
  it('creates a token that works, lists it without its secret, and revokes it', async () => {
    const admin = await server.client({ name: 'root' })
    const expiresAt = new Date(server.clock.now() + hourMs).toISOString()
    const given = { name: 'ci', role: 'operator', queues: ['charge-card'], expiresAt } as const
    const { token, info } = await admin.createToken({ ...given, queues: ['charge-card'] })
    expect(info).toMatchObject({ ...given, createdBy: 'root' })
    expect(await as(token).getCaller()).toMatchObject({ name: 'ci', queues: ['charge-card'] })
    const listed = await admin.listTokens()
    const lastUsedAt = new Date(server.clock.now()).toISOString()
    expect(listed.find(({ id }) => id === info.id)).toEqual({ ...info, lastUsedAt })
    const secret = token.slice(token.lastIndexOf('_') + 1)
    expect(JSON.stringify(listed)).not.toContain(secret)
    expect(JSON.stringify(await server.store.records.list('token'))).not.toContain(secret)
    await admin.revokeToken({ id: info.id })
    await expect(as(token).getCaller()).rejects.toMatchObject(unauthenticated)
    await expect(admin.revokeToken({ id: info.id })).rejects.toMatchObject({
      problem: { status: 404, code: 'TOKEN_NOT_FOUND' },
    })
  })

  it('stops accepting a token when it expires', async () => {
    const admin = await server.client()
    const expiresAt = new Date(server.clock.now() + hourMs).toISOString()
    const { token, info } = await admin.createToken({ name: 'ci', role: 'viewer', expiresAt })
    await server.clock.advance(hourMs - 1)
    expect(await as(token).getCaller()).toMatchObject({ name: 'ci' })
    await server.clock.advance(1)
    await expect(as(token).getCaller()).rejects.toMatchObject(unauthenticated)
    await expect(admin.rotateToken({ id: info.id })).rejects.toMatchObject({
      problem: { status: 400, detail: expect.stringContaining('expired') as string },
    })
  })

  it('rotates a token: the old secret is valid for the overlap, and not longer', async () => {
    const admin = await server.client()
    const { token, info } = await admin.createToken({ name: 'ci', role: 'viewer' })
    const second = await admin.rotateToken({ id: info.id, overlapMs: hourMs })
    for (const one of [token, second.token])
      expect(await as(one).getCaller()).toMatchObject({ name: 'ci' })
    await server.clock.advance(hourMs)
    await expect(as(token).getCaller()).rejects.toMatchObject(unauthenticated)
    const third = await admin.rotateToken({ id: info.id })
    await expect(as(second.token).getCaller()).rejects.toMatchObject(unauthenticated)
    expect(await as(third.token).getCaller()).toMatchObject({ name: 'ci' })
    expect(third.info).not.toHaveProperty('oldSecretUntil')
  })

  it('rotates a token while requests use it', async () => {
    const admin = await server.client()
    const { token, info } = await admin.createToken({ name: 'ci', role: 'viewer' })
    const { records } = server.store
    const put = records.put.bind(records)
    let isFirst = true
    // The first write comes too late: a request has written the time of its use.
    records.put = async (...args) => {
      if (isFirst) {
        isFirst = false
        await as(token).getCaller()
      }
      return put(...args)
    }
    const { token: rotated } = await server.tokens.rotate(info.id)
    await expect(as(token).getCaller()).rejects.toMatchObject(unauthenticated)
    expect(await as(rotated).getCaller()).toMatchObject({ name: 'ci' })
  })

  it.each([
    [{ name: 'ci' }, 'either `role` or `permissions`'],
    [{ name: 'ci', role: 'viewer', permissions: ['admin'] }, 'either'],
    [{ name: 'ci', role: 'viewer', expiresAt: '2000-01-01T00:00:00.000Z' }, 'in the future'],
    [{ name: 'ci', role: 'viewer', queues: [] }, 'queues'],
    [{ name: '', role: 'viewer' }, 'name'],
    [{ name: 'ci', role: 'boss' }, 'role'],
  ])('rejects the new token %j', async (input, detail) => {
    const admin = await server.client()
    await expect(admin.createToken(input as never)).rejects.toMatchObject({
      problem: { status: 400, detail: expect.stringContaining(detail) as string },
    })
  })

  it('does not let a caller give permissions that it does not have', async () => {
    const client = await server.client({ permissions: ['admin', 'letter:read'] })
    const forbidden = {
      problem: { status: 403, detail: expect.stringContaining('payload:read') as string },
    }
    await expect(client.createToken({ name: 'x', role: 'admin' })).rejects.toMatchObject(forbidden)
    const { info } = await server.tokens.create({ name: 'root', role: 'admin', createdBy: 'x' })
    await expect(client.rotateToken({ id: info.id })).rejects.toMatchObject(forbidden)
    expect(await client.createToken({ name: 'x', role: 'viewer' })).toMatchObject({
      info: { role: 'viewer' },
    })
  })
})
