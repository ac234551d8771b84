import { describe, expect, it } from 'vitest'
import type { Client } from '../../src/api/client.ts'
import { withServerInEachTest, type TestServer } from './a-server.ts'

let server: TestServer
let mia: Client

withServerInEachTest(async (started) => {
  server = started
  mia = await server.client()
})

const filter = {
  queue: 'charge-card',
  state: ['parked', 'exhausted'] as ('parked' | 'exhausted')[],
}
const notFound = { problem: { status: 404, code: 'VIEW_NOT_FOUND' } }
const forbidden = { problem: { status: 403, code: 'FORBIDDEN' } }

describe('saved views', () => {
  it('are created, listed by name, replaced and removed', async () => {
    const second = await mia.createView({
      name: 'to review',
      filter,
      order: 'oldest',
      columns: ['queue', 'failure.message', 'metadata.order-id'],
    })
    expect(second).toMatchObject({ name: 'to review', filter, owner: 'mia', shared: false })
    const first = await mia.createView({ name: 'all', filter: {} })
    expect(await mia.listViews()).toEqual([first, second])
    await server.clock.advance(1000)
    const renamed = await mia.replaceView({ id: first.id, name: 'everything', filter: {} })
    expect(renamed).toMatchObject({ name: 'everything', version: 2, createdAt: first.createdAt })
    expect(renamed.changedAt > first.changedAt).toBe(true)
    expect(await mia.removeView({ id: second.id })).toEqual(second)
    expect(await mia.listViews()).toEqual([renamed])
  })

  it('reject a filter, a column and a key that do not exist, by name', async () => {
    const create = (view: object): Promise<unknown> => mia.createView(view as never)
    await expect(create({ name: 'x', filter: { stat: 'parked' } })).rejects.toThrow('stat')
    await expect(create({ name: 'x', filter: {}, columns: ['a b'] })).rejects.toThrow('columns')
    await expect(create({ name: 'x', filter: {}, owner: 'bob' })).rejects.toThrow('owner')
    await expect(create({ name: ' ', filter: {} })).rejects.toThrow('name')
  })

  it('are private unless they are shared', async () => {
    const bob = await server.client({ name: 'bob', role: 'operator' })
    const own = await mia.createView({ name: 'own', filter })
    const shared = await mia.createView({ name: 'shared', filter, shared: true })
    expect(await bob.listViews()).toEqual([shared])
    await expect(bob.replaceView({ id: own.id, name: 'x', filter })).rejects.toMatchObject(notFound)
    await expect(bob.removeView({ id: shared.id })).rejects.toMatchObject(forbidden)
    const admin = await server.client({ name: 'eve' })
    await expect(admin.removeView({ id: own.id })).rejects.toMatchObject(notFound)
    expect(await admin.removeView({ id: shared.id })).toEqual(shared)
  })

  it('show callers with a scope only what names nothing outside of it', async () => {
    await mia.createView({ name: 'all', filter: { state: 'parked' }, shared: true })
    await mia.createView({ name: 'cards', filter, shared: true })
    await mia.createView({ name: 'both', filter: { queue: ['charge-card', 'mail'] }, shared: true })
    await mia.createView({ name: 'acme', filter: { tenant: 'acme' }, shared: true })
    const names = async (scope: object): Promise<string[]> =>
      (await (await server.client({ name: 'bob', ...scope })).listViews()).map(({ name }) => name)
    expect(await names({ queues: ['charge-card'] })).toEqual(['acme', 'all', 'cards'])
    expect(await names({ queues: ['mail'] })).toEqual(['acme', 'all'])
    expect(await names({ tenants: ['umbrella'] })).toEqual(['all', 'both', 'cards'])
  })

  it('hide values of content, and do not let them be saved, without payload:read', async () => {
    const view = { name: 'by text', filter: { queue: 'a', text: '4111' }, shared: true }
    await mia.createView(view)
    const viewer = await server.client({ name: 'bob', role: 'viewer' })
    const [seen] = await viewer.listViews()
    expect(seen).toMatchObject({ filter: { queue: 'a' }, hidden: true })
    expect(JSON.stringify(seen)).not.toContain('4111')
    await expect(viewer.createView(view)).rejects.toMatchObject(forbidden)
  })

  it('change only if they still have the version of If-Match', async () => {
    const { id, version } = await mia.createView({ name: 'one', filter })
    const failed = { problem: { status: 412, code: 'VERSION_CONFLICT' } }
    const replace = (name: string): Promise<unknown> =>
      mia.replaceView({ id, name, filter }, { ifVersion: version })
    await replace('two')
    await expect(replace('three')).rejects.toMatchObject(failed)
    await expect(mia.removeView({ id }, { ifVersion: 1 })).rejects.toMatchObject(failed)
    expect(await mia.listViews()).toMatchObject([{ name: 'two' }])
    await mia.removeView({ id }, { ifVersion: 2 })
  })

  it('are limited for each owner', async () => {
    for (let n = 0; n < 100; n++) await mia.createView({ name: `view ${n}`, filter: {} })
    await expect(mia.createView({ name: 'one more', filter: {} })).rejects.toThrow('limit is 100')
    const bob = await server.client({ name: 'bob' })
    expect(await bob.createView({ name: 'first', filter: {} })).toMatchObject({ owner: 'bob' })
  })
})
