import { describe, expect, it } from 'vitest'
import { AuditLog } from '../../../src/admin/audit/audit-log.ts'
import { actAs } from '../../../src/admin/audit/caller.ts'
import type { AuditEntry } from '../../../src/letter/audit.ts'
import type { DeadLetterQueue } from '../../../src/queue/queue.ts'
import { passThrough } from '../../../src/stores/pass-through.ts'
import { memoryStore } from '../../../src/stores/memory/memory.ts'
import type { Records, Store } from '../../../src/store.ts'
import { fakeClock, type FakeClock } from '../../../src/testing/index.ts'
import { aQueue, timedOut, type QueueBench } from '../../a-queue.ts'
import { eachStore, withQueue } from '../../each-store.ts'

async function capture(dlq: DeadLetterQueue, payload: unknown = { order: 42 }): Promise<string> {
  return (await dlq.enqueue({ type: 'charge-card', payload }, timedOut())).id
}

async function entriesOf(dlq: DeadLetterQueue): Promise<AuditEntry[]> {
  return (await dlq.audit({ order: 'oldest', limit: 1000 })).items
}

/** A memory store whose next writes of records of a kind fail. */
function failingStore(kind: string, fails: () => boolean): (clock: FakeClock) => Store {
  return (clock) => {
    const store = memoryStore({ clock })
    const records: Records = passThrough(store.records, {
      put: async (...args: Parameters<Records['put']>) => {
        if (args[0] === kind && fails()) throw new Error('the disk is full')
        return store.records.put(...args)
      },
    })
    return passThrough(store, { records })
  }
}

describe.each(eachStore)('the audit log on %s', (_, open) => {
  it('has an entry before and after each action, in a chain that verifies', () =>
    withQueue(open, {}, async (dlq) => {
      const id = await capture(dlq)
      await dlq.park(id, 'look at this', 'mia')
      await dlq.pauseQueue('charge-card', 'bob', 'the gateway is down')
      await expect(dlq.restore(id, 'mia')).rejects.toMatchObject({ code: 'ILLEGAL_MOVE' })
      const entries = await entriesOf(dlq)
      expect(
        entries.map(({ seq, actor, action, outcome }) => [seq, actor, action, outcome]),
      ).toEqual([
        [1, 'mia', 'park', 'started'],
        [2, 'mia', 'park', 'done'],
        [3, 'bob', 'queue-pause', 'started'],
        [4, 'bob', 'queue-pause', 'done'],
        [5, 'mia', 'restore', 'started'],
        [6, 'mia', 'restore', 'failed'],
      ])
      expect(entries[1]).toMatchObject({
        via: 'library',
        what: { kind: 'letter', id },
        reason: 'look at this',
        startSeq: 1,
        before: { state: 'pending', version: 1 },
        after: { state: 'parked', version: 2 },
      })
      expect(entries[5]).toMatchObject({ code: 'ILLEGAL_MOVE' })
      expect(await dlq.verifyAudit()).toEqual({
        ok: true,
        entries: 6,
        head: { seq: 6, hash: entries[5]!.hash },
        unfinished: [],
      })
    }))

  it('keeps every entry of several processes that append at once', async () => {
    const clock = fakeClock()
    const { store, another, close } = await open(clock)
    try {
      const stores = [store, ...(another ? [await another(), await another()] : [store, store])]
      const logs = stores.map((one) => new AuditLog({ store: one, clock }))
      const acts = logs.flatMap((log, process) =>
        Array.from({ length: 20 }, async (_unused, number) => {
          const what = { kind: 'letter', id: `${process}-${number}` } as const
          await log.act({ action: 'note', what, actor: `process-${process}` }, async () => {})
        }),
      )
      await Promise.all(acts)
      const log = logs[0]!
      expect(await log.verify()).toMatchObject({ ok: true, entries: 120, unfinished: [] })
      const { items } = await log.find({ outcome: 'done', limit: 1000 })
      expect(new Set(items.map(({ what }) => what.id)).size).toBe(60)
    } finally {
      await close()
    }
  })

  it('pages through entries that match, in both orders', () =>
    withQueue(open, {}, async (dlq, clock) => {
      const ids = [await capture(dlq), await capture(dlq), await capture(dlq)]
      for (const [at, id] of ids.entries()) {
        await dlq.note(id, `note ${at}`, at === 1 ? 'bob' : 'mia')
        await clock.advance(60_000)
      }
      const notesOf = async (query: object): Promise<(string | undefined)[]> =>
        (await dlq.audit({ outcome: 'done', ...query })).items.map(({ reason }) => reason)
      const first = await dlq.audit({ outcome: 'done', limit: 2 })
      expect(first.items.map(({ reason }) => reason)).toEqual(['note 2', 'note 1'])
      expect(await notesOf({ cursor: first.cursor })).toEqual(['note 0'])
      const oldest = await dlq.audit({ outcome: 'done', order: 'oldest', limit: 2 })
      expect(oldest.items.map(({ reason }) => reason)).toEqual(['note 0', 'note 1'])
      expect(await notesOf({ order: 'oldest', cursor: oldest.cursor })).toEqual(['note 2'])
      expect(await notesOf({ actor: 'bob' })).toEqual(['note 1'])
      expect(await notesOf({ what: ids[0] })).toEqual(['note 0'])
      expect(await notesOf({ action: ['note', 'park'], since: oldest.items[1]!.at })).toEqual([
        'note 2',
        'note 1',
      ])
      expect(await notesOf({ until: oldest.items[1]!.at })).toEqual(['note 0'])
      expect(await notesOf({ action: 'park' })).toEqual([])
    }))
})

describe('entries', () => {
  /** Each action of a person, by its name in the log. */
  const acts: [action: string, act: (bench: QueueBench, id: string) => Promise<unknown>][] = [
    ['retry', ({ dlq }, id) => dlq.retry(id, 'mia')],
    ['resolve', ({ dlq }, id) => dlq.resolve(id, 'mia')],
    ['fail', ({ dlq }, id) => dlq.fail(id, timedOut(), 'mia')],
    ['park', ({ dlq }, id) => dlq.park(id, 'why', 'mia')],
    ['note', ({ dlq }, id) => dlq.note(id, 'why', 'mia')],
    ['edit', ({ dlq }, id) => dlq.edit(id, { tags: ['x'], by: 'mia', reason: 'why' })],
    ['archive', ({ dlq }, id) => dlq.archive(id, 'mia')],
    ['remove', ({ dlq }, id) => dlq.remove(id, 'mia')],
    ['clear', ({ dlq }) => dlq.clear({ queue: 'charge-card' }, { confirm: 1, by: 'mia' })],
    ['bulk-plan', ({ dlq }) => dlq.plan('retry', { queue: 'charge-card' }, { by: 'mia' })],
    ['queue-pause', ({ dlq }) => dlq.pauseQueue('charge-card', 'mia', 'why')],
    ['queue-resume', ({ dlq }) => dlq.resumeQueue('charge-card', 'mia')],
    ['group-resolve', async ({ dlq }, id) => dlq.resolveGroup(await groupOf(dlq, id), 'mia')],
    ['group-ignore', async ({ dlq }, id) => dlq.ignoreGroup(await groupOf(dlq, id), 'mia')],
    ['group-reopen', async ({ dlq }, id) => dlq.reopenGroup(await groupOf(dlq, id), 'mia')],
    ['group-assign', async ({ dlq }, id) => dlq.assignGroup(await groupOf(dlq, id), 'mia', 'bob')],
    ['group-note', async ({ dlq }, id) => dlq.noteGroup(await groupOf(dlq, id), 'mia', 'why')],
    ['import', ({ dlq }) => actAs({ via: 'cli', actor: 'mia' }, () => dlq.importOperations('[]'))],
  ]
  const groupOf = async (dlq: DeadLetterQueue, id: string): Promise<string> =>
    (await dlq.get(id))!.fingerprint

  it.each(acts)('are written for %s', async (action, act) => {
    const bench = await aQueue()
    const id = await capture(bench.dlq)
    await act(bench, id)
    expect(await entriesOf(bench.dlq)).toMatchObject([
      { actor: 'mia', action, outcome: 'started' },
      { actor: 'mia', action, outcome: 'done', startSeq: 1 },
    ])
  })

  it('are written for the review, the undo and the restoring of a letter', async () => {
    const { dlq } = await aQueue()
    const id = await capture(dlq)
    await dlq.park(id)
    await dlq.edit(id, { payload: { order: 43 }, by: 'mia', reason: 'typo' })
    await dlq.undoEdit(id, 'mia')
    await dlq.archive(id)
    await dlq.restore(id)
    await dlq.review(id, { decision: 'requeue', by: 'mia' })
    const done = (await entriesOf(dlq)).filter(({ outcome }) => outcome === 'done')
    const actions = done.map(({ action }) => action)
    expect(actions).toEqual(['park', 'edit', 'undo-edit', 'archive', 'restore', 'review'])
  })

  it('are written for the merge and the split of groups', async () => {
    const { dlq } = await aQueue()
    const into = await groupOf(dlq, await capture(dlq))
    const { id } = await dlq.enqueue({ type: 'send-mail', payload: {} }, timedOut())
    const other = await groupOf(dlq, id)
    await dlq.mergeGroups(into, [other], 'mia')
    await dlq.splitGroup(other, 'mia')
    expect((await dlq.audit({ outcome: 'done' })).items).toMatchObject([
      { action: 'group-split', what: { kind: 'group', id: other } },
      { action: 'group-merge', what: { kind: 'group', id: into }, reason: `with ${other}` },
    ])
  })

  it('are written for a replay, also if it is not possible', async () => {
    const { dlq } = await aQueue()
    const id = await capture(dlq)
    await expect(dlq.replay(id, 'mia')).rejects.toMatchObject({ code: 'NO_ROUTE' })
    expect(await entriesOf(dlq)).toMatchObject([
      { action: 'replay', outcome: 'started' },
      { action: 'replay', outcome: 'failed', code: 'NO_ROUTE' },
    ])
  })

  it('are written for each control of a bulk action, not for its letters', async () => {
    const { dlq } = await aQueue({ approval: { above: 1 } })
    await capture(dlq)
    await capture(dlq)
    const { id } = await dlq.plan('retry', { queue: 'charge-card' }, { by: 'mia' })
    await expect(dlq.run(id, 'mia')).rejects.toMatchObject({ code: 'APPROVAL_REQUIRED' })
    await dlq.approve(id, 'bob')
    await dlq.run(id, 'mia')
    await dlq.pause(id)
    await dlq.resume(id)
    await dlq.cancel(id)
    const ended = (await dlq.audit({ what: id, order: 'oldest' })).items.filter(
      ({ outcome }) => outcome !== 'started',
    )
    expect(ended.map(({ action, outcome }) => `${action} ${outcome}`)).toEqual([
      'bulk-plan done',
      'bulk-run denied',
      'bulk-approve done',
      'bulk-run done',
      'bulk-pause done',
      'bulk-resume done',
      'bulk-cancel done',
    ])
    expect(ended[3]).toMatchObject({ before: { state: 'planned' }, after: { state: 'running' } })
  })

  it('have hashes of an edited payload, and never its content', async () => {
    const { dlq } = await aQueue()
    const id = await capture(dlq, { card: '4111' })
    await dlq.edit(id, { payload: { card: '4222' }, by: 'mia', reason: 'typo' })
    const [, done] = await entriesOf(dlq)
    expect(done).toMatchObject({
      before: { payload: { version: 1, sha256: expect.stringMatching(/^[\da-f]{64}$/) } },
      after: { payload: { version: 2, sha256: expect.stringMatching(/^[\da-f]{64}$/) } },
    })
    expect(done!.before!['payload']).not.toEqual(done!.after!['payload'])
    expect(JSON.stringify(await entriesOf(dlq))).not.toMatch(/4111|4222/)
  })

  it('are not written for captures and redelivery', async () => {
    const { dlq, clock } = await aQueue()
    dlq.handle('charge-card', async () => {})
    await capture(dlq)
    dlq.start()
    await clock.advance(3_600_000)
    await dlq.stop()
    expect((await dlq.stats()).states.resolved).toBe(1)
    expect(await entriesOf(dlq)).toEqual([])
  })

  it('reject an invalid query by name', async () => {
    const { dlq } = await aQueue()
    const bad = [
      { user: 'mia' },
      { action: 'shout' },
      { limit: 0 },
      { cursor: 'x' },
      { since: 'x' },
    ]
    for (const query of bad)
      await expect(dlq.audit(query as never)).rejects.toMatchObject({ code: 'INVALID_INPUT' })
  })
})

describe('an audit log that cannot be written', () => {
  it('prevents the action', async () => {
    const { dlq } = await aQueue(
      {},
      failingStore('audit', () => true),
    )
    const id = await capture(dlq)
    await expect(dlq.remove(id, 'mia')).rejects.toThrow('the disk is full')
    expect(await dlq.get(id)).toMatchObject({ state: 'pending' })
  })

  it('is reported when it fails after the action, which stays unfinished in the log', async () => {
    let writes = 0
    const { dlq, eventsOf } = await aQueue(
      {},
      failingStore('audit', () => (writes += 1) === 2),
    )
    const id = await capture(dlq)
    expect(await dlq.park(id, undefined, 'mia')).toMatchObject({ state: 'parked' })
    expect(eventsOf('error')).toMatchObject([
      { during: 'writing to the audit log that park was done' },
    ])
    expect(await dlq.verifyAudit()).toMatchObject({ ok: true, entries: 1, unfinished: [1] })
  })

  it('continues after a process that ended before it moved the head', async () => {
    let isBroken = true
    const { dlq } = await aQueue(
      {},
      failingStore('audit-position', () => isBroken),
    )
    const id = await capture(dlq)
    await dlq.note(id, 'one', 'mia').catch(() => {})
    isBroken = false
    await dlq.note(id, 'two', 'mia')
    const notes = (await entriesOf(dlq)).map(({ seq, reason }) => [seq, reason])
    expect(notes.slice(-2)).toEqual([
      [notes.length - 1, 'two'],
      [notes.length, 'two'],
    ])
    expect(await dlq.verifyAudit()).toMatchObject({ ok: true, entries: notes.length })
  })
})

describe('denied calls', () => {
  it('are recorded once a minute, with the number of the others', async () => {
    const { dlq, clock } = await aQueue()
    const call = { endpoint: 'removeLetter', code: 'FORBIDDEN', actor: 'eve', reason: 'no' }
    for (let n = 0; n < 5; n++) await dlq.recordDenied(call)
    await dlq.recordDenied({ ...call, actor: 'bob' })
    await clock.advance(60_000)
    await dlq.recordDenied(call)
    const entries = await entriesOf(dlq)
    expect(entries.map(({ actor, repeats = 0 }) => [actor, repeats])).toEqual([
      ['eve', 0],
      ['bob', 0],
      ['eve', 4],
    ])
    expect(entries[0]).toMatchObject({
      action: 'access',
      endpoint: 'removeLetter',
      outcome: 'denied',
      what: { kind: 'endpoint', id: 'removeLetter' },
    })
  })
})
