import { describe, expect, it } from 'vitest'
import type { BulkAction } from '../../src/letter/bulk-action.ts'
import type { QueueOptions } from '../../src/options/options.ts'
import { decodePayload } from '../../src/letter/payload.ts'
import type { DeadLetterQueue } from '../../src/queue/queue.ts'
import type { Store } from '../../src/store.ts'
import { memoryStore } from '../../src/stores/memory/memory.ts'
import { never } from '../../src/policy/backoff.ts'
import { aQueue, forbidden, type QueueBench } from '../a-queue.ts'
import { eachStore, withQueue } from '../each-store.ts'
import { by, crashingStore, finish, planAndFinish, resultsOf } from './steps.ts'

const patch = [{ op: 'replace', path: '/amount', value: 0 } as const]

type Driven = Pick<QueueBench, 'dlq' | 'clock'>

/** Letters with the amounts 1, 2, 3 and so on. */
function parkAmounts(dlq: DeadLetterQueue, count: number): Promise<string[]> {
  return dlq.enqueueAll(
    Array.from({ length: count }, (_, index) => ({
      operation: { type: 'orders', payload: { amount: index + 1 } },
      error: forbidden(),
      context: { policy: never(), maxRetries: 5 },
    })),
  )
}

/** Letters whose amounts a bulk edit has set to 0. */
async function edited(bench: Driven, count: number): Promise<{ ids: string[]; edit: BulkAction }> {
  const ids = await parkAmounts(bench.dlq, count)
  const edit = await planAndFinish(bench, 'edit', { queue: 'orders' }, { patch })
  expect(edit.progress).toMatchObject({ succeeded: count })
  return { ids, edit }
}

async function amountOf(dlq: DeadLetterQueue, id: string): Promise<number> {
  return (decodePayload((await dlq.get(id))!.payload) as { amount: number }).amount
}

const amountsOf = (dlq: DeadLetterQueue, ids: string[]): Promise<number[]> =>
  Promise.all(ids.map((id) => amountOf(dlq, id)))

describe.each(eachStore)('undo of a bulk edit on %s', (_, open) => {
  it('restores the payload that each letter had before the edit', () =>
    withQueue(open, {}, async (dlq, clock) => {
      const { ids, edit } = await edited({ dlq, clock }, 3)
      const plan = await dlq.planUndo(edit.id, { by: 'bob', reason: 'the patch was wrong' })
      expect(plan).toMatchObject({
        action: 'undo',
        state: 'planned',
        count: 3,
        by: 'bob',
        input: { undoes: edit.id },
        preview: [1, 2, 3].map((after) => ({
          diff: { kind: 'json', changes: [{ path: '/amount', before: 0, after }] },
        })),
      })
      expect(await amountsOf(dlq, ids)).toEqual([0, 0, 0])
      const done = await finish({ dlq, clock }, plan)
      expect(done).toMatchObject({ state: 'finished', progress: { succeeded: 3 } })
      expect(await amountsOf(dlq, ids)).toEqual([1, 2, 3])
      expect((await dlq.get(ids[0]!))!.history.at(-1)).toMatchObject({
        action: 'edit',
        actor: 'bob',
        note: `bulk action ${plan.id} undoes ${edit.id}: the patch was wrong`,
      })
      expect(await dlq.payloads(ids[0]!)).toMatchObject([{ version: 1 }, { version: 3, by: 'bob' }])
      await expect(dlq.undoEdit(ids[0]!)).rejects.toThrow('has no edit to undo')
    }))

  it('leaves out letters that it cannot restore, and says why', () =>
    withQueue(open, {}, async (dlq, clock) => {
      const { ids, edit } = await edited({ dlq, clock }, 7)
      const [again, undone, resolved, archived, removed, tagged, same] = ids as [string, string] &
        string[]
      await dlq.edit(again, { payload: { amount: 70 }, ...by })
      await dlq.undoEdit(undone)
      await dlq.resolve(resolved!)
      await dlq.archive(archived!)
      await dlq.remove(removed!)
      await dlq.edit(tagged!, { tags: ['vip'], ...by })
      const plan = await dlq.planUndo(edit.id, by)
      expect(plan.ineligible.sample).toEqual([
        { id: again, reason: 'its payload was changed again after the edit' },
        { id: undone, reason: 'its edit was undone already' },
        { id: resolved, reason: 'it is resolved' },
        { id: archived, reason: 'it is archived' },
        { id: removed, reason: 'it was removed after the edit' },
      ])
      const done = await finish({ dlq, clock }, plan)
      expect(await resultsOf({ dlq }, done)).toEqual(
        [tagged, same].map((id) => ({ id, outcome: 'succeeded' })),
      )
      expect(await amountsOf(dlq, [again, undone, resolved!, tagged!, same!])).toEqual([
        70, 2, 0, 6, 7,
      ])
      expect((await dlq.get(tagged!))!.tags).toEqual(['vip'])
    }))

  it('skips letters that change between the plan and the run', () =>
    withQueue(open, {}, async (dlq, clock) => {
      const { ids, edit } = await edited({ dlq, clock }, 3)
      const plan = await dlq.planUndo(edit.id, by)
      await dlq.edit(ids[0]!, { payload: { amount: 70 }, ...by })
      await dlq.resolve(ids[1]!)
      const done = await finish({ dlq, clock }, plan)
      expect(await resultsOf({ dlq }, done)).toEqual([
        { id: ids[0], outcome: 'skipped', error: 'it changed after the plan and is parked now' },
        { id: ids[1], outcome: 'skipped', error: 'it changed after the plan and is resolved now' },
        { id: ids[2], outcome: 'succeeded' },
      ])
      expect(await amountsOf(dlq, ids)).toEqual([70, 0, 3])
    }))
})

/** A queue with a bulk edit of 10 letters that has reached some of them. */
async function halfEdited(): Promise<QueueBench & { ids: string[]; edit: BulkAction }> {
  const bench = await aQueue()
  const ids = await parkAmounts(bench.dlq, 10)
  const edit = await bench.dlq.plan('edit', {}, { ...by, patch, rate: 1 })
  bench.dlq.start()
  await bench.dlq.run(edit.id)
  await bench.clock.advance(2500)
  return { ...bench, ids, edit }
}

describe('undo of a bulk edit', () => {
  it.each(['pause', 'cancel'] as const)('after %s restores what was edited', async (end) => {
    const bench = await halfEdited()
    const { dlq, edit, ids } = bench
    await expect(dlq.planUndo(edit.id, by)).rejects.toMatchObject({ code: 'ILLEGAL_MOVE' })
    await expect(dlq.planUndo(edit.id, by)).rejects.toThrow(
      `bulk action ${edit.id} is running: pause or cancel it, then plan its undo`,
    )
    const { succeeded } = (await dlq[end](edit.id)).progress
    expect(succeeded).toBeGreaterThan(0)
    expect(succeeded).toBeLessThan(10)
    const plan = await dlq.planUndo(edit.id, by)
    expect(plan).toMatchObject({ count: succeeded, ineligible: { count: 0 } })
    await finish(bench, plan)
    expect(await amountsOf(dlq, ids)).toEqual([1, 2, 3, 4, 5, 6, 7, 8, 9, 10])
    await dlq.close()
  })

  it('restores letters whose results a crash kept from being recorded', async () => {
    const bench = await aQueue({}, (clock) => {
      const store = memoryStore({ clock })
      const put = store.records.put.bind(store.records)
      store.records.put = async (kind, id, value, version) => {
        if (kind === 'bulk-letters' && JSON.stringify(value).includes('succeeded'))
          throw new Error('crashed')
        return put(kind, id, value, version)
      }
      return Object.assign(store, { repair: () => (store.records.put = put) })
    })
    const ids = await parkAmounts(bench.dlq, 3)
    const edit = await bench.dlq.plan('edit', { ids: ids.slice(0, 2) }, { ...by, patch })
    const untouched = await bench.dlq.plan('edit', {}, { ...by, patch })
    bench.dlq.start()
    await bench.dlq.run(edit.id)
    await bench.clock.advance(5000)
    expect(await bench.dlq.cancel(edit.id)).toMatchObject({ progress: { pending: 2 } })
    expect(await amountsOf(bench.dlq, ids)).toEqual([0, 0, 3])
    ;(bench.store as Store & { repair: () => void }).repair()
    await finish(bench, await bench.dlq.planUndo(edit.id, by))
    expect(await amountsOf(bench.dlq, ids)).toEqual([1, 2, 3])
    // Letters that others have changed are not letters of an edit that never ran.
    await bench.dlq.cancel(untouched.id)
    await expect(bench.dlq.planUndo(untouched.id, by)).rejects.toThrow('has edited no letter')
    await bench.dlq.close()
  })

  it('restores each letter once, also after a crash', async () => {
    const bench = await aQueue()
    const { ids, edit } = await edited(bench, 3)
    const { records } = bench.store
    const put = records.put.bind(records)
    const remove = records.remove.bind(records)
    let crashes = 0
    records.remove = async (kind, id) => {
      if (kind === 'edit' && crashes < 2) {
        crashes += 1
        throw new Error('crashed')
      }
      return remove(kind, id)
    }
    records.put = async (kind, id, value, version) => {
      if (kind === 'bulk-letters' && JSON.stringify(value).includes('succeeded') && crashes < 3) {
        crashes += 1
        throw new Error('crashed')
      }
      return put(kind, id, value, version)
    }
    const done = await finish(bench, await bench.dlq.planUndo(edit.id, by))
    expect(crashes).toBe(3)
    expect(done).toMatchObject({ state: 'finished', progress: { succeeded: 3 } })
    expect(await amountsOf(bench.dlq, ids)).toEqual([1, 2, 3])
    for (const letter of await bench.store.get(ids))
      expect(letter.history.filter(({ note }) => note?.includes(done.id))).toHaveLength(1)
    expect(await records.list('edit')).toEqual([])
    await bench.dlq.close()
  })

  it('of an edit that crashed restores the payloads from before the edit', async () => {
    const bench = await aQueue({}, crashingStore)
    const { ids, edit } = await edited(bench, 3)
    expect((bench.store as ReturnType<typeof crashingStore>).crashes).toBe(1)
    await finish(bench, await bench.dlq.planUndo(edit.id, by))
    expect(await amountsOf(bench.dlq, ids)).toEqual([1, 2, 3])
    await bench.dlq.close()
  })

  it('can be paused and resumed', async () => {
    const bench = await aQueue()
    const { dlq, clock } = bench
    const { ids, edit } = await edited(bench, 10)
    const plan = await dlq.planUndo(edit.id, { ...by, rate: 1 })
    await dlq.run(plan.id)
    await clock.advance(2500)
    const { succeeded } = (await dlq.pause(plan.id)).progress
    expect(succeeded).toBeGreaterThan(0)
    await clock.advance(60_000)
    expect((await dlq.bulkAction(plan.id)).progress).toMatchObject({ succeeded })
    await dlq.resume(plan.id)
    expect((await finish(bench, plan)).progress).toMatchObject({ succeeded: 10 })
    expect(await amountsOf(dlq, ids)).toEqual([1, 2, 3, 4, 5, 6, 7, 8, 9, 10])
    await dlq.close()
  })

  it('finds nothing to undo in a letter whose edit lost against another change', async () => {
    const bench = await aQueue({}, (clock) => {
      const store = memoryStore({ clock })
      const apply = store.apply.bind(store)
      store.apply = async (changes) => {
        const edits = changes.filter(({ action }) => action === 'edit')
        if (edits.length > 0) await bench.dlq.note(edits[0]!.id, 'I look into it')
        return apply(changes)
      }
      return store
    })
    const [id] = await parkAmounts(bench.dlq, 1)
    const edit = await planAndFinish(bench, 'edit', { queue: 'orders' }, { patch })
    expect(edit.progress).toMatchObject({ skipped: 1 })
    await expect(bench.dlq.undoEdit(id!)).rejects.toThrow('has no edit to undo')
    await bench.dlq.close()
  })

  it('skips a letter whose saved payload is gone', async () => {
    const bench = await aQueue()
    const { ids, edit } = await edited(bench, 1)
    const plan = await bench.dlq.planUndo(edit.id, by)
    const [saved] = await bench.store.records.list('edit')
    await bench.store.records.remove('edit', saved!.id)
    const done = await finish(bench, plan)
    expect(await resultsOf(bench, done)).toEqual([
      { id: ids[0], outcome: 'skipped', error: 'its edit was undone already' },
    ])
    await bench.dlq.close()
  })

  it('restores payloads that the rules of the queue refuse, as undoEdit does', async () => {
    const payloadSchema = { properties: { amount: { maximum: 0 } } }
    const options: QueueOptions = { queues: { orders: { payloadSchema } } }
    const bench = await aQueue(options)
    const { ids, edit } = await edited(bench, 2)
    await finish(bench, await bench.dlq.planUndo(edit.id, by))
    expect(await amountsOf(bench.dlq, ids)).toEqual([1, 2])
    await bench.dlq.close()
  })

  it('needs approval like every action', async () => {
    const bench = await aQueue({ approval: { above: 1 } })
    const ids = await parkAmounts(bench.dlq, 2)
    const edit = await bench.dlq.plan('edit', {}, { ...by, patch })
    await bench.dlq.approve(edit.id, 'bob')
    await finish(bench, edit)
    const plan = await bench.dlq.planUndo(edit.id, by)
    await expect(bench.dlq.run(plan.id)).rejects.toMatchObject({ code: 'APPROVAL_REQUIRED' })
    await bench.dlq.approve(plan.id, 'bob')
    await finish(bench, plan)
    expect(await amountsOf(bench.dlq, ids)).toEqual([1, 2])
    await bench.dlq.close()
  })

  it('is refused for anything but an edit that has changed letters', async () => {
    const bench = await aQueue()
    const { dlq } = bench
    const { edit } = await edited(bench, 2)
    const undo = await finish(bench, await dlq.planUndo(edit.id, by))
    const tag = await planAndFinish(bench, 'tag', {}, { addTags: ['seen'] })
    const planned = await dlq.plan('edit', {}, { ...by, patch })
    const before = (await dlq.bulkActions()).length
    const unknown = '0198c7c0-0000-7000-8000-000000000001'
    for (const [id, options, text] of [
      [tag.id, by, `bulk action ${tag.id} is tag: only an edit can be undone`],
      [undo.id, by, `bulk action ${undo.id} is undo: only an edit can be undone`],
      [planned.id, by, `bulk action ${planned.id} is planned and has edited no letter`],
      [edit.id, by, `the 2 letters that bulk action ${edit.id} edited (2: its edit was undone`],
      [edit.id, { by: 'ada' }, 'undo needs `by` and `reason`'],
      [edit.id, { ...by, patch }, 'plan option "patch" belongs to edit'],
      [edit.id, { ...by, undoes: edit.id }, 'unknown plan option "undoes"'],
      [edit.id, undefined, 'plan option'],
    ] as const) {
      const refused = dlq.planUndo(id, options as typeof by)
      await expect(refused).rejects.toMatchObject({ code: 'INVALID_INPUT' })
      await expect(refused).rejects.toThrow(text)
    }
    const missing = dlq.planUndo(unknown, by)
    await expect(missing).rejects.toMatchObject({ code: 'ACTION_NOT_FOUND' })
    await expect(missing).rejects.toThrow(unknown)
    expect(await dlq.bulkActions()).toHaveLength(before)
    await dlq.close()
  })
})
