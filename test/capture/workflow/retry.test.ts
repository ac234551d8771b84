import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import type { WorkflowGuard } from '../../../src/capture/workflow/workflow.ts'
import type { WorkflowRun, WorkflowTask } from '../../../src/capture/workflow/task.ts'
import type { DeadLetter } from '../../../src/letter/letter.ts'
import { decodePayload } from '../../../src/letter/payload.ts'
import type { EventType } from '../../../src/observer.ts'
import { fixed, immediate } from '../../../src/policy/backoff.ts'
import { DeadLetterQueue } from '../../../src/queue/queue.ts'
import { aQueue, forbidden, refused, timedOut } from '../../a-queue.ts'
import { aFolder } from '../../folders.ts'
import { opensearchPlace, postgresPlace, redisPlace } from '../../servers/places.ts'
import { backend } from '../../servers/servers.ts'

const sweep = (over: Partial<WorkflowTask> = {}): WorkflowTask => ({
  id: 'wf-1',
  task: { type: 'code-sweep' },
  targets: ['a', 'b', 'c', 'd', 'e'],
  adapter: 'llamaindex',
  user: { name: 'ada' },
  ...over,
})

const partial = (...failed: string[]): object => ({ status: 'partial', failed, error: refused() })

/** Resolves with the letter of the next event of this type. */
function nextEvent(dlq: DeadLetterQueue, type: EventType): Promise<DeadLetter> {
  return new Promise((resolve) => {
    const off = dlq.on('*', (event) => {
      if (event.type !== type || !('letter' in event) || !event.letter) return
      off()
      resolve(event.letter)
    })
  })
}

const notes = ({ history }: DeadLetter): unknown[] =>
  history.map(({ action, note }) => (note === undefined ? action : `${action}: ${note}`))

describe('a retry of a workflow', () => {
  it('runs the same task with the same targets, adapter, user and metadata', async () => {
    const { dlq, clock } = await aQueue({ backoff: immediate() })
    const seen: { task: WorkflowTask; run: WorkflowRun }[] = []
    const guard = dlq.workflow({
      handler: (task, run) => {
        seen.push({ task, run })
        if (!run.letter) throw refused()
      },
    })
    const given = sweep({ metadata: { team: 'platform' } })
    const answer = await guard.run(given)
    dlq.start()
    await clock.advance(10)
    expect(seen).toHaveLength(2)
    expect(seen[0]!.task).toBe(given)
    const { letterId } = answer as { letterId: string }
    const idempotencyKey = `${letterId}:1:0`
    expect(seen[0]!.run).toMatchObject({ attempt: 0, epoch: 0, idempotencyKey })
    expect(seen[0]!.run).not.toHaveProperty('letter')
    expect(seen[1]!.task).toEqual(given)
    expect(seen[1]!.run).toMatchObject({
      letter: { id: letterId, state: 'retrying' },
      attempt: 1,
      epoch: 1,
      idempotencyKey,
    })
    expect(seen[1]!.run.signal.aborted).toBe(false)
    expect((await dlq.get(letterId))?.state).toBe('resolved')
    await dlq.close()
  })

  it('has the idempotency key of the first run, also with fewer targets', async () => {
    const { dlq, clock } = await aQueue({ backoff: immediate() })
    const keys: string[] = []
    const guard = dlq.workflow({
      handler: ({ targets = [] }, run) => {
        keys.push(run.idempotencyKey)
        return targets.length > 1
          ? { status: 'partial', failed: targets.slice(1), error: new Error('slow') }
          : 'done'
      },
    })
    const { letterId } = (await guard.run(sweep({ targets: ['a', 'b', 'c'] }))) as {
      letterId: string
    }
    dlq.start()
    await clock.advance(10)
    expect(keys).toEqual(Array(3).fill(`${letterId}:1:0`))
    await dlq.close()
  })

  it('has the idempotency key of the failed run when enqueue() stores the task', async () => {
    const { dlq } = await aQueue()
    const keys: string[] = []
    const guard = dlq.workflow({ strategy: 'manual' })
    const task = sweep()
    const failing = (_task: WorkflowTask, run: WorkflowRun): never => {
      keys.push(run.idempotencyKey)
      throw refused()
    }
    await guard.run(task, failing)
    const { letterId } = (await guard.enqueue(task, refused())) as { letterId: string }
    expect(keys).toEqual([`${letterId}:1:0`])
    await dlq.resolve(letterId)
    const second = (await guard.enqueue(task, refused())) as { letterId: string }
    expect(second.letterId).not.toBe(letterId)
  })

  it('uses the last given function when there is no handler', async () => {
    const { dlq, clock } = await aQueue({ backoff: immediate() })
    const guard = dlq.workflow()
    const retried: string[] = []
    const named =
      (name: string) =>
      ({ id }: WorkflowTask, run: WorkflowRun): void => {
        if (!run.letter) throw refused()
        retried.push(`${id} by ${name}`)
      }
    await guard.run(sweep({ id: 'x' }), named('first'))
    await guard.run(sweep({ id: 'y' }), named('last'))
    dlq.start()
    await clock.advance(10)
    expect(retried.sort()).toEqual(['x by last', 'y by last'])
    await dlq.close()
  })

  it('prefers the handler to the function of the first run', async () => {
    const { dlq, clock, eventsOf } = await aQueue({ backoff: immediate() })
    const guard = dlq.workflow({ handler: () => 'done' })
    await guard.run(sweep(), () => Promise.reject(refused()))
    dlq.start()
    await clock.advance(10)
    expect(eventsOf('resolved')).toHaveLength(1)
    await dlq.close()
  })

  it.each([
    ['throws', () => Promise.reject(refused())],
    ['returns ok: false', () => ({ ok: false, error: refused() })],
    ['returns failed', () => ({ status: 'failed', error: refused() })],
    ['returns partial', () => partial('a')],
  ])('fails again when the workflow %s', async (_title, work) => {
    const { dlq, clock } = await aQueue({ backoff: immediate(), maxRetries: 2, breaker: false })
    const answer = await dlq.workflow({ handler: work }).run(sweep())
    dlq.start()
    await clock.advance(10)
    expect(await dlq.get((answer as { letterId: string }).letterId)).toMatchObject({
      state: 'exhausted',
      retries: 2,
      failure: { code: 'ECONNREFUSED' },
    })
    await dlq.close()
  })

  it('stores no second letter when its handler runs the guard, and fails like the guard', async () => {
    const { dlq, clock } = await aQueue({ backoff: immediate(), maxRetries: 2, breaker: false })
    const answers: unknown[] = []
    const guard = dlq.workflow()
    dlq.handle('outer', async ({ input }) => {
      const answer = await guard.run(input as WorkflowTask, () => Promise.reject(refused()))
      answers.push(answer)
      return answer
    })
    const { id } = await dlq.enqueue({ type: 'outer', payload: sweep() }, refused())
    dlq.start()
    await clock.advance(10)
    expect(answers[0]).toMatchObject({
      ok: false,
      status: 'failed',
      enqueued: false,
      why: 'inside-a-retry',
      detail: `the failure belongs to letter ${id}, which is being retried`,
    })
    const { items } = await dlq.find()
    expect(items).toMatchObject([{ id, state: 'exhausted', retries: 2, occurrences: 1 }])
    expect(guard.counts()).toMatchObject({ enqueued: 0, skipped: { 'inside-a-retry': 2 } })
    await dlq.close()
  })

  it('of another queue stores a failed task before it resolves', async () => {
    const { dlq, clock, events } = await aQueue({ backoff: immediate() })
    const guard = dlq.workflow()
    dlq.handle('outer', async ({ input }) => {
      await guard.run(input as WorkflowTask, () => partial('b', 'd'))
    })
    await dlq.enqueue({ type: 'outer', payload: sweep() }, refused())
    dlq.start()
    await clock.advance(1)
    const order = events.flatMap((event) =>
      event.type === 'captured' || event.type === 'resolved' ? [event.letter.queue] : [],
    )
    expect(order).toEqual(['outer', 'workflow', 'outer'])
    const [letter] = (await dlq.find({ queue: 'workflow', payload: true })).items
    expect(decodePayload(letter!.payload)).toMatchObject({ targets: ['b', 'd'] })
    expect(guard.counts()).toMatchObject({ enqueued: 1, skipped: { 'inside-a-retry': 0 } })
    await dlq.close()
  })

  it('of another queue stores by the strategy at the time of the failure, and counts once', async () => {
    const { dlq, clock } = await aQueue({ backoff: immediate() })
    const guard = dlq.workflow({ strategy: 'automatic' })
    dlq.handle('outer', async () => {
      await guard.run(sweep({ id: 'failed under automatic' }), () => Promise.reject(refused()))
      guard.setStrategy('disabled')
      await guard.run(sweep({ id: 'failed under disabled' }), () => Promise.reject(refused()))
      guard.setStrategy('manual')
    })
    await dlq.enqueue({ type: 'outer' }, refused())
    dlq.start()
    await clock.advance(1)
    expect((await dlq.find({ queue: 'workflow' })).items).toMatchObject([
      { source: { taskId: 'failed under automatic' } },
    ])
    expect(guard.counts()).toMatchObject({
      enqueued: 1,
      skipped: { 'inside-a-retry': 0, disabled: 1, manual: 0 },
    })
    await dlq.close()
  })

  it('fails without a second letter when a handler of its queue runs the guard', async () => {
    const { dlq, clock } = await aQueue({ backoff: immediate(), maxRetries: 2, breaker: false })
    const guard = dlq.workflow()
    let calls = 0
    dlq.handle('workflow', ({ letter, input }) => {
      calls++
      const { task } = input as WorkflowTask
      return guard.run({ id: letter.id, task }, () => Promise.reject(refused()))
    })
    await guard.enqueue(sweep(), refused())
    dlq.start()
    await clock.advance(10)
    expect(calls).toBe(2)
    expect((await dlq.find()).items).toMatchObject([{ state: 'exhausted' }])
    await dlq.close()
  })

  it('narrows its targets when its handler runs the guard of the same workflow', async () => {
    const { dlq, clock } = await aQueue({ backoff: immediate(), breaker: false })
    const runs: unknown[] = []
    const guard: WorkflowGuard = dlq.workflow({
      handler: (task) =>
        guard.run(task, ({ targets = [] }) => {
          runs.push(targets)
          return targets.length > 1 ? partial(...targets.slice(1)) : undefined
        }),
    })
    await guard.run(sweep({ targets: ['a', 'b', 'c'] }), () => partial('a', 'b', 'c'))
    dlq.start()
    await clock.advance(10)
    expect(runs).toEqual([['a', 'b', 'c'], ['b', 'c'], ['c']])
    expect((await dlq.find()).items).toMatchObject([{ state: 'resolved' }])
    await dlq.close()
  })

  it('derives the remaining task from the stored task, not from the mutated one', async () => {
    const { dlq, clock } = await aQueue({ backoff: immediate(), breaker: false })
    const seen: unknown[] = []
    const guard = dlq.workflow<{ steps: string[] }>({
      handler: ({ task, targets }) => {
        seen.push({ steps: [...task.steps], targets: [...targets!] })
        task.steps.push('mutated')
        targets!.length = 0
        return seen.length < 3 ? partial('b') : undefined
      },
    })
    await guard.run({ id: 'x', task: { steps: ['one'] }, targets: ['a', 'b'] })
    dlq.start()
    await clock.advance(10)
    expect(seen).toEqual([
      { steps: ['one'], targets: ['a', 'b'] },
      { steps: ['one'], targets: ['b'] },
      { steps: ['one'], targets: ['b'] },
    ])
    await dlq.close()
  })

  it('runs a letter that dlq.enqueue stored, and a letter with an edited payload', async () => {
    const { dlq, clock } = await aQueue({ backoff: fixed(1000) })
    const seen: WorkflowTask[] = []
    const guard = dlq.workflow({
      handler: (task, run) => (run.letter ? seen.push(task) : Promise.reject(refused())),
    })
    const other = await dlq.enqueue({ type: 'workflow', payload: 'plain' }, refused())
    const { letterId: id } = (await guard.run(sweep())) as { letterId: string }
    await dlq.edit(id, { payload: { task: 'edited' }, by: 'mia', reason: 'wrong type' })
    dlq.start()
    await clock.advance(2000)
    expect(seen).toEqual(
      expect.arrayContaining([
        { id: other.id, task: 'plain', metadata: {} },
        { ...sweep({ task: 'edited' }), metadata: {} },
      ]),
    )
    await dlq.close()
  })
})

const folder = aFolder('workflow')

/** Stores that can be closed and opened again. */
const places = [
  {
    kind: 'sqlite',
    missing: undefined,
    begin: async () => ({
      url: `sqlite:${join(folder, 'letters.db')}`,
      clear: () => Promise.resolve(),
    }),
  },
  {
    kind: 'postgres',
    missing: backend('postgres').missing,
    begin: async () => {
      const { url } = backend('postgres')
      const place = postgresPlace(url)
      return { url: `${url}?schema=${place.name}`, clear: place.clear }
    },
  },
  {
    kind: 'redis',
    missing: backend('redis').missing,
    begin: async () => {
      const { url } = backend('redis')
      const place = redisPlace(url)
      return { url: `${url}?prefix=${place.name}`, clear: place.clear }
    },
  },
  {
    kind: 'opensearch',
    missing: backend('opensearch').missing,
    begin: async () => {
      const { url } = backend('opensearch')
      const place = opensearchPlace(url)
      return { url: `${url.replace(/^http/, 'opensearch')}/${place.name}`, clear: place.clear }
    },
  },
]

describe.each(places)('a partial failure on $kind', ({ missing, begin }) => {
  it.skipIf(missing)('retries only the failed targets, across restarts', async () => {
    const { url, clear } = await begin()
    const seen: WorkflowTask[] = []
    const answers = [partial('b', 'c', 'e'), partial('c', 'e'), partial('e'), 'done']
    const open = async (): Promise<DeadLetterQueue> => {
      const dlq = await DeadLetterQueue.open(url, { backoff: fixed(3_600_000) })
      dlq.workflow({ handler: (task) => answers[seen.push(task) - 1] })
      dlq.start()
      return dlq
    }
    const retried = async (dlq: DeadLetterQueue, id: string, as: EventType): Promise<void> => {
      const settled = nextEvent(dlq, as)
      await dlq.retry(id)
      await settled
    }
    try {
      const first = await DeadLetterQueue.open(url, { maxRetries: 5 })
      const failed = await first.workflow().run(sweep(), () => Promise.reject(refused()))
      const { letterId: id } = failed as { letterId: string }
      await first.close()
      const second = await open()
      await retried(second, id, 'rescheduled')
      await retried(second, id, 'rescheduled')
      await second.close()
      const third = await open()
      await retried(third, id, 'rescheduled')
      await retried(third, id, 'resolved')
      const letter = (await third.get(id))!
      const original = (await third.original(id))!
      await third.close()

      const { targets, ...rest } = sweep()
      const left = [targets, ['b', 'c', 'e'], ['c', 'e'], ['e']]
      expect(seen).toEqual(left.map((some) => ({ ...rest, targets: some, metadata: {} })))
      const { task, adapter, user } = rest
      expect(decodePayload(letter.payload)).toEqual({ task, targets: ['e'], adapter, user })
      expect(decodePayload(original)).toEqual({ task, targets, adapter, user })
      expect(letter).toMatchObject({
        state: 'resolved',
        retries: 4,
        source: { targets },
        payload: { version: 4 },
      })
      expect(notes(letter)).toEqual([
        'capture',
        'retry',
        'reschedule: 3 of 5 targets are left',
        'retry',
        'reschedule: 2 of 5 targets are left',
        'retry',
        'reschedule: 1 of 5 targets is left',
        'retry',
        'resolve',
      ])
    } finally {
      await clear()
    }
  })
})

describe('a handler that reports a remainder', () => {
  it('gets the remainder as its next input', async () => {
    const { dlq, clock } = await aQueue({ backoff: immediate(), breaker: false })
    const inputs: unknown[] = []
    dlq.handle('a', ({ input }) => {
      inputs.push(input)
      const [, ...remaining] = input as number[]
      return remaining.length > 0 ? { ok: false, error: refused(), remaining } : undefined
    })
    const { id } = await dlq.enqueue({ type: 'a', payload: [1, 2, 3] }, refused())
    dlq.start()
    await clock.advance(10)
    expect(inputs).toEqual([[1, 2, 3], [2, 3], [3]])
    const letter = (await dlq.get(id))!
    expect(letter).toMatchObject({ state: 'resolved', payload: { version: 3 } })
    expect(decodePayload((await dlq.original(id))!)).toEqual([1, 2, 3])
    expect(notes(letter)).toContain(
      'reschedule: part of the work is done: the next run gets the remaining input',
    )
    await dlq.close()
  })

  it.each([
    ['exhausted', refused, 1],
    ['parked', forbidden, 5],
  ])(
    'continues with the remainder after a manual retry of a letter that is %s',
    async (state, error, maxRetries) => {
      const { dlq, clock } = await aQueue({ backoff: immediate(), maxRetries, breaker: false })
      const inputs: unknown[] = []
      dlq.handle('a', ({ input }) => {
        inputs.push(input)
        if (inputs.length === 1)
          return { ok: false, error: error(), remaining: 'half', note: 'half is left' }
      })
      const { id } = await dlq.enqueue({ type: 'a', payload: 'whole' }, refused())
      dlq.start()
      await clock.advance(10)
      const letter = (await dlq.get(id))!
      expect(letter).toMatchObject({ state, payload: { version: 2 } })
      expect(letter.history.at(-1)!.note).toBe('half is left')
      expect(decodePayload(letter.payload)).toBe('half')
      await dlq.retry(id)
      await clock.advance(10)
      expect(inputs).toEqual(['whole', 'half'])
      expect((await dlq.get(id))?.state).toBe('resolved')
      await dlq.close()
    },
  )

  it('gets the same payload when the remainder is too large, which counts and emits an error', async () => {
    const { dlq, clock, eventsOf } = await aQueue({
      backoff: immediate(),
      breaker: false,
      maxRetries: 2,
      maxPayloadBytes: 100,
    })
    const inputs: unknown[] = []
    dlq.handle('a', ({ input }) => {
      inputs.push(input)
      return { ok: false, error: refused(), remaining: 'x'.repeat(101), note: 'less is left' }
    })
    const { id } = await dlq.enqueue({ type: 'a', payload: 'whole' }, refused())
    dlq.start()
    await clock.advance(10)
    expect(inputs).toEqual(['whole', 'whole'])
    const letter = (await dlq.get(id))!
    expect(letter).toMatchObject({ state: 'exhausted', retries: 2, payload: { version: 1 } })
    const note = 'the remaining input is too large to store: the next run gets all of it again'
    expect(notes(letter).slice(1)).toEqual([`reschedule: ${note}`, `exhaust: ${note}`])
    expect(eventsOf('error')).toMatchObject([
      { during: `settling of letter ${id}`, error: { code: 'TOO_LARGE' } },
      { during: `settling of letter ${id}`, error: { code: 'TOO_LARGE' } },
    ])
    await dlq.close()
  })

  it('may report a remainder up to the size of its letter, although the limit is lower now', async () => {
    const { dlq, clock, store } = await aQueue({ backoff: immediate(), breaker: false })
    const { id } = await dlq.enqueue({ type: 'a', payload: 'x'.repeat(200) }, refused())
    const later = await DeadLetterQueue.open(store, { clock, maxPayloadBytes: 100 })
    later.handle('a', () => ({ ok: false, error: forbidden(), remaining: 'x'.repeat(150) }))
    later.start()
    await clock.advance(10)
    expect(await dlq.get(id)).toMatchObject({ state: 'parked', payload: { version: 2, size: 152 } })
    await later.close()
  })

  it('leaves a lossy payload marked as lossy', async () => {
    const { dlq, clock } = await aQueue({ backoff: fixed(60_000) })
    dlq.handle('a', () => ({ ok: false, error: refused(), remaining: 'half' }))
    const { id } = await dlq.enqueue({ type: 'a', payload: { call: () => 1 } }, refused())
    dlq.start()
    await clock.advance(60_000)
    expect((await dlq.get(id))!.payload).toMatchObject({ version: 2, lossy: true })
    await dlq.close()
  })

  it('gets the same payload when the remainder is undefined', async () => {
    const { dlq, clock } = await aQueue({ backoff: fixed(60_000) })
    dlq.handle('a', () => ({ ok: false, error: timedOut(), remaining: undefined, note: 'ignored' }))
    const { id } = await dlq.enqueue({ type: 'a', payload: 'whole' }, refused())
    dlq.start()
    await clock.advance(60_000)
    const letter = (await dlq.get(id))!
    expect(letter).toMatchObject({ state: 'pending', retries: 1, payload: { version: 1 } })
    expect(letter.history.at(-1)).not.toHaveProperty('note')
    await dlq.close()
  })

  it('fails the run when reading its result throws', async () => {
    const { dlq, clock } = await aQueue({ backoff: immediate(), maxRetries: 1 })
    dlq.handle('a', () => ({
      ok: false,
      get error(): never {
        throw new Error('unreadable')
      },
      get remaining(): never {
        throw new Error('unreadable')
      },
      note: 42,
    }))
    const { id } = await dlq.enqueue({ type: 'a', payload: 'whole' }, refused())
    dlq.start()
    await clock.advance(10)
    expect(await dlq.get(id)).toMatchObject({ state: 'exhausted', payload: { version: 1 } })
    await dlq.close()
  })
})
