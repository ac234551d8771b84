import { describe, expect, it } from 'vitest'
import { createClient } from '../../../src/api/client.ts'
import type { QueueAccess } from '../../../src/cli/queue-access.ts'
import { RemoteLetters } from '../../../src/cli/remote/remote-letters.ts'
import { RemoteQueue } from '../../../src/cli/remote/remote-queue.ts'
import type { DeadLetter } from '../../../src/letter/letter.ts'
import { aLetter } from '../../../src/testing/index.ts'
import { readAll, withServerInEachTest, type TestServer } from '../../server/a-server.ts'

let server: TestServer
let remote: RemoteQueue
let letters: RemoteLetters

withServerInEachTest(async (started) => {
  server = started
  const client = createClient({ url: server.url, token: await server.token() })
  remote = new RemoteQueue(client, server.clock)
  letters = new RemoteLetters(client)
})

async function add(overrides: Partial<DeadLetter> = {}): Promise<DeadLetter> {
  const letter = aLetter(overrides)
  await server.store.add([letter])
  return letter
}

describe('RemoteLetters', () => {
  it('reads a letter with its payload, as the store has it', async () => {
    const letter = await add()
    expect(await letters.get(letter.id)).toEqual({
      ...letter,
      payload: { ...letter.payload, bytes: Buffer.from('{"order":1}') },
    })
    expect(await letters.get('nothing')).toBeUndefined()
  })

  it('reads the exact bytes of a payload for an edit', async () => {
    const bytes = Buffer.from('{ "big": 12345678901234567890 }')
    const letter = await add({ payload: { ...aLetter().payload, bytes, size: bytes.length } })
    const exact = await letters.getExact(letter.id)
    expect(Buffer.from(exact!.payload.bytes).toString()).toBe(bytes.toString())
    expect(await letters.getExact('nothing')).toBeUndefined()
  })

  it('finds and counts letters, by queue and state', async () => {
    const first = await add({ queue: 'a' })
    await add({ queue: 'b', state: 'parked' })
    await add({ queue: 'b', state: 'archived' })
    const { items } = await letters.find({ queue: 'a' })
    expect(items.map(({ id }) => id)).toEqual([first.id])
    expect(await letters.count({})).toBe(2)
    expect(await letters.count({ queue: 'b', state: ['parked', 'archived'] })).toBe(2)
    expect(await letters.count({ text: 'failed' })).toBeUndefined()
    expect(await letters.countQueues()).toMatchObject([
      { queue: 'a', pending: 1 },
      { queue: 'b', parked: 1, archived: 1 },
    ])
  })
})

describe('RemoteQueue', () => {
  it.each<[string, Partial<DeadLetter>, (queue: QueueAccess, id: string) => Promise<DeadLetter>]>([
    ['retry', { state: 'exhausted' }, (queue, id) => queue.retry(id)],
    ['resolve', {}, (queue, id) => queue.resolve(id)],
    ['fail', {}, (queue, id) => queue.fail(id, { message: 'again' })],
    ['park', {}, (queue, id) => queue.park(id, 'look')],
    [
      'review',
      { state: 'parked' },
      (queue, id) => queue.review(id, { decision: 'discard', by: '' }),
    ],
    ['note', {}, (queue, id) => queue.note(id, 'seen')],
    ['archive', {}, (queue, id) => queue.archive(id)],
    ['restore', { state: 'archived' }, (queue, id) => queue.restore(id)],
    [
      'edit',
      {},
      (queue, id) =>
        queue.edit(id, {
          payload: '{"order":2}',
          contentType: 'application/json',
          reason: 'fix',
          by: '',
        }),
    ],
  ])('%s changes the letter in the name of the token', async (_, overrides, act) => {
    const { id, version } = await add(overrides)
    const after = await act(remote, id)
    expect(after.history.at(-1)).toMatchObject({ actor: 'mia' })
    const stored = (await server.dlq.get(id))!
    expect(after.version).toBe(stored.version)
    expect(stored.version).toBeGreaterThan(version)
  })

  it('undoes an edit, removes a letter, and shows what changed', async () => {
    const { id } = await add()
    const contentType = 'application/json'
    await remote.edit(id, { payload: '{"order":2}', contentType, reason: 'fix', by: '' })
    expect(await remote.diff(id)).toMatchObject({ changes: [{ path: '/order' }] })
    await remote.undoEdit(id)
    expect(await remote.lineage(id)).toMatchObject([{ id }])
    expect(await remote.remove(id)).toMatchObject({ id })
    expect(await server.dlq.get(id)).toBeUndefined()
  })

  it('waits for the run of a retried letter', async () => {
    const { id } = await add({ state: 'exhausted' })
    const waiting = remote.retry(id, '', { wait: true })
    const done = waiting.then(({ state }) => state)
    await expect.poll(async () => (await server.dlq.get(id))?.state).toBe('pending')
    await server.dlq.resolve(id)
    await expect
      .poll(async () => {
        await server.clock.advance(1000)
        return Promise.race([done, Promise.resolve('waiting')])
      })
      .toBe('resolved')
  })

  it('plans, runs, pauses and cancels bulk actions, and lists them', async () => {
    const { id } = await add({ state: 'parked' })
    const plan = await remote.plan('archive', { state: 'parked' }, { by: 'x' })
    expect(plan).toMatchObject({ count: 1, by: 'mia', state: 'planned' })
    expect(await remote.run(plan.id)).toMatchObject({ state: 'running' })
    expect(await remote.pause(plan.id)).toMatchObject({ state: 'paused' })
    expect(await remote.resume(plan.id)).toMatchObject({ state: 'running' })
    expect(await remote.cancel(plan.id)).toMatchObject({ state: 'cancelled' })
    expect(await remote.bulkAction(plan.id)).toMatchObject({ id: plan.id })
    expect(await remote.bulkActions()).toMatchObject([{ id: plan.id }])
    expect((await remote.results(plan.id)).items).toMatchObject([{ id }])
  })

  it('lists groups and acts on them', async () => {
    const { fingerprint, id } = await add()
    expect((await remote.groups({ limit: 1000 })).items).toMatchObject([{ fingerprint }])
    expect(await remote.group('nothing')).toBeUndefined()
    expect(await remote.resolveGroup(fingerprint, '')).toMatchObject({ status: 'resolved' })
    expect(await remote.reopenGroup(fingerprint)).toMatchObject({ status: 'open' })
    expect(await remote.ignoreGroup(fingerprint, '')).toMatchObject({ status: 'ignored' })
    expect(await remote.assignGroup(fingerprint, '', 'leo')).toMatchObject({ assignee: 'leo' })
    expect(await remote.noteGroup(fingerprint, '', 'hm')).toMatchObject({
      notes: [{ by: 'mia', text: 'hm' }],
    })
    expect(await remote.explainGroup(id)).toMatchObject({ fingerprint })
  })

  it('pauses and resumes queues, and reports', async () => {
    await add({ queue: 'a' })
    expect(await remote.pauseQueue('a', '', 'down')).toMatchObject({ by: 'mia', reason: 'down' })
    expect(await remote.pausedQueues()).toMatchObject([{ queue: 'a' }])
    expect(await remote.resumeQueue('a')).toBe(true)
    expect(await remote.resumeQueue('a')).toBe(false)
    expect((await remote.queues()).items).toMatchObject([{ queue: 'a', count: 1 }])
    expect(await remote.stats()).toMatchObject({ size: 1 })
    expect(await remote.health()).toMatchObject({ ok: true })
    expect(await remote.metrics()).toHaveProperty('successRate')
    expect(await remote.workers()).toEqual([])
    expect(await remote.backtest({ maxRetries: 5 })).toMatchObject({ letters: 1 })
    expect(await remote.alerts()).toEqual([])
    expect(await remote.alertHistory(5)).toEqual([])
    expect(await remote.alertDeliveries(5)).toEqual([])
  })

  it('reads and verifies the audit log', async () => {
    const { id } = await add()
    await remote.note(id, 'seen')
    const { items } = await remote.audit({ limit: 1, outcome: 'done' })
    expect(items).toMatchObject([{ actor: 'mia', action: 'note' }])
    expect(await remote.verifyAudit()).toMatchObject({ ok: true })
    expect(await readAll(remote.exportAudit())).toEqual(await readAll(server.dlq.exportAudit()))
  })
})
