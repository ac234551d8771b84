import { describe, expect, it } from 'vitest'
import { createClient } from '../../src/api/client.ts'
import { toTimestamp } from '../../src/letter/time.ts'
import { readAll, withServerInEachTest, type TestServer } from './a-server.ts'

let server: TestServer

withServerInEachTest((started) => (server = started))

async function capture(): Promise<string> {
  const failure = new Error('the gateway said no')
  return (await server.dlq.enqueue({ type: 'charge-card', payload: {} }, failure)).id
}

describe('the audit log over HTTP', () => {
  it('lists what callers did, by their names', async () => {
    const client = await server.client({ name: 'bob' })
    const id = await capture()
    await client.parkLetter({ id, note: 'look at this' })
    const { items } = await client.listAudit({ what: id, outcome: ['done', 'failed'] })
    expect(items).toMatchObject([
      { actor: 'bob', via: 'http', action: 'park', reason: 'look at this' },
    ])
  })

  it('verifies the log, and compares it with a head', async () => {
    const client = await server.client()
    const report = await client.verifyAudit()
    expect(report).toMatchObject({ ok: true, entries: 2 })
    expect(await client.verifyAudit(report.head)).toMatchObject({ ok: true })
    const other = { ...report.head, hash: 'f'.repeat(64) }
    expect(await client.verifyAudit(other)).toMatchObject({ ok: false, firstBad: 2 })
    await expect(client.verifyAudit({ seq: 1 })).rejects.toMatchObject({ problem: { status: 400 } })
  })

  it('exports the log, and prunes it in the name of the caller', async () => {
    const client = await server.client({ name: 'bob' })
    await client.parkLetter({ id: await capture(), note: 'look at this' })
    const exported = await readAll(client.exportAudit())
    expect(exported.map(({ seq }) => seq)).toEqual([1, 2, 3, 4])
    expect(exported.at(-1)).toMatchObject({ actor: 'bob', action: 'park', outcome: 'done' })
    await server.clock.advance(1)
    const before = toTimestamp(server.clock.now())
    await expect(client.pruneAudit({ before, reason: 'old' })).rejects.toMatchObject({
      problem: { status: 400 },
    })
    await server.clock.advance(2 * 86_400_000)
    expect(await client.pruneAudit({ before, reason: 'old' })).toMatchObject({ removed: 4 })
    const { items } = await client.listAudit()
    expect(items[0]).toMatchObject({ actor: 'bob', action: 'audit-prune', reason: 'old' })
    expect(await client.verifyAudit()).toMatchObject({ ok: true })
  })

  it('leaves out what people wrote for callers that may not read content', async () => {
    const client = await server.client({ permissions: ['admin'] })
    const id = await capture()
    await server.dlq.park(id, 'card 4111', 'bob')
    const filter = { queue: 'charge-card', text: '4111' }
    await server.dlq.clear(filter, { confirm: 0, by: 'bob' })
    const { items } = await client.listAudit({ actor: 'bob' })
    expect(items[0]).toMatchObject({ action: 'clear', what: { kind: 'letters', id: '' } })
    expect(items.at(-1)).toMatchObject({ action: 'park', what: { id }, hidden: true })
    const exported = await readAll(client.exportAudit())
    expect(JSON.stringify([items, exported])).not.toContain('4111')
  })

  it('has the creation and the revocation of tokens, without their secrets', async () => {
    const { token, info } = await server.tokens.create({
      name: 'deploy',
      role: 'operator',
      createdBy: 'mia',
    })
    await server.tokens.revoke(info.id, 'bob')
    const { items } = await server.dlq.audit({ what: info.id, outcome: 'done', order: 'oldest' })
    expect(items).toMatchObject([
      { actor: 'mia', action: 'token-create', after: { name: 'deploy', role: 'operator' } },
      { actor: 'bob', action: 'token-revoke', before: { name: 'deploy', role: 'operator' } },
    ])
    expect(JSON.stringify(items)).not.toContain(token.slice(-20))
  })

  it('has the calls that were denied', async () => {
    const id = await capture()
    const viewer = await server.client({ name: 'eve', role: 'viewer' })
    const scoped = await server.client({ name: 'bob', queues: ['send-mail'] })
    const nobody = createClient({ url: server.url })
    const calls: [call: () => Promise<unknown>, status: number][] = [
      [() => viewer.removeLetter({ id }), 403],
      [() => viewer.listAudit(), 403],
      [() => scoped.retryLetter({ id }), 404],
      [() => scoped.pauseQueue({ queue: 'charge-card', reason: 'x' }), 403],
      [() => nobody.listLetters(), 401],
    ]
    for (const [call, status] of calls)
      await expect(call()).rejects.toMatchObject({ problem: { status } })
    const { items } = await server.dlq.audit({ outcome: 'denied' })
    const shown = items.map(({ actor, via, endpoint, what, code }) =>
      [actor, via, endpoint, what.kind, what.id, code].join(' '),
    )
    expect(shown.toSorted()).toEqual(
      [
        `eve http removeLetter letter ${id} FORBIDDEN`,
        'eve http listAudit endpoint listAudit FORBIDDEN',
        `bob http retryLetter letter ${id} FORBIDDEN`,
        'bob http pauseQueue queue charge-card FORBIDDEN',
        'unauthenticated http listLetters endpoint listLetters UNAUTHENTICATED',
      ].toSorted(),
    )
  })
})
