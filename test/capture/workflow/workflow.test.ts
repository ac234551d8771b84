import * as fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import type {
  Enqueuing,
  WorkflowCounts,
  WorkflowResult,
} from '../../../src/capture/workflow/workflow.ts'
import type { Strategy } from '../../../src/capture/workflow/options.ts'
import type { WorkflowTask } from '../../../src/capture/workflow/task.ts'
import { RedriveError } from '../../../src/errors.ts'
import { categories, type DeadLetter, type ErrorCategory } from '../../../src/letter/letter.ts'
import { decodePayload } from '../../../src/letter/payload.ts'
import { immediate } from '../../../src/policy/backoff.ts'
import type { Rule } from '../../../src/policy/classify.ts'
import type { DeadLetterQueue } from '../../../src/queue/queue.ts'
import type { Store } from '../../../src/store.ts'
import { memoryStore } from '../../../src/stores/memory/memory.ts'
import { aQueue, deferred, refused } from '../../a-queue.ts'

const sweep = (over: Partial<WorkflowTask> = {}): WorkflowTask => ({
  id: 'wf-1',
  task: { type: 'code-sweep' },
  targets: ['a', 'b', 'c'],
  adapter: 'llamaindex',
  user: { name: 'ada', roles: ['ops'] },
  ...over,
})

/** User rules with one error code per category. */
const rules: Rule[] = categories.map((category) => ({
  name: category,
  when: { code: `MY_${category}` },
  category,
}))
const errorOf = (category: ErrorCategory): Error =>
  Object.assign(new Error('it failed'), { code: `MY_${category}` })

const failing = (thrown: unknown) => (): Promise<never> => Promise.reject(thrown)

const skips = (over: Partial<WorkflowCounts['skipped']> = {}): WorkflowCounts['skipped'] => ({
  disabled: 0,
  manual: 0,
  'not-selected': 0,
  'queue-full': 0,
  'too-large': 0,
  'store-unavailable': 0,
  closed: 0,
  'inside-a-retry': 0,
  ...over,
})

async function onlyLetter(dlq: DeadLetterQueue): Promise<DeadLetter> {
  const { items } = await dlq.find({ payload: true })
  expect(items).toHaveLength(1)
  return items[0]!
}

const whyOf = (answer: WorkflowResult | Enqueuing): unknown =>
  'enqueued' in answer && !answer.enqueued ? answer.why : undefined

describe('run', () => {
  it('returns the result of a completed workflow and stores nothing', async () => {
    const { dlq } = await aQueue()
    const guard = dlq.workflow()
    expect(await guard.run(sweep(), async ({ targets }) => targets?.length)).toEqual({
      status: 'completed',
      result: 3,
    })
    expect((await dlq.find()).items).toEqual([])
    expect(guard.counts()).toEqual({ enqueued: 0, enqueuedByHand: 0, skipped: skips() })
  })

  it('stores a thrown error with everything needed to run the task again', async () => {
    const { dlq } = await aQueue()
    const guard = dlq.workflow({ name: 'sweeps' })
    const error = refused()
    const answer = await guard.run(
      sweep({ metadata: { team: 'platform' }, tags: ['nightly'], priority: 'high', lane: 'ada' }),
      failing(error),
    )
    const letter = await onlyLetter(dlq)
    expect(answer).toEqual({
      status: 'failed',
      error,
      failed: ['a', 'b', 'c'],
      enqueued: true,
      letterId: letter.id,
    })
    expect(letter).toMatchObject({
      queue: 'sweeps',
      state: 'pending',
      source: {
        kind: 'workflow',
        name: 'sweeps',
        taskId: 'wf-1',
        targets: ['a', 'b', 'c'],
        adapter: 'llamaindex',
        context: { name: 'ada', roles: ['ops'] },
      },
      dedupeKey: 'wf-1',
      metadata: { team: 'platform' },
      tags: ['nightly'],
      priority: 'high',
      lane: 'ada',
      category: 'network',
      failure: { name: 'Error', code: 'ECONNREFUSED', message: error.message },
    })
    expect(letter.failure.stack).toContain('ECONNREFUSED')
    expect(decodePayload(letter.payload)).toEqual({
      task: { type: 'code-sweep' },
      targets: ['a', 'b', 'c'],
      adapter: 'llamaindex',
      user: { name: 'ada', roles: ['ops'] },
    })
  })

  it.each([
    ['ok: false', { ok: false, error: refused() }, 'failed'],
    ['failed', { status: 'failed', error: refused() }, 'failed'],
    ['partial', { status: 'partial', errors: [refused()] }, 'partial'],
  ])('treats a returned %s as a failure', async (_title, result, status) => {
    const { dlq } = await aQueue()
    const answer = await dlq.workflow().run(sweep(), async () => result)
    const letter = await onlyLetter(dlq)
    expect(answer).toMatchObject({ status, result, enqueued: true, letterId: letter.id })
    expect(letter).toMatchObject({ category: 'network', failure: { code: 'ECONNREFUSED' } })
  })

  it('stores only the failed targets in the payload, and all of them in the source', async () => {
    const { dlq } = await aQueue()
    const answer = await dlq
      .workflow()
      .run(sweep(), async () => ({ status: 'partial', failed: ['c'], error: refused() }))
    expect(answer).toMatchObject({ status: 'partial', failed: ['c'], enqueued: true })
    const letter = await onlyLetter(dlq)
    expect(decodePayload(letter.payload)).toEqual({
      task: { type: 'code-sweep' },
      targets: ['c'],
      adapter: 'llamaindex',
      user: { name: 'ada', roles: ['ops'] },
    })
    expect(letter.payload.version).toBe(1)
    expect(letter.source).toMatchObject({ targets: ['a', 'b', 'c'] })
  })

  it('stores the task as given, even if it is changed during or after the run', async () => {
    const { dlq } = await aQueue()
    const when = new Date(0)
    const task = sweep({ task: { when, list: [1] }, metadata: { deep: { n: 1 } }, tags: ['x'] })
    const guard = dlq.workflow()
    await guard.run(task, (given) => {
      when.setTime(5)
      ;(given.task as { list: number[] }).list.push(2)
      given.targets!.pop()
      given.tags!.push('y')
      Object.assign(given.metadata!['deep']!, { n: 2 })
      Object.assign(given.user as object, { name: 'eve' })
      throw refused()
    })
    task.targets!.length = 0
    const letter = await onlyLetter(dlq)
    expect(decodePayload(letter.payload)).toEqual({
      task: { when: new Date(0), list: [1] },
      targets: ['a', 'b', 'c'],
      adapter: 'llamaindex',
      user: { name: 'ada', roles: ['ops'] },
    })
    expect(letter).toMatchObject({
      source: { targets: ['a', 'b', 'c'], context: { name: 'ada' } },
      metadata: { deep: { n: 1 } },
      tags: ['x'],
    })
  })

  it('marks a lossy payload, also when it stores only some targets', async () => {
    const { dlq } = await aQueue()
    const task = sweep({ task: { call: () => 1 } })
    await dlq.workflow().run(task, () => ({ status: 'partial', failed: ['b'], error: refused() }))
    expect((await onlyLetter(dlq)).payload).toMatchObject({ lossy: true, version: 1 })
  })

  it.each<[string, unknown]>([
    ['is undefined', undefined],
    ['has no id', { task: 1 }],
    ['has an empty id', { id: '', task: 1 }],
    ['has targets that are not an array', { id: 'x', task: 1, targets: 'a' }],
    ['has targets that are not strings', { id: 'x', task: 1, targets: ['a', 1] }],
    ['has an adapter that is not a string', { id: 'x', task: 1, adapter: 7 }],
    ['has an invalid priority', { id: 'x', task: 1, priority: 'urgent' }],
  ])('rejects a task that %s, before a run', async (_title, task) => {
    const { dlq } = await aQueue()
    let ran = false
    const answer = dlq.workflow().run(task as WorkflowTask, () => {
      ran = true
    })
    await expect(answer).rejects.toMatchObject({ code: 'INVALID_INPUT' })
    expect(ran).toBe(false)
  })

  it('rejects a run without a handler or a function', async () => {
    const { dlq } = await aQueue()
    await expect(dlq.workflow().run(sweep())).rejects.toMatchObject({
      code: 'INVALID_INPUT',
      message: expect.stringContaining('no handler') as string,
    })
  })

  it('stores letters with the policy of the workflow, also before a handler is set', async () => {
    const { dlq } = await aQueue()
    const guard = dlq.workflow({ maxRetries: 7, priority: 'low', backoff: immediate() })
    await guard.enqueue(sweep(), refused())
    expect(await onlyLetter(dlq)).toMatchObject({
      maxRetries: 7,
      priority: 'low',
      policy: { kind: 'immediate' },
    })
  })
})

describe('the strategy', () => {
  const declined = new Set<ErrorCategory>(['permission', 'validation', 'permanent'])
  const expected: Record<Strategy, (category: ErrorCategory) => string | undefined> = {
    automatic: () => undefined,
    selective: (category) => (declined.has(category) ? 'not-selected' : undefined),
    manual: () => 'manual',
    disabled: () => 'disabled',
  }
  const cases = (Object.keys(expected) as Strategy[]).flatMap((strategy) =>
    categories.map((category) => ({ strategy, category, why: expected[strategy](category) })),
  )

  it.each(cases)('$strategy with a failure of category $category gives $why', async (row) => {
    const { strategy, category, why } = row
    const { dlq } = await aQueue({ rules })
    const guard = dlq.workflow({ strategy })
    const error = errorOf(category)
    const answer = await guard.run(sweep(), failing(error))
    const kept = (await dlq.find()).items
    expect(answer).toMatchObject({ status: 'failed', error, enqueued: why === undefined })
    expect(whyOf(answer)).toBe(why)
    expect(kept.map((letter) => letter.category)).toEqual(why === undefined ? [category] : [])
    expect(guard.counts()).toEqual({
      enqueued: kept.length,
      enqueuedByHand: 0,
      skipped: skips(why === undefined ? {} : { [why]: 1 }),
    })
  })

  it('selective names the category that it declined', async () => {
    const { dlq } = await aQueue({ rules })
    const guard = dlq.workflow({ strategy: 'selective' })
    expect(await guard.run(sweep(), failing(errorOf('validation')))).toMatchObject({
      detail: expect.stringMatching(
        /^the category is validation, and the selective strategy stores .*network/,
      ),
    })
  })

  it('selective stores the selected categories', async () => {
    const { dlq } = await aQueue({ rules })
    const guard = dlq.workflow({ strategy: 'selective', select: ['permission'] })
    expect(whyOf(await guard.run(sweep(), failing(errorOf('network'))))).toBe('not-selected')
    expect(whyOf(await guard.run(sweep(), failing(errorOf('permission'))))).toBeUndefined()
  })

  it('selective stores a partial failure if one target can be retried', async () => {
    const { dlq } = await aQueue({ rules })
    const guard = dlq.workflow({ strategy: 'selective' })
    const [forbidden, busy] = [errorOf('permission'), errorOf('network')]
    const both = { a: { error: forbidden }, b: { error: busy }, c: { ok: true } }
    const one = { a: { error: forbidden }, b: { ok: true }, c: { ok: true } }
    expect(await guard.run(sweep(), () => ({ status: 'partial', results: both }))).toMatchObject({
      enqueued: true,
      failed: ['a', 'b'],
    })
    expect(
      whyOf(await guard.run(sweep({ id: 'other' }), () => ({ status: 'partial', results: one }))),
    ).toBe('not-selected')
  })

  it('is the one at the time of the failure, also for runs in progress', async () => {
    const { dlq } = await aQueue({ rules })
    const guard = dlq.workflow()
    const order: Strategy[] = ['disabled', 'manual', 'selective', 'automatic', 'disabled']
    const blockers = order.map(() => deferred())
    const runs = blockers.map((blocker, n) =>
      guard.run(sweep({ id: `wf-${n}` }), async () => {
        await blocker.promise
        throw errorOf('permission')
      }),
    )
    const answers: unknown[] = []
    for (const [n, strategy] of order.entries()) {
      guard.setStrategy(strategy)
      expect(guard.strategy).toBe(strategy)
      blockers[n]!.resolve()
      answers.push(whyOf(await runs[n]!))
    }
    expect(answers).toEqual(['disabled', 'manual', 'not-selected', undefined, 'disabled'])
    expect((await onlyLetter(dlq)).dedupeKey).toBe('wf-3')
    expect(guard.counts()).toEqual({
      enqueued: 1,
      enqueuedByHand: 0,
      skipped: skips({ disabled: 2, manual: 1, 'not-selected': 1 }),
    })
  })

  it('rejects an unknown value and stays unchanged', async () => {
    const { dlq } = await aQueue()
    const guard = dlq.workflow({ strategy: 'manual' })
    expect(() => guard.setStrategy('automatik' as Strategy)).toThrow('did you mean "automatic"?')
    expect(guard.strategy).toBe('manual')
  })
})

describe('enqueue', () => {
  it.each<[Strategy, string | undefined]>([
    ['automatic', undefined],
    ['selective', undefined],
    ['manual', undefined],
    ['disabled', 'disabled'],
  ])('under the strategy %s', async (strategy, why) => {
    const { dlq } = await aQueue({ rules })
    const guard = dlq.workflow({ strategy })
    const answer = await guard.enqueue(sweep(), errorOf('permission'))
    expect(whyOf(answer)).toBe(why)
    expect((await dlq.find()).items.map(({ id }) => id)).toEqual(
      answer.enqueued ? [answer.letterId] : [],
    )
    expect(guard.counts()).toEqual({
      enqueued: 0,
      enqueuedByHand: why === undefined ? 1 : 0,
      skipped: skips(why === undefined ? {} : { disabled: 1 }),
    })
  })

  it('stores the same letter as a failed run', async () => {
    const { dlq } = await aQueue()
    const error = refused()
    const guard = dlq.workflow()
    await guard.run(sweep(), failing(error))
    const byRun = await onlyLetter(dlq)
    await dlq.remove(byRun.id)
    await guard.enqueue(sweep(), error)
    expect({ ...(await onlyLetter(dlq)), id: byRun.id }).toEqual(byRun)
  })
})

describe('a task that cannot be stored', () => {
  const brokenStore = (reason: unknown): Store => {
    const store = memoryStore()
    store.add = () => Promise.reject(reason)
    return store
  }

  it('is reported as queue-full when the queue is full', async () => {
    const { dlq } = await aQueue({ maxItems: 1 })
    const guard = dlq.workflow()
    const error = refused()
    await guard.run(sweep({ id: 'first' }), failing(error))
    expect(await guard.run(sweep({ id: 'second' }), failing(error))).toEqual({
      status: 'failed',
      error,
      failed: ['a', 'b', 'c'],
      enqueued: false,
      why: 'queue-full',
      detail: expect.stringContaining('maxItems') as string,
    })
    expect(whyOf(await guard.enqueue(sweep({ id: 'third' }), error))).toBe('queue-full')
    expect(guard.counts()).toEqual({
      enqueued: 1,
      enqueuedByHand: 0,
      skipped: skips({ 'queue-full': 2 }),
    })
  })

  it('is reported as store-unavailable, with the original failure', async () => {
    const down = new RedriveError('STORE_UNAVAILABLE', 'the store cannot be reached: start it')
    const { dlq, eventsOf } = await aQueue({}, () => brokenStore(down))
    const error = refused()
    const guard = dlq.workflow()
    expect(await guard.run(sweep(), failing(error))).toMatchObject({
      status: 'failed',
      error,
      enqueued: false,
      why: 'store-unavailable',
      detail: 'the store cannot be reached: start it',
    })
    expect(eventsOf('error')).toMatchObject([{ during: 'capture of workflow', error: down }])
    expect(guard.counts().skipped['store-unavailable']).toBe(1)
  })

  it('does not repeat the error message of a custom store, which may contain secrets', async () => {
    const foreign = new Error('connect postgres://root:secret@host')
    const { dlq } = await aQueue({}, () => brokenStore(foreign))
    const answer = await dlq.workflow().run(sweep(), failing(refused()))
    expect(whyOf(answer)).toBe('store-unavailable')
    expect(JSON.stringify(answer)).not.toContain('secret')
  })

  it('is reported as too-large above the payload limit', async () => {
    const { dlq } = await aQueue({ maxPayloadBytes: 500 })
    const answer = await dlq.workflow().run(sweep({ task: 'x'.repeat(500) }), failing(refused()))
    expect(whyOf(answer)).toBe('too-large')
  })

  it('is reported as closed when the queue is closed', async () => {
    const { dlq } = await aQueue()
    const guard = dlq.workflow()
    await dlq.close()
    expect(whyOf(await guard.run(sweep(), failing(refused())))).toBe('closed')
  })
})

describe('a task that fails again', () => {
  it('adds an occurrence to an open letter, and stores a new letter after that', async () => {
    const { dlq, eventsOf } = await aQueue()
    const guard = dlq.workflow()
    const first = await guard.run(sweep(), failing(refused()))
    const second = await guard.run(sweep(), failing(refused()))
    const { id, occurrences } = await onlyLetter(dlq)
    expect([first, second]).toMatchObject([{ letterId: id }, { letterId: id }])
    expect(occurrences).toBe(2)
    expect(eventsOf('duplicate')).toHaveLength(1)
    await dlq.resolve(id)
    const third = await guard.run(sweep(), failing(refused()))
    expect(third).toMatchObject({ enqueued: true })
    expect(third).not.toMatchObject({ letterId: id })
    expect(guard.counts()).toMatchObject({ enqueued: 3 })
  })

  it('is a different task in another workflow or under another dedupe key', async () => {
    const { dlq } = await aQueue()
    await dlq.workflow({ name: 'x' }).run(sweep(), failing(refused()))
    await dlq.workflow({ name: 'y' }).run(sweep(), failing(refused()))
    await dlq.workflow({ name: 'x' }).run(sweep({ dedupeKey: 'mine' }), failing(refused()))
    expect((await dlq.find()).items).toHaveLength(3)
  })

  it('never loses a target that the open letter does not contain', async () => {
    const { dlq } = await aQueue()
    const guard = dlq.workflow()
    const fails = (...failed: string[]): Promise<WorkflowResult> =>
      guard.run(sweep(), () => ({ status: 'partial', failed, error: refused() }))
    await fails('b', 'c')
    await fails('a', 'b')
    await fails('a')
    await guard.run(sweep(), failing(refused()))
    const { items } = await dlq.find({ payload: true, order: 'oldest' })
    const kept = items.map(({ payload, occurrences }) => ({
      targets: (decodePayload(payload) as WorkflowTask).targets,
      occurrences,
    }))
    expect(kept).toEqual([
      { targets: ['b', 'c'], occurrences: 4 },
      { targets: ['a'], occurrences: 3 },
    ])
    expect(guard.counts().enqueued).toBe(4)
  })

  it('never loses a target, whichever targets fail concurrently', async () => {
    const some = fc.subarray(['a', 'b', 'c'], { minLength: 1 })
    await fc.assert(
      fc.asyncProperty(fc.array(some, { minLength: 1, maxLength: 12 }), async (failures) => {
        const { dlq } = await aQueue()
        const guard = dlq.workflow()
        await Promise.all(
          failures.map((failed) =>
            guard.run(sweep(), () => ({ status: 'partial', failed, error: refused() })),
          ),
        )
        const { items } = await dlq.find({ payload: true })
        const kept = items.flatMap(
          ({ payload }) => (decodePayload(payload) as WorkflowTask).targets!,
        )
        expect(kept.sort()).toEqual([...new Set(failures.flat())].sort())
      }),
      { numRuns: 50 },
    )
  })
})
