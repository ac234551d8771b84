import { describe, expect, it } from 'vitest'
import { sleep } from '../../src/clock/clock.ts'
import type { FilterActionName } from '../../src/letter/bulk-action.ts'
import { moveTable } from '../../src/letter/move-table.ts'
import { states, type State } from '../../src/letter/letter.ts'
import type { PlanOptions } from '../../src/bulk/plan-options.ts'
import { never } from '../../src/policy/backoff.ts'
import { aLetter } from '../../src/testing/a-letter.ts'
import { aQueue, forbidden, type QueueBench } from '../a-queue.ts'
import { by, crashingStore, finish, planAndFinish, resultsOf } from './steps.ts'

/** Stores letters that wait for a person. */
async function parkLetters(
  { dlq }: QueueBench,
  count: number,
  queue = 'orders',
): Promise<string[]> {
  return dlq.enqueueAll(
    Array.from({ length: count }, (_, index) => ({
      operation: { type: queue, payload: { index } },
      error: forbidden(),
      context: { policy: never(), maxRetries: 5 },
    })),
  )
}

describe('a plan', () => {
  it('counts the letters, shows some, and changes nothing', async () => {
    const bench = await aQueue()
    const ids = await parkLetters(bench, 12)
    const before = await bench.store.get(ids)
    const plan = await bench.dlq.plan('retry', { queue: 'orders' })
    expect(plan).toMatchObject({ state: 'planned', action: 'retry', by: 'operator', count: 12 })
    expect(plan.sample.map(({ id }) => id)).toEqual(ids.slice(0, 10))
    expect(await bench.store.get(ids)).toEqual(before)
    await bench.dlq.close()
  })

  it('leaves out letters for which the action is not possible, and says why', async () => {
    const bench = await aQueue()
    const letters = states.map((state) => aLetter({ state, queue: 'orders' }))
    await bench.store.add(letters)
    const plan = await bench.dlq.plan('retry', { queue: 'orders', state: [...states] })
    expect(plan.count).toBe(moveTable.retry.from.length)
    expect(plan.ineligible).toMatchObject({
      count: 3,
      reasons: { 'it runs now': 1, 'it is resolved': 1, 'it is archived': 1 },
    })
    await bench.dlq.close()
  })

  it('is frozen: letters that are captured later are not touched', async () => {
    const bench = await aQueue()
    bench.dlq.handle('orders', async () => {})
    await parkLetters(bench, 3)
    const plan = await bench.dlq.plan('retry', { queue: 'orders' })
    const [later] = await parkLetters(bench, 1)
    expect((await finish(bench, plan)).progress).toMatchObject({ succeeded: 3 })
    expect(await bench.dlq.get(later!)).toMatchObject({ state: 'parked', version: 1 })
    await bench.dlq.close()
  })

  it('skips letters that changed or were removed after it, with the reason', async () => {
    const bench = await aQueue()
    bench.dlq.handle('orders', async () => {})
    const [changed, removed, same] = await parkLetters(bench, 3)
    const plan = await bench.dlq.plan('retry', { queue: 'orders' })
    await bench.dlq.edit(changed!, { tags: ['vip'], ...by })
    await bench.dlq.remove(removed!)
    const action = await finish(bench, plan)
    expect(action.progress).toMatchObject({ succeeded: 1, skipped: 2 })
    expect(await resultsOf(bench, action)).toEqual([
      { id: changed, outcome: 'skipped', error: 'it changed after the plan and is parked now' },
      { id: removed, outcome: 'skipped', error: 'it was removed after the plan' },
      { id: same, outcome: 'succeeded', runs: 1 },
    ])
    await bench.dlq.close()
  })

  it('leaves out letters of a lane in which a newer letter has succeeded', async () => {
    const bench = await aQueue()
    const lane = { queue: 'orders', lane: 'customer-1' }
    const day = (number: number): string => `2026-01-0${number}T00:00:00.000Z`
    const stale = aLetter({ ...lane, state: 'parked', deadLetteredAt: day(1) })
    const newer = aLetter({ ...lane, state: 'resolved', deadLetteredAt: day(2) })
    const newest = aLetter({ ...lane, state: 'parked', deadLetteredAt: day(3) })
    const other = aLetter({ queue: 'orders', lane: 'customer-2', state: 'parked' })
    await bench.store.add([stale, newer, newest, other])
    const plan = await bench.dlq.plan('retry', { queue: 'orders' })
    expect(plan.count).toBe(2)
    expect(plan.ineligible.sample).toEqual([
      { id: stale.id, reason: expect.stringContaining('a newer letter of its lane') as string },
    ])
    const all = await bench.dlq.plan('retry', { queue: 'orders' }, { includeSuperseded: true })
    expect(all.count).toBe(3)
    expect((await bench.dlq.plan('archive', { state: 'parked' })).count).toBe(3)
    await bench.dlq.close()
  })

  it('expires', async () => {
    const bench = await aQueue()
    await parkLetters(bench, 1)
    const { id } = await bench.dlq.plan('retry', {}, { expiresInMs: 60_000 })
    await bench.clock.advance(60_000)
    await expect(bench.dlq.run(id)).rejects.toMatchObject({ code: 'PLAN_EXPIRED' })
    await bench.dlq.close()
  })

  it('lets tenants and queues take turns', async () => {
    const bench = await aQueue()
    const many = Array.from({ length: 4 }, () => aLetter({ queue: 'a', state: 'parked' }))
    const few = [aLetter({ queue: 'a', tenant: 't', state: 'parked' }), aLetter({ queue: 'b' })]
    await bench.store.add([...many, ...few])
    const plan = await bench.dlq.plan('archive', {})
    expect((await resultsOf(bench, plan)).map(({ id }) => id)).toEqual(
      [many[0], ...few, ...many.slice(1)].map((letter) => letter!.id),
    )
    await bench.dlq.close()
  })

  it('of more letters than allowed needs another person', async () => {
    const bench = await aQueue({ approval: { above: 2 } })
    const ids = await parkLetters(bench, 3)
    const small = await bench.dlq.plan('archive', { ids: ids.slice(0, 2) })
    expect(small.approval).toBeUndefined()
    const plan = await bench.dlq.plan('archive', {}, by)
    expect(plan.approval).toEqual({ above: 2 })
    const refused = { code: 'APPROVAL_REQUIRED' }
    await expect(bench.dlq.run(plan.id)).rejects.toMatchObject(refused)
    await expect(bench.dlq.approve(plan.id, 'ada')).rejects.toMatchObject(refused)
    expect((await bench.dlq.approve(plan.id, 'bob')).approval).toMatchObject({ by: 'bob' })
    expect((await finish(bench, plan)).progress).toMatchObject({ succeeded: 3 })
    await bench.dlq.close()
  })

  it('keeps its first approval', async () => {
    const bench = await aQueue({ approval: { above: 0 } })
    await parkLetters(bench, 1)
    const plan = await bench.dlq.plan('archive', {}, by)
    const approved = await bench.dlq.approve(plan.id, 'bob')
    await bench.clock.advance(1000)
    expect(await bench.dlq.approve(plan.id, 'eve')).toEqual(approved)
    await expect(bench.dlq.approve(plan.id, 'ada')).rejects.toThrow('another person')
    expect(await bench.dlq.bulkAction(plan.id)).toEqual(approved)
    await bench.dlq.close()
  })

  it('is the same after it was approved and has run, but for its progress', async () => {
    const bench = await aQueue({ approval: { above: 0 } })
    await parkLetters(bench, 3)
    const plan = await bench.dlq.plan('retry', { queue: 'orders' }, { ...by, rate: 100 })
    await bench.dlq.approve(plan.id, 'bob')
    await parkLetters(bench, 2)
    bench.dlq.handle('orders', async () => {})
    const { progress: _, state: __, approval: ___, ...fixed } = plan
    expect(await finish(bench, plan)).toMatchObject({ ...fixed, progress: { succeeded: 3 } })
    await bench.dlq.close()
  })

  it('that was cancelled during its approval is not approved', async () => {
    const bench = await aQueue({ approval: { above: 0 } })
    await parkLetters(bench, 1)
    const { id } = await bench.dlq.plan('archive', {}, by)
    const { records } = bench.store
    const put = records.put.bind(records)
    const results: string[] = []
    records.put = async (kind, recordId, value, version) => {
      if (kind !== 'bulk') return put(kind, recordId, value, version)
      records.put = put
      await bench.dlq.cancel(id)
      results.push(await put(kind, recordId, value, version))
      return results[0] as 'written' | 'conflict'
    }
    await expect(bench.dlq.approve(id, 'bob')).rejects.toMatchObject({ code: 'ILLEGAL_MOVE' })
    expect(results).toEqual(['conflict'])
    const now = await bench.dlq.bulkAction(id)
    expect(now).toMatchObject({ state: 'cancelled', approval: { above: 0 } })
    expect(now.approval).not.toHaveProperty('by')
    await bench.dlq.close()
  })
})

describe('bad input', () => {
  it.each<[string, FilterActionName, object, object, string]>([
    ['an unknown action', 'explode' as FilterActionName, {}, {}, 'unknown bulk action "explode"'],
    [
      'an undo by filter',
      'undo' as FilterActionName,
      {},
      {},
      'undo has no filter: call planUndo with the id of the edit',
    ],
    ['an unknown filter key', 'retry', { colour: 'red' }, {}, 'colour'],
    ['an unknown option', 'retry', {}, { speed: 1 }, 'unknown plan option "speed"'],
    ['a rate of 0', 'retry', {}, { rate: 0 }, 'plan option "rate"'],
    ['an option of another action', 'retry', {}, { to: 'x' }, 'belongs to replay'],
    ['a missing option', 'priority', {}, {}, 'priority needs the plan option priority'],
    ['a number as start', 'retry', {}, { startAt: '5' }, '"startAt" must be a Date or an ISO-8601'],
    ['a date that is none', 'retry', {}, { at: '2026-02-30T00:00:00Z' }, '"at" must be a Date or'],
    ['a blank name', 'retry', {}, { by: ' ' }, '`by` must be a non-blank string'],
    ['a bad time window', 'retry', {}, { window: { from: '25:00', to: '1' } }, 'window'],
    [
      'a bad time zone',
      'retry',
      {},
      { window: { from: '01:00', to: '02:00', timeZone: 'Mars' } },
      'timeZone',
    ],
    [
      'no reason to remove',
      'remove',
      { queue: 'orders' },
      { by: 'ada' },
      'needs `by` and `reason`',
    ],
    ['a removal of everything', 'remove', {}, by, 'remove'],
    ['a filter that matches nothing', 'retry', { queue: 'none' }, {}, 'no letter matches'],
    [
      'letters that cannot be restored',
      'restore',
      { queue: 'orders', state: 'parked' },
      {},
      'it is parked',
    ],
  ])('%s is rejected', async (_, action, filter, options, text) => {
    const bench = await aQueue()
    await parkLetters(bench, 1)
    const planned = bench.dlq.plan(action, filter, options)
    await expect(planned).rejects.toMatchObject({ code: 'INVALID_INPUT' })
    await expect(planned).rejects.toThrow(text)
    expect(await bench.dlq.bulkActions()).toEqual([])
    await bench.dlq.close()
  })

  it.each(['', 'x', '../records', '0198c7c0-0000-7000-8000-000000000001', null, 7, {}])(
    'the forged id %j is rejected by every call',
    async (id) => {
      const bench = await aQueue()
      const forged = id as string
      const { dlq } = bench
      const calls = [
        () => dlq.run(forged),
        () => dlq.pause(forged),
        () => dlq.resume(forged),
        () => dlq.cancel(forged),
        () => dlq.approve(forged, 'bob'),
        () => dlq.results(forged),
        () => dlq.bulkAction(forged),
        () => dlq.planUndo(forged, by),
      ]
      for (const call of calls)
        await expect(call()).rejects.toMatchObject({ code: 'ACTION_NOT_FOUND' })
      await dlq.close()
    },
  )

  it('a call that the state does not allow is rejected', async () => {
    const bench = await aQueue()
    await parkLetters(bench, 1)
    const { id } = await bench.dlq.plan('archive', {})
    await expect(bench.dlq.pause(id)).rejects.toThrow('pause is possible when it is running')
    await bench.dlq.cancel(id)
    await expect(bench.dlq.run(id)).rejects.toMatchObject({ code: 'ILLEGAL_MOVE' })
    await expect(bench.dlq.resume(id)).rejects.toMatchObject({ code: 'ILLEGAL_MOVE' })
    await bench.dlq.close()
  })
})

describe('an action', () => {
  it.each<[FilterActionName, State, State, PlanOptions]>([
    ['resolve', 'parked', 'resolved', {}],
    ['park', 'exhausted', 'parked', {}],
    ['archive', 'resolved', 'archived', {}],
    ['restore', 'archived', 'resolved', {}],
    ['tag', 'parked', 'parked', { addTags: ['seen'], removeTags: ['new'] }],
    ['priority', 'parked', 'parked', { priority: 'critical' }],
  ])('%s turns %s letters into %s ones', async (action, from, to, options) => {
    const bench = await aQueue()
    const letters = [aLetter({ state: from, tags: ['new'] }), aLetter({ state: from })]
    await bench.store.add(letters)
    const done = await planAndFinish(bench, action, { state: from }, options)
    expect(done).toMatchObject({ state: 'finished', progress: { succeeded: 2, pending: 0 } })
    for (const { id } of letters) {
      const letter = await bench.dlq.get(id)
      expect(letter).toMatchObject({ state: to })
      expect(letter!.history.at(-1)).toMatchObject({
        actor: 'ada',
        note: `bulk action ${done.id}: the bug is fixed`,
      })
      if (action === 'tag') expect(letter!.tags).toEqual(['seen'])
      if (action === 'priority') expect(letter!.priority).toBe('critical')
    }
    await bench.dlq.close()
  })

  it('removes letters, and emits their number and the person', async () => {
    const bench = await aQueue()
    const [changed, ...ids] = await parkLetters(bench, 4)
    await bench.dlq.archive(ids[0]!)
    const plan = await bench.dlq.plan('remove', { ids: [changed!, ...ids] }, by)
    await bench.dlq.note(changed!, 'it changed after the plan')
    const done = await finish(bench, plan)
    expect(done.progress).toMatchObject({ succeeded: 3, skipped: 1 })
    expect(await bench.store.get([changed!, ...ids])).toMatchObject([{ id: changed }])
    const removed = bench.eventsOf('removed')
    expect(removed.map(({ count }) => count).toSorted((a, b) => a - b)).toEqual([1, 2])
    expect(new Set(removed.map((event) => event.by))).toEqual(new Set(['ada']))
    await bench.dlq.close()
  })

  it('retries letters, and its results are those of their runs', async () => {
    const bench = await aQueue()
    bench.dlq.handle<{ index: number }>('orders', async ({ input }) => {
      if (input.index % 2 === 1) throw new Error('odd')
    })
    const ids = await parkLetters(bench, 4)
    const done = await planAndFinish(bench, 'retry', { queue: 'orders' })
    expect(done).toMatchObject({ state: 'finished', progress: { succeeded: 2, failed: 2 } })
    expect(await resultsOf(bench, done)).toEqual(
      ids.map((id, index) =>
        index % 2 === 0
          ? { id, outcome: 'succeeded', runs: 1 }
          : { id, outcome: 'failed', runs: 1, error: 'Error: odd' },
      ),
    )
    const { items, cursor } = await bench.dlq.results(done.id, { outcome: 'failed', limit: 1 })
    expect(items).toMatchObject([{ id: ids[1] }])
    const next = await bench.dlq.results(done.id, { outcome: 'failed', cursor: cursor! })
    expect(next.items).toMatchObject([{ id: ids[3] }])
    await bench.dlq.close()
  })

  it('reports its progress as events', async () => {
    const bench = await aQueue()
    await parkLetters(bench, 3)
    await planAndFinish(bench, 'archive', { queue: 'orders' })
    const seen = bench.eventsOf('bulk').map(({ action }) => action)
    expect(seen.at(-1)).toMatchObject({ state: 'finished', progress: { succeeded: 3 } })
    expect(seen.every((action) => !('worker' in action) && !('ramp' in action))).toBe(true)
    await bench.dlq.close()
  })

  it('stops after the first step of its canary if that fails', async () => {
    const bench = await aQueue()
    let runs = 0
    bench.dlq.handle('orders', async () => {
      runs += 1
      throw forbidden()
    })
    await parkLetters(bench, 1500)
    const done = await planAndFinish(bench, 'retry', { queue: 'orders' }, { canary: true })
    expect(done).toMatchObject({
      state: 'stopped',
      stopReason: 'all 1 letters of the step of 1 failed',
      progress: { pending: 1499, failed: 1 },
    })
    expect(runs).toBe(1)
    await bench.dlq.close()
  })

  it('passes its canary if fewer letters fail than its limit', async () => {
    const bench = await aQueue({ maxConcurrent: 500, concurrency: false, breaker: false })
    bench.dlq.handle<{ index: number }>('orders', async ({ input }) => {
      if (input.index % 50 === 49) throw forbidden()
    })
    await parkLetters(bench, 1500)
    const canary = { maxFailureShare: 0.05 }
    const done = await planAndFinish(bench, 'retry', { queue: 'orders' }, { canary })
    expect(done).toMatchObject({ state: 'finished', progress: { succeeded: 1470, failed: 30 } })
    await bench.dlq.close()
  })

  it('can be paused, resumed and cancelled', async () => {
    const bench = await aQueue()
    await parkLetters(bench, 10)
    const plan = await bench.dlq.plan('archive', {}, { ...by, rate: 1 })
    bench.dlq.start()
    await bench.dlq.run(plan.id)
    await bench.clock.advance(2500)
    const paused = await bench.dlq.pause(plan.id)
    expect(paused).toMatchObject({ state: 'paused' })
    const acted = paused.progress.succeeded
    expect(acted).toBeGreaterThan(0)
    expect(acted).toBeLessThan(5)
    await bench.clock.advance(60_000)
    expect((await bench.dlq.bulkAction(plan.id)).progress.succeeded).toBe(acted)
    await bench.dlq.resume(plan.id)
    await bench.clock.advance(3000)
    const cancelled = await bench.dlq.cancel(plan.id)
    expect(cancelled.progress.succeeded).toBeGreaterThan(acted)
    await bench.clock.advance(60_000)
    const now = await bench.dlq.bulkAction(plan.id)
    expect(now).toMatchObject({ state: 'cancelled', progress: cancelled.progress })
    expect((await bench.dlq.stats()).states.parked).toBe(now.progress.pending)
    await bench.dlq.close()
  })

  it('keeps its rate', async () => {
    const bench = await aQueue()
    await parkLetters(bench, 100)
    const plan = await bench.dlq.plan('archive', {}, { ...by, rate: 5 })
    bench.dlq.start()
    await bench.dlq.run(plan.id)
    await bench.clock.advance(10_000)
    const { succeeded } = (await bench.dlq.bulkAction(plan.id)).progress
    expect(succeeded).toBeGreaterThanOrEqual(45)
    expect(succeeded).toBeLessThanOrEqual(51)
    await bench.dlq.close()
  })

  it('keeps new failures from waiting behind all of its letters', async () => {
    const order: string[] = []
    const bench = await aQueue({ maxConcurrent: 1 })
    bench.dlq.handle('orders', async () => {
      order.push('bulk')
      await sleep(bench.clock, 20)
    })
    bench.dlq.handle('live', async () => void order.push('live'))
    await parkLetters(bench, 100)
    const plan = await bench.dlq.plan('retry', { queue: 'orders' }, { concurrency: 5 })
    bench.dlq.start()
    await bench.dlq.run(plan.id)
    await bench.clock.advance(200)
    await bench.dlq.enqueue({ type: 'live', payload: {} }, new Error('x'), {
      policy: { kind: 'immediate' },
    })
    await finish(bench, plan)
    expect(order).toHaveLength(101)
    expect(order.indexOf('live')).toBeLessThan(30)
    await bench.dlq.close()
  })
})

describe('after a crash', () => {
  it.each<FilterActionName>(['retry', 'archive', 'tag', 'remove'])(
    '%s acts on each letter once',
    async (action) => {
      const bench = await aQueue({}, crashingStore)
      let runs = 0
      bench.dlq.handle('orders', async () => void (runs += 1))
      const ids = await parkLetters(bench, 5)
      const options = action === 'tag' ? { addTags: ['seen'] } : {}
      const done = await planAndFinish(bench, action, { queue: 'orders' }, options)
      expect((bench.store as ReturnType<typeof crashingStore>).crashes).toBe(1)
      expect(done).toMatchObject({ state: 'finished', progress: { succeeded: 5 } })
      if (action === 'retry') expect(runs).toBe(5)
      for (const letter of await bench.store.get(ids))
        expect(letter.history.filter(({ note }) => note?.includes(done.id))).toHaveLength(1)
      await bench.dlq.close()
    },
  )
})
