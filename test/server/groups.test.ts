import { describe, expect, it } from 'vitest'
import { withServerInEachTest, type TestServer } from './a-server.ts'

let server: TestServer

withServerInEachTest((started) => (server = started))

async function capture(queue: string, code = 'EGATEWAY'): Promise<{ id: string; group: string }> {
  const error = Object.assign(new Error('refused 4111'), { code })
  const { id, fingerprint } = await server.dlq.enqueue({ type: queue, payload: {} }, error)
  return { id, group: fingerprint }
}

const notFound = { problem: { status: 404, code: 'GROUP_NOT_FOUND' } }

describe('groups over HTTP', () => {
  it('lists groups a page at a time, and reads one', async () => {
    const client = await server.client()
    const { group } = await capture('charge-card')
    await capture('charge-card')
    await capture('send-mail')
    const first = await client.listGroups({ limit: 1 })
    const second = await client.listGroups({ limit: 1, cursor: first.cursor })
    expect(first.items).toMatchObject([{ fingerprint: group, count: 2, status: 'open' }])
    expect(second.items).toMatchObject([{ queue: 'send-mail', count: 1 }])
    expect((await client.listGroups({ queue: 'send-mail' })).items).toHaveLength(1)
    expect((await client.listGroups({ status: ['ignored', 'resolved'] })).items).toEqual([])
    const detail = await client.getGroup({ fingerprint: group })
    expect(detail).toMatchObject({
      title: 'Error: refused 4111',
      queues: [{ name: 'charge-card' }],
    })
    await expect(client.getGroup({ fingerprint: 'v1-none' })).rejects.toMatchObject(notFound)
  })

  it('acts on a group in the name of the token', async () => {
    const client = await server.client({ name: 'bob' })
    const { group: fingerprint } = await capture('charge-card')
    await client.assignGroup({ fingerprint, assignee: 'mia' })
    await client.noteGroup({ fingerprint, text: 'look at the gateway' })
    const until = '2100-01-01T00:00:00.000Z'
    expect((await client.ignoreGroup({ fingerprint, until })).ignored).toMatchObject({ until })
    await client.reopenGroup({ fingerprint })
    const group = await client.resolveGroup({ fingerprint, inVersion: '1.2.3' })
    expect(group).toMatchObject({
      status: 'resolved',
      assignee: 'mia',
      notes: [{ by: 'bob', text: 'look at the gateway' }],
      resolved: { by: 'bob', inVersion: '1.2.3' },
    })
    expect(group.history.map(({ change, by }) => `${change} by ${by}`)).toEqual([
      'assign by bob',
      'note by bob',
      'ignore by bob',
      'reopen by bob',
      'resolve by bob',
    ])
    expect((await client.assignGroup({ fingerprint, assignee: null })).assignee).toBeUndefined()
  })

  it('merges and splits groups, and explains a group', async () => {
    const client = await server.client()
    const one = await capture('charge-card', 'EONE')
    const two = await capture('charge-card', 'ETWO')
    const merged = await client.mergeGroups({ fingerprint: one.group, others: [two.group] })
    expect(merged).toMatchObject({ merged: [two.group], count: 2 })
    expect(await client.explainGroup({ id: two.id })).toMatchObject({
      fingerprint: two.group,
      group: one.group,
    })
    expect(await client.splitGroup({ fingerprint: two.group })).toMatchObject({ count: 1 })
  })

  it('hides groups that have a queue outside the scope', async () => {
    const client = await server.client({ queues: ['charge-card', 'refund'] })
    const mine = await capture('charge-card')
    const other = await capture('send-mail')
    const shared = await capture('refund')
    await server.dlq.mergeGroups(shared.group, [other.group], 'mia')
    expect((await client.listGroups()).items.map((one) => one.fingerprint)).toEqual([mine.group])
    expect((await client.listGroups({ queue: 'send-mail' })).items).toEqual([])
    for (const { group: fingerprint } of [other, shared]) {
      await expect(client.getGroup({ fingerprint })).rejects.toMatchObject(notFound)
      await expect(client.resolveGroup({ fingerprint })).rejects.toMatchObject(notFound)
      await expect(client.splitGroup({ fingerprint })).rejects.toMatchObject(notFound)
      await expect(
        client.mergeGroups({ fingerprint: mine.group, others: [fingerprint] }),
      ).rejects.toMatchObject(notFound)
    }
    expect((await server.dlq.group(other.group))?.status).toBe('open')
  })

  it('refuses callers that are limited to tenants, and says what they can do', async () => {
    const client = await server.client({ tenants: ['acme'] })
    await expect(client.listGroups()).rejects.toMatchObject({
      problem: {
        status: 403,
        detail:
          'mia may not call listGroups: it is about whole queues, and the token is limited to the tenants acme; list the letters of a group with `group=FINGERPRINT` instead',
      },
    })
  })
})
