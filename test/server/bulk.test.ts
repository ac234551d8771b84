import { describe, expect, it } from 'vitest'
import { filterActionNames } from '../../src/letter/bulk-action.ts'
import { permissionOfAction, permissions } from '../../src/api/permissions.ts'
import type { NewToken } from '../../src/server/tokens.ts'
import { withServerInEachTest, type TestServer } from './a-server.ts'

let server: TestServer

withServerInEachTest((started) => (server = started), { approval: { above: 2 } })

async function capture(queue = 'charge-card', tenant = 'acme'): Promise<string> {
  const error = new Error('the gateway said no to 4111')
  const { id } = await server.dlq.enqueue({ type: queue, payload: { card: '4111' } }, error, {
    tenant,
    tags: ['vip'],
  })
  return id
}

const forbidden = { problem: { status: 403, code: 'FORBIDDEN' } }
const notFound = { problem: { status: 404, code: 'ACTION_NOT_FOUND' } }

/** An input that makes the plan valid. */
const inputs: { [action: string]: object } = {
  replay: { to: 'elsewhere' },
  tag: { addTags: ['later'] },
  priority: { priority: 'low' },
  edit: { patch: [{ op: 'replace', path: '/card', value: '0' }] },
}

describe('bulk actions over HTTP', () => {
  it('plans, runs, pauses, resumes and cancels an action', async () => {
    const client = await server.client({ name: 'bob' })
    const ids = [await capture(), await capture()]
    const filter = { queue: 'charge-card', tag: 'vip' }
    const plan = await client.planBulkAction({ action: 'park', filter, rate: 10, canary: true })
    expect(plan).toMatchObject({ state: 'planned', count: 2, by: 'bob', filter })
    const { id } = plan
    expect((await client.runBulkAction({ id })).state).toBe('running')
    expect((await client.pauseBulkAction({ id })).state).toBe('paused')
    expect((await client.resumeBulkAction({ id })).state).toBe('running')
    const first = await client.getBulkResults({ id, limit: 1, outcome: ['pending', 'failed'] })
    const second = await client.getBulkResults({ id, limit: 1, cursor: first.cursor })
    expect([...first.items, ...second.items].map((result) => result.id)).toEqual(ids)
    expect((await client.cancelBulkAction({ id })).state).toBe('cancelled')
    expect((await client.getBulkAction({ id })).state).toBe('cancelled')
    expect((await client.listBulkActions()).map((action) => action.id)).toEqual([id])
    expect(await client.listBulkActions({ limit: 0 })).toEqual([])
    await expect(client.runBulkAction({ id })).rejects.toMatchObject({ problem: { status: 409 } })
  })

  it('acts on the letters when a worker runs, and reports each', async () => {
    const client = await server.client()
    const letterId = await capture()
    const filter = { ids: [letterId] }
    const { id } = await client.planBulkAction({ action: 'archive', filter })
    await client.runBulkAction({ id })
    server.dlq.start()
    await server.clock.advance(60_000)
    await expect.poll(async () => (await client.getBulkAction({ id })).state).toBe('finished')
    expect((await client.getBulkResults({ id })).items).toEqual([
      { id: letterId, outcome: 'succeeded' },
    ])
    expect((await client.getLetter({ id: letterId })).state).toBe('archived')
  })

  it('undoes an edit', async () => {
    const client = await server.client({ name: 'bob' })
    const letterId = await capture()
    const filter = { ids: [letterId] }
    const edit = { action: 'edit' as const, filter, reason: 'mask', ...inputs['edit'] }
    const { id } = await client.planBulkAction(edit)
    const why = { id, reason: 'the patch was wrong' }
    await expect(client.planBulkUndo(why)).rejects.toMatchObject({ problem: { status: 400 } })
    await client.runBulkAction({ id })
    server.dlq.start()
    await server.clock.advance(60_000)
    await expect.poll(async () => (await client.getBulkAction({ id })).state).toBe('finished')
    const plan = await client.planBulkUndo(why)
    expect(plan).toMatchObject({ action: 'undo', by: 'bob', count: 1, input: { undoes: id } })
  })

  it('requires another person for a large plan', async () => {
    const [mia, bob] = [await server.client({ name: 'mia' }), await server.client({ name: 'bob' })]
    for (let letters = 0; letters < 3; letters += 1) await capture()
    const { id } = await mia.planBulkAction({ action: 'retry', filter: {} })
    const required = { problem: { status: 403, code: 'APPROVAL_REQUIRED' } }
    await expect(mia.runBulkAction({ id })).rejects.toMatchObject(required)
    await expect(mia.approveBulkAction({ id })).rejects.toMatchObject(required)
    expect((await bob.approveBulkAction({ id })).approval).toMatchObject({ by: 'bob' })
    expect((await mia.runBulkAction({ id })).state).toBe('running')
  })

  it('lets another person reject a large plan, which then cannot be run', async () => {
    const [mia, bob] = [await server.client({ name: 'mia' }), await server.client({ name: 'bob' })]
    for (let letters = 0; letters < 3; letters += 1) await capture()
    const { id } = await mia.planBulkAction({ action: 'retry', filter: {} })
    expect((await bob.cancelBulkAction({ id })).state).toBe('cancelled')
    const illegal = { problem: { status: 409, code: 'ILLEGAL_MOVE' } }
    await expect(mia.runBulkAction({ id })).rejects.toMatchObject(illegal)
    await expect(bob.approveBulkAction({ id })).rejects.toMatchObject(illegal)
    const { items } = await server.dlq.audit({ what: id, action: 'bulk-cancel', outcome: 'done' })
    expect(items).toMatchObject([{ actor: 'bob', via: 'http', before: { state: 'planned' } }])
  })

  it('lets only a person with the permission and the scope of a plan approve it', async () => {
    const inScope = { queues: ['charge-card'] }
    const mia = await server.client({ name: 'mia', ...inScope })
    for (let letters = 0; letters < 3; letters += 1) await capture()
    const { id } = await mia.planBulkAction({ action: 'retry', filter: {} })
    const approveAs = async (token: Partial<NewToken>): Promise<unknown> =>
      (await server.client(token)).approveBulkAction({ id })
    await expect(approveAs({ name: 'bob', queues: ['other'] })).rejects.toMatchObject(notFound)
    await expect(approveAs({ name: 'bob', tenants: ['acme'] })).rejects.toMatchObject(notFound)
    await expect(approveAs({ name: 'bob', role: 'viewer' })).rejects.toMatchObject(forbidden)
    // Another token of the same person is still the same person.
    const required = { problem: { status: 403, code: 'APPROVAL_REQUIRED' } }
    await expect(approveAs({ name: 'mia', role: 'admin' })).rejects.toMatchObject(required)
    expect(await approveAs({ name: 'bob', ...inScope })).toMatchObject({ approval: { by: 'bob' } })
    const { items } = await server.dlq.audit({ what: id, action: 'bulk-approve' })
    expect(items.map(({ actor, outcome }) => `${actor} ${outcome}`).toReversed()).toEqual([
      'mia started',
      'mia denied',
      'bob started',
      'bob done',
    ])
  })

  it.each(filterActionNames)('requires the permission of the action %s', async (action) => {
    const required = permissionOfAction[action]
    const others = permissions.filter((one) => one !== required)
    const [only, allBut] = [
      await server.client({ permissions: [required] }),
      await server.client({ permissions: others }),
    ]
    const letterId = await capture()
    if (action === 'restore') await server.dlq.archive(letterId)
    const input = { action, filter: { ids: [letterId] }, reason: 'a test', ...inputs[action] }
    const { id } = await only.planBulkAction(input)
    await expect(allBut.planBulkAction(input)).rejects.toMatchObject(forbidden)
    for (const call of ['approve', 'run', 'pause', 'resume', 'cancel'] as const)
      await expect(allBut[`${call}BulkAction`]({ id })).rejects.toMatchObject(forbidden)
    for (const call of ['run', 'pause', 'resume', 'cancel'] as const)
      await only[`${call}BulkAction`]({ id })
  })

  it('bounds plans by the scope, and hides other actions', async () => {
    const client = await server.client({ queues: ['send-mail'], tenants: ['acme'] })
    const mine = await capture('send-mail')
    await capture('charge-card')
    await capture('send-mail', 'umbrella')
    const plan = await client.planBulkAction({ action: 'retry', filter: {} })
    expect(plan).toMatchObject({ count: 1, filter: { queue: ['send-mail'], tenant: 'acme' } })
    expect(plan.sample.map(({ id }) => id)).toEqual([mine])
    const admin = await server.client({ name: 'root' })
    const wide = await admin.planBulkAction({ action: 'retry', filter: { tenant: 'acme' } })
    expect((await client.listBulkActions({ limit: 1 })).map(({ id }) => id)).toEqual([plan.id])
    const { id } = wide
    await expect(client.getBulkAction({ id })).rejects.toMatchObject(notFound)
    await expect(client.getBulkResults({ id })).rejects.toMatchObject(notFound)
    await expect(client.cancelBulkAction({ id })).rejects.toMatchObject(notFound)
    expect((await client.cancelBulkAction({ id: plan.id })).state).toBe('cancelled')
  })

  it('shows no content to a caller without payload:read', async () => {
    const admin = await server.client({ name: 'root' })
    const letterId = await capture()
    const edit = { action: 'edit', filter: { text: '4111' }, reason: 'mask 4111' } as const
    const replace = [{ op: 'replace', path: '/card', value: '0' }] as const
    const { preview } = await admin.planBulkAction({ ...edit, patch: [...replace] })
    expect(JSON.stringify(preview)).toContain('4111')
    const test = [{ op: 'test', path: '/card', value: 'not 4111' }] as const
    const { id } = await admin.planBulkAction({ ...edit, patch: [...test] })
    await admin.runBulkAction({ id })
    server.dlq.start()
    await server.clock.advance(60_000)
    await expect.poll(async () => (await admin.getBulkAction({ id })).state).toBe('finished')
    const [result] = (await admin.getBulkResults({ id })).items
    expect(result).toMatchObject({ id: letterId, outcome: 'failed' })
    expect(result?.error).toBeDefined()
    const viewer = await server.client({ role: 'viewer' })
    const shown = [await viewer.getBulkAction({ id }), await viewer.listBulkActions()]
    expect(JSON.stringify(shown)).not.toMatch(/4111/)
    expect((await viewer.getBulkResults({ id })).items).toEqual([
      { id: letterId, outcome: 'failed', hidden: true },
    ])
    const editor = await server.client({ permissions: ['payload:edit', 'letter:read'] })
    await expect(
      editor.planBulkAction({ action: 'edit', filter: { text: 'x' }, reason: 'x', patch: [] }),
    ).rejects.toMatchObject(forbidden)
  })
})
