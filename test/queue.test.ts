import { hostname } from 'node:os'
import { describe, expect, it } from 'vitest'
import { fixed, immediate } from '../src/policy/backoff.ts'
import { RedriveError } from '../src/errors.ts'
import type { GroupQuery } from '../src/letter/group.ts'
import { passThrough } from '../src/stores/pass-through.ts'
import { decodePayload } from '../src/letter/payload.ts'
import type { LetterFilter } from '../src/letter/query.ts'
import type { AppOptions } from '../src/options/options.ts'
import type { StatisticsOptions } from '../src/admin/statistics.ts'
import type { Store } from '../src/store.ts'
import { memoryStore } from '../src/stores/memory/memory.ts'
import { DeadLetterQueue } from '../src/queue/queue.ts'
import type { FakeClock } from '../src/testing/index.ts'
import { aQueue, deferred, forbidden, refused } from './a-queue.ts'

describe('DeadLetterQueue.open', () => {
  // As from an environment variable that is not set.
  it.each([undefined, null, 7, {}])('rejects %j and names what to pass', async (store) => {
    await expect(DeadLetterQueue.open(store as never)).rejects.toMatchObject({
      code: 'INVALID_INPUT',
      message: expect.stringContaining('sqlite:redrive.db') as string,
    })
  })
})

describe('DeadLetterQueue.enqueue', () => {
  it('stores a failure as a pending letter with a first delay of one minute', async () => {
    const { dlq, clock } = await aQueue()
    const letter = await dlq.enqueue(
      { type: 'send-mail', payload: { to: 'mia' }, endpoint: '/mail' },
      refused(),
    )
    expect(letter).toMatchObject({
      queue: 'send-mail',
      state: 'pending',
      category: 'network',
      retries: 0,
      attempts: 1,
      maxRetries: 3,
      backoffMs: 60_000,
    })
    expect(Date.parse(letter.retryAt!) - clock.now()).toBe(60_000)
    expect(await dlq.get(letter.id)).toEqual(letter)
  })

  it('stores permanent failures as parked letters', async () => {
    const { dlq } = await aQueue()
    const letter = await dlq.enqueue({ type: 'send-mail' }, forbidden())
    expect(letter).toMatchObject({ state: 'parked', reason: 'permanent', category: 'permission' })
    expect(letter.review?.neededSince).toBe(letter.deadLetteredAt)
    expect(letter.retryAt).toBeUndefined()
  })

  it('emits events for a letter that is parked at capture', async () => {
    const { dlq, eventsOf } = await aQueue()
    const { id } = await dlq.enqueue({ type: 'send-mail' }, forbidden())
    expect(eventsOf('parked').map(({ letter }) => letter.id)).toEqual([id])
  })

  it('returns the stored letter when the same id is captured again', async () => {
    const { dlq, eventsOf } = await aQueue()
    const id = '0198c0de-0000-7000-8000-000000000001'
    const first = await dlq.enqueue({ type: 'a', payload: 1 }, refused(), { id })
    const again = await dlq.enqueue({ type: 'a', payload: 1 }, refused(), { id })
    expect(again).toEqual(first)
    expect(eventsOf('captured')).toHaveLength(1)
  })

  it('rejects another payload with the same id, and keeps the first', async () => {
    const { dlq } = await aQueue()
    const id = '0198c0de-0000-7000-8000-000000000001'
    await dlq.enqueue({ type: 'a', payload: 1 }, refused(), { id })
    await expect(dlq.enqueue({ type: 'a', payload: 2 }, refused(), { id })).rejects.toMatchObject({
      code: 'ID_CONFLICT',
    })
    expect(Buffer.from((await dlq.get(id))!.payload.bytes).toString()).toBe('1')
  })

  it('stores a new letter when the duplicate is removed concurrently', async () => {
    const { dlq, store } = await aQueue()
    const first = await dlq.enqueue({ type: 'a' }, refused(), { dedupeKey: 'k' })
    const get = store.get.bind(store)
    store.get = async (ids) => {
      store.get = get
      await store.remove({ ids: [first.id] })
      return get(ids)
    }
    const again = await dlq.enqueue({ type: 'a' }, refused(), { dedupeKey: 'k' })
    expect(again.id).not.toBe(first.id)
    expect(await dlq.get(again.id)).toMatchObject({ state: 'pending', occurrences: 1 })
    await dlq.close()
  })

  it('adds an occurrence to the open letter with the same dedupe key', async () => {
    const { dlq, eventsOf } = await aQueue()
    const first = await dlq.enqueue({ type: 'a', payload: 1 }, refused(), { dedupeKey: 'k' })
    const again = await dlq.enqueue({ type: 'a', payload: 1 }, forbidden(), { dedupeKey: 'k' })
    expect(again).toMatchObject({ id: first.id, occurrences: 2 })
    expect(eventsOf('duplicate')).toHaveLength(1)
    expect((await dlq.find()).items).toHaveLength(1)
  })

  it('rejects at maxItems with QUEUE_FULL and emits an event', async () => {
    const { dlq, eventsOf } = await aQueue({ maxItems: 1 })
    await dlq.enqueue({ type: 'a' }, refused())
    await expect(dlq.enqueue({ type: 'a' }, refused())).rejects.toMatchObject({
      code: 'QUEUE_FULL',
    })
    expect(eventsOf('full')).toHaveLength(1)
  })

  it('evicts resolved letters if configured', async () => {
    const { dlq, eventsOf } = await aQueue({ maxItems: 1, overflow: 'evict-resolved' })
    const first = await dlq.enqueue({ type: 'a' }, refused())
    await dlq.resolve(first.id)
    const second = await dlq.enqueue({ type: 'a' }, refused())
    expect((await dlq.find()).items.map((letter) => letter.id)).toEqual([second.id])
    expect(eventsOf('evicted')).toEqual([{ type: 'evicted', count: 1 }])
    expect((await dlq.stats()).lifetime.evicted).toBe(1)
  })

  it('rejects payloads above the limit before storing anything', async () => {
    const { dlq } = await aQueue({ maxPayloadBytes: 10 })
    await expect(
      dlq.enqueue({ type: 'a', payload: 'x'.repeat(11) }, refused()),
    ).rejects.toMatchObject({ code: 'TOO_LARGE' })
    expect((await dlq.find()).items).toEqual([])
  })

  it.each([
    ['an empty type', { type: '' }, {}],
    ['control characters in the type', { type: 'a\nb' }, {}],
    ['a type that is no text', { type: 7 as unknown as string }, {}],
    ['an id that is no UUID', { type: 'a' }, { id: '../../etc' }],
    ['a negative maxRetries', { type: 'a' }, { maxRetries: -1 }],
    ['a moment that is none', { type: 'a' }, { expiresAt: 'tomorrow' }],
    ['a number in place of a moment', { type: 'a' }, { expiresAt: 60_000 as never }],
    ['words that a date can be read into', { type: 'a' }, { expiresAt: 'in 5' }],
    ['a day that does not exist', { type: 'a' }, { failedAt: '2026-02-30T00:00:00Z' }],
    ['another form of a moment', { type: 'a' }, { failedAt: '1/2/2026' }],
    ['no operation', null as never, {}],
    ['holes in the tags', { type: 'a' }, { tags: Array<string>(2) }],
    ['an empty dedupe key', { type: 'a' }, { dedupeKey: '' }],
  ])('rejects %s with INVALID_INPUT', async (_what, operation, context) => {
    const { dlq } = await aQueue()
    await expect(dlq.enqueue(operation, refused(), context)).rejects.toMatchObject({
      code: 'INVALID_INPUT',
    })
    expect((await dlq.find()).items).toEqual([])
  })

  it('does not change when the caller changes the input later', async () => {
    const { dlq } = await aQueue()
    const payload = { nested: { value: 1 } }
    const metadata = { team: 'payments' }
    const { id } = await dlq.enqueue({ type: 'a', payload }, refused(), { metadata })
    payload.nested.value = 2
    metadata.team = 'other'
    const kept = (await dlq.get(id))!
    expect(JSON.parse(Buffer.from(kept.payload.bytes).toString())).toEqual({ nested: { value: 1 } })
    expect(kept.metadata).toEqual({ team: 'payments' })
  })

  it('is rejected once the queue is closed', async () => {
    const { dlq } = await aQueue()
    await dlq.close()
    await dlq.close()
    await expect(dlq.enqueue({ type: 'a' }, refused())).rejects.toMatchObject({ code: 'CLOSED' })
  })
})

describe('DeadLetterQueue.enqueueAll', () => {
  it('rejects iterables that are not arrays, which would be silently ignored', async () => {
    const { dlq } = await aQueue()
    const failures = new Set([{ operation: { type: 'a' }, error: refused() }])
    await expect(dlq.enqueueAll(failures as never)).rejects.toMatchObject({ code: 'INVALID_INPUT' })
  })

  it('stores many failures in the given order', async () => {
    const { dlq } = await aQueue()
    const failures = Array.from({ length: 1200 }, (_, n) => ({
      operation: { type: 'bulk', payload: n },
      error: refused(),
    }))
    const ids = await dlq.enqueueAll(failures)
    expect(ids).toHaveLength(1200)
    for (const [n, id] of ids.entries()) expect(decodePayload((await dlq.get(id))!.payload)).toBe(n)
    expect((await dlq.stats()).states.pending).toBe(1200)
  })

  it('reports how many letters are stored when one of many writes fails', async () => {
    const { dlq } = await aQueue({ maxItems: 300 })
    const failures = Array.from({ length: 1000 }, () => ({
      operation: { type: 'bulk' },
      error: refused(),
    }))
    await expect(dlq.enqueueAll(failures)).rejects.toThrow('300 of 1000 are stored')
    expect((await dlq.stats()).size).toBe(300)
  })

  it('reports how many letters are stored when it fails', async () => {
    const { dlq } = await aQueue({ maxItems: 3 })
    const failures = Array.from({ length: 5 }, () => ({
      operation: { type: 'bulk' },
      error: refused(),
    }))
    await expect(dlq.enqueueAll(failures)).rejects.toThrow('3 of 5 are stored')
  })
})

describe('DeadLetterQueue.guard', () => {
  it('stores the failure, rethrows the same error, and runs the function again when due', async () => {
    const { dlq, clock, eventsOf } = await aQueue()
    let calls = 0
    const error = refused()
    const charge = dlq.guard('charge', async (order: { id: number }, run) => {
      calls++
      if (!run.letter) throw error
      return { order, attempt: run.attempt }
    })
    dlq.start()
    await expect(charge({ id: 42 })).rejects.toBe(error)
    expect(calls).toBe(1)
    await clock.advance(60_001)
    expect(calls).toBe(2)
    expect(eventsOf('resolved').map(({ letter }) => letter.retries)).toEqual([1])
    await dlq.close()
  })

  it('rejects a non-function when it is wrapped, not when it is called', async () => {
    const { dlq } = await aQueue()
    expect(() => dlq.guard('charge', undefined as never)).toThrow(
      'the handler of charge must be a function',
    )
  })

  it('returns results and stores nothing when nothing fails', async () => {
    const { dlq } = await aQueue()
    const double = dlq.guard('double', async (n: number) => n * 2)
    expect(await double(21)).toBe(42)
    expect((await dlq.stats()).lifetime.captured).toBe(0)
  })

  it('resolves with undefined once the letter is stored, with rethrow: false', async () => {
    const { dlq } = await aQueue()
    const quiet = dlq.guard('quiet', async () => Promise.reject(refused()), { rethrow: false })
    expect(await quiet(undefined)).toBeUndefined()
    expect((await dlq.stats()).lifetime.captured).toBe(1)
  })

  it('treats a returned { ok: false, error } as a failure', async () => {
    const { dlq } = await aQueue()
    const soft = dlq.guard('soft', async () => ({ ok: false as const, error: refused() }))
    expect(await soft(undefined)).toMatchObject({ ok: false })
    expect((await dlq.find({ queue: 'soft' })).items[0]).toMatchObject({ category: 'network' })
  })

  it('stores the input as passed, even if the function changes it', async () => {
    const { dlq } = await aQueue()
    const spoil = dlq.guard('spoil', async (input: { list: number[] }) => {
      input.list.push(99)
      throw refused()
    })
    await spoil({ list: [1] }).catch(() => {})
    const [letter] = (await dlq.find({ queue: 'spoil', payload: true })).items
    expect(Buffer.from(letter!.payload.bytes).toString()).toBe('{"list":[1]}')
  })

  it('stores no second letter when it fails inside a run', async () => {
    const { dlq, clock } = await aQueue({ backoff: fixed(100) })
    const inner = dlq.guard('inner', async () => Promise.reject(refused()))
    dlq.handle('outer', async () => inner(undefined))
    dlq.start()
    await dlq.enqueue({ type: 'outer' }, refused(), { maxRetries: 2 })
    await clock.advance(1000)
    expect((await dlq.stats()).queues).toEqual({ outer: 1 })
    await dlq.close()
  })

  it('rethrows the original error when the letter cannot be stored, and emits the other one', async () => {
    const { dlq, eventsOf } = await aQueue({ maxItems: 1 })
    await dlq.enqueue({ type: 'a' }, refused())
    const error = refused()
    await expect(dlq.guard('b', async () => Promise.reject(error))(undefined)).rejects.toBe(error)
    expect(eventsOf('error')).toHaveLength(1)
    const swallowing = dlq.guard('c', async () => Promise.reject(error), { rethrow: false })
    await expect(swallowing(undefined)).rejects.toMatchObject({
      code: 'STORE_UNAVAILABLE',
      cause: error,
    })
  })
})

describe('DeadLetterQueue.stats', () => {
  it('has every state, category and priority, also those with count 0', async () => {
    const { dlq } = await aQueue({ maxItems: 10 })
    await dlq.enqueue({ type: 'a' }, refused(), { priority: 'critical' })
    const stats = await dlq.stats()
    expect(stats).toMatchObject({
      size: 1,
      maxItems: 10,
      utilisation: 10,
      processor: { running: false, active: 0, pollMs: 1000 },
    })
    expect(stats.states).toEqual({
      pending: 1,
      retrying: 0,
      resolved: 0,
      exhausted: 0,
      parked: 0,
      archived: 0,
    })
    expect(stats.priorities).toEqual({ critical: 1, high: 0, medium: 0, low: 0 })
    expect(Object.values(stats.categories).reduce((sum, count) => sum + count)).toBe(1)
    expect(stats.policies).toEqual({ exponential: 1 })
  })
})

describe('DeadLetterQueue.stats by severity and source', () => {
  it('counts stored letters exactly, without archived ones', async () => {
    const { dlq } = await aQueue()
    const network = await dlq.enqueue({ type: 'a' }, refused())
    const permission = await dlq.enqueue({ type: 'a' }, forbidden())
    const archived = await dlq.enqueue({ type: 'a' }, forbidden())
    await dlq.archive(archived.id)
    const nightly = dlq.workflow({ name: 'nightly' })
    await nightly.run({ id: 'wf_1', task: {} }, () => Promise.reject(refused())).catch(() => {})
    const { severities, sources } = await dlq.stats({ by: ['severity', 'source'] })
    expect(sources).toEqual({ operation: 2, mailbox: 0, workflow: 1, pipeline: 0 })
    const expected = { low: 0, medium: 0, high: 0, critical: 0 }
    for (const { severity } of [network, network, permission]) expected[severity] += 1
    expect(severities).toEqual(expected)
  })

  it('leaves both out of the default call', async () => {
    const { dlq } = await aQueue()
    expect(await dlq.stats()).not.toHaveProperty('severities')
    expect(await dlq.stats({ by: ['source'] })).not.toHaveProperty('severities')
  })

  it.each([
    [{ by: ['severty'] }, 'unknown by "severty": did you mean "severity"?'],
    [{ bye: [] }, 'unknown key "bye"'],
  ])('rejects %j', async (options, message) => {
    const { dlq } = await aQueue()
    await expect(dlq.stats(options as StatisticsOptions)).rejects.toThrow(message)
  })
})

describe('DeadLetterQueue filters', () => {
  const bad = { status: 'resolved' } as unknown as LetterFilter
  const hint = 'unknown key "status" in the letter'

  it('are checked regardless of the store', async () => {
    const { dlq } = await aQueue({}, (clock) => {
      const store = memoryStore({ clock })
      const careless: Partial<Store> = {
        find: () => Promise.resolve({ items: [] }),
        tally: () => Promise.resolve(new Map()),
        remove: () => Promise.reject(new Error('must not be called')),
      }
      return passThrough(store, careless)
    })
    await expect(dlq.find(bad)).rejects.toThrow(hint)
    await expect(dlq.clear(bad, { confirm: 0 })).rejects.toThrow(hint)
    await expect(dlq.exportOperations(bad)).rejects.toThrow(hint)
    await expect(dlq.search('x', { among: bad })).rejects.toThrow(hint)
  })

  it('find a workflow by its own id', async () => {
    const { dlq } = await aQueue()
    const nightly = dlq.workflow({ name: 'nightly' })
    await nightly.run({ id: 'wf_1', task: {} }, () => Promise.reject(refused())).catch(() => {})
    const { items } = await dlq.find({ sourceId: 'wf_1' })
    expect(items.map(({ queue }) => queue)).toEqual(['nightly'])
  })
})

describe('DeadLetterQueue app', () => {
  it('is in every letter: host, process, name and version', async () => {
    const { dlq } = await aQueue({ app: { name: 'shop', version: '1.2.3', host: 'web-1' } })
    const { id } = await dlq.enqueue({ type: 'a' }, refused())
    const app = { name: 'shop', version: '1.2.3', host: 'web-1', pid: process.pid }
    expect((await dlq.get(id))!.app).toEqual(app)
    expect((await dlq.find()).items[0]!.app).toEqual(app)
  })

  it('has the host name of the machine by default', async () => {
    const { dlq } = await aQueue({ app: { name: undefined } as unknown as AppOptions })
    const { app } = await dlq.enqueue({ type: 'a' }, refused())
    expect(app).toEqual({ host: hostname(), pid: process.pid })
  })

  it('rejects an unknown key', async () => {
    await expect(aQueue({ app: { nam: 'shop' } as AppOptions })).rejects.toThrow(
      'unknown option "app.nam": did you mean "name"?',
    )
  })
})

describe('DeadLetterQueue.getSummary', () => {
  it('escapes hidden characters in queue names', async () => {
    const { dlq } = await aQueue()
    await dlq.enqueue({ type: 'a\u009b2J\u2028Total Successes: 9' }, refused())
    expect((await dlq.getSummary()).split('\n')).toContain(
      '- a\\u009b2J\\u2028Total Successes: 9: 1',
    )
    await dlq.close()
  })
})

describe('DeadLetterQueue.groups', () => {
  it('groups letters by cause, the most frequent first', async () => {
    const { dlq } = await aQueue()
    for (let order = 0; order < 5; order++)
      await dlq.enqueue({ type: 'a' }, new Error(`order ${order} fell over in shard 7`))
    await dlq.enqueue({ type: 'a' }, forbidden())
    const { items } = await dlq.groups()
    expect(items.map((group) => group.count)).toEqual([5, 1])
    expect(items[0]).toMatchObject({
      queue: 'a',
      title: 'Error: order 4 fell over in shard 7',
      states: { pending: 5 },
    })
    const page = await dlq.groups({ limit: 1 })
    expect((await dlq.groups({ limit: 1, cursor: page.cursor! })).items[0]!.count).toBe(1)
  })

  it.each(['', 'x', '-1', '1.5', '1x'])('rejects the invalid cursor %j', async (cursor) => {
    const { dlq } = await aQueue()
    await expect(dlq.groups({ cursor })).rejects.toMatchObject({ code: 'INVALID_INPUT' })
  })

  it('returns no groups for a limit of 0, and no next page', async () => {
    const { dlq } = await aQueue()
    await dlq.enqueue({ type: 'a' }, refused())
    await dlq.enqueue({ type: 'a' }, forbidden())
    expect(await dlq.groups({ limit: 0 })).toEqual({ items: [] })
  })

  it.each([
    [{ limit: -1 }, 'limit must be a non-negative integer, got -1'],
    [{ limit: NaN }, 'limit must be a non-negative integer, got NaN'],
    [{ status: 'parked' }, 'unknown status "parked": known: open, ignored, resolved, regressed'],
    [{ sort: 'size' }, 'unknown sort "size": known: count, lastSeen, growth'],
    [{ state: 'queued' }, 'unknown state "queued": did you mean "pending"?'],
  ])('rejects %j', async (query, message) => {
    const { dlq } = await aQueue()
    await expect(dlq.groups(query as GroupQuery)).rejects.toThrow(message)
  })
})

describe('DeadLetterQueue.handle', () => {
  it('rejects a handler that is not a function', async () => {
    const { dlq } = await aQueue()
    expect(() => dlq.handle('a', undefined as never)).toThrow(
      expect.objectContaining({ code: 'INVALID_INPUT' }) as Error,
    )
  })
})

describe('DeadLetterQueue.start and stop', () => {
  it('may be called twice, and start works again after stop', async () => {
    const { dlq, clock, eventsOf } = await aQueue({ backoff: immediate() })
    dlq.handle('a', () => {})
    dlq.start()
    dlq.start()
    await dlq.stop()
    await dlq.stop()
    await dlq.enqueue({ type: 'a' }, refused())
    await clock.advance(10_000)
    expect(eventsOf('started')).toEqual([])
    dlq.start()
    await clock.advance(10)
    expect(eventsOf('resolved')).toHaveLength(1)
    await dlq.close()
    expect(clock.pending()).toBe(0)
  })

  it('waits for running handlers', async () => {
    const { dlq, clock, eventsOf } = await aQueue({ backoff: immediate() })
    const work = deferred()
    dlq.handle('a', () => work.promise)
    dlq.start()
    await dlq.enqueue({ type: 'a' }, refused())
    await clock.advance(10)
    const stopped = dlq.stop()
    work.resolve()
    await stopped
    expect(eventsOf('resolved')).toHaveLength(1)
  })

  it('aborts and releases, uncounted, runs that do not end in time', async () => {
    const { dlq, clock, eventsOf } = await aQueue({ backoff: immediate() })
    let signal: AbortSignal | undefined
    dlq.handle('a', (run) => {
      signal = run.signal
      return new Promise(() => {})
    })
    dlq.start()
    const { id } = await dlq.enqueue({ type: 'a' }, refused())
    await clock.advance(10)
    const stopped = dlq.stop({ drainMs: 1000 })
    await clock.advance(10_000)
    await stopped
    expect(signal?.aborted).toBe(true)
    expect(await dlq.get(id)).toMatchObject({ state: 'pending', retries: 0, epoch: 1 })
    expect(eventsOf('released')).toHaveLength(1)
  })

  /** One letter begins to run and is given back, and the queue is started again. */
  async function runAndRestart(dlq: DeadLetterQueue, clock: FakeClock): Promise<void> {
    dlq.start()
    await dlq.enqueue({ type: 'a' }, refused())
    await clock.advance(10)
    const stopped = dlq.stop({ drainMs: 0 })
    await clock.advance(10)
    await stopped
    dlq.start()
  }

  it('keeps the slot of a handler that continues after its letter was released', async () => {
    const { dlq, clock, eventsOf } = await aQueue({ backoff: immediate(), maxConcurrent: 1 })
    const works: (() => void)[] = []
    dlq.handle('a', () => new Promise<void>((resolve) => works.push(resolve)))
    await runAndRestart(dlq, clock)
    await clock.advance(10_000)
    expect(works).toHaveLength(1)
    const { problems } = await dlq.health()
    expect(problems).toEqual([expect.stringContaining('1 of 1 slots (maxConcurrent) are blocked')])
    works[0]!()
    await clock.advance(10)
    expect(works).toHaveLength(2)
    expect((await dlq.health()).problems).toEqual([])
    works[1]!()
    await clock.advance(10)
    expect(eventsOf('resolved')).toHaveLength(1)
  })

  it('counts both runs of a released letter towards the limit of its queue', async () => {
    const { dlq, clock } = await aQueue({ backoff: immediate(), concurrency: { max: 2 } })
    let running = 0
    dlq.handle('a', () => {
      running += 1
      return new Promise(() => {})
    })
    await runAndRestart(dlq, clock)
    await dlq.enqueue({ type: 'a' }, refused())
    await clock.advance(10_000)
    expect(running).toBe(2)
  })

  it.each([
    { options: { concurrency: { min: 5, max: 2 } }, path: 'concurrency', got: 5 },
    {
      options: { queues: { mail: { concurrency: { min: 3, max: 1 } } } },
      path: 'queues.mail.concurrency',
      got: 3,
    },
    {
      options: { dependencies: { smtp: { concurrency: { min: 2, max: 1 } } } },
      path: 'dependencies.smtp.concurrency',
      got: 2,
    },
  ])('rejects a minimum concurrency above the maximum in $path', async ({ options, path, got }) => {
    await expect(aQueue(options)).rejects.toMatchObject({
      code: 'INVALID_CONFIG',
      message: `option "${path}.min" must not be above max, got ${got}`,
    })
    const { dlq } = await aQueue({ concurrency: { min: 2, max: 2 } })
    const policy = { concurrency: { min: 2, max: 1 } }
    const problem = 'queue option "concurrency.min" must not be above max, got 2'
    expect(() => dlq.handle('a', () => {}, policy)).toThrow(problem)
    expect(() => dlq.guard('a', async () => {}, policy)).toThrow(problem)
  })

  it.each<[string, (reason: Error) => unknown, unknown]>([
    ['throws', (reason) => Promise.reject(reason), [1, 2]],
    ['returns that it failed', (error) => ({ ok: false, error }), [1, 2]],
    ['returns what remains', (error) => ({ ok: false, error, remaining: [2] }), [2]],
  ])('releases, uncounted, a run that %s once its signal aborts', async (_how, answer, left) => {
    const { dlq, clock, eventsOf } = await aQueue({ backoff: immediate() })
    dlq.handle('a', async ({ signal }) => {
      const aborted = deferred()
      signal.addEventListener('abort', () => aborted.resolve())
      await aborted.promise
      return answer(signal.reason as Error)
    })
    dlq.start()
    const { id } = await dlq.enqueue({ type: 'a', payload: [1, 2] }, refused(), { maxRetries: 1 })
    await clock.advance(10)
    const stopped = dlq.stop({ drainMs: 1000 })
    await clock.advance(1000)
    await stopped
    const letter = (await dlq.get(id))!
    expect(letter).toMatchObject({ state: 'pending', retries: 0, category: 'network' })
    expect(decodePayload(letter.payload)).toEqual(left)
    expect(eventsOf('released')).toHaveLength(1)
  })

  it('waits for running handlers on every call of close', async () => {
    const { dlq, clock } = await aQueue({ backoff: immediate() })
    const work = deferred()
    const ended: string[] = []
    dlq.handle('a', () => work.promise.then(() => ended.push('handler')))
    dlq.start()
    await dlq.enqueue({ type: 'a' }, refused())
    await clock.advance(10)
    const first = dlq.close().then(() => ended.push('first'))
    const second = dlq.close().then(() => ended.push('second'))
    await clock.advance(10)
    work.resolve()
    await Promise.all([first, second])
    expect(ended).toEqual(['handler', 'first', 'second'])
  })

  it('closes with `await using`', async () => {
    const { clock } = await aQueue()
    let kept: DeadLetterQueue | undefined
    {
      await using dlq = await DeadLetterQueue.open('memory:', { clock })
      kept = dlq
    }
    await expect(kept.enqueue({ type: 'a' }, refused())).rejects.toBeInstanceOf(RedriveError)
  })
})

describe('an object with an unknown key', () => {
  const operation = { type: 'a' }
  const context = (more: object): object => ({ priority: 'high', ...more })

  it.each<[string, (dlq: DeadLetterQueue, id: string) => unknown, string]>([
    [
      'enqueue',
      (dlq) => dlq.enqueue(operation, refused(), context({ prioirty: 'low' })),
      'unknown key "prioirty" in capture context: did you mean "priority"?',
    ],
    [
      'enqueue, in the operation',
      (dlq) => dlq.enqueue({ ...operation, payloads: 1 } as never, refused()),
      'unknown key "payloads" in operation: did you mean "payload"?',
    ],
    [
      'enqueue, in the task',
      (dlq) =>
        dlq.enqueue(operation, refused(), {
          task: { id: 'J1', description: 'd', source: 's', desc: 'x' } as never,
        }),
      'unknown key "desc" in task',
    ],
    [
      'enqueue, in github',
      (dlq) =>
        dlq.enqueue(operation, refused(), {
          github: { owner: 'o', repo: 'r', entityNo: 5 } as never,
        }),
      'unknown key "entityNo" in github',
    ],
    [
      'enqueueAll',
      (dlq) => dlq.enqueueAll([{ operation, error: refused(), contxt: {} } as never]),
      'unknown key "contxt" in failure: did you mean "context"?',
    ],
    [
      'an executor',
      (dlq) => dlq.executor().execute('llm', () => 1, { singal: 1 } as never),
      'unknown key "singal" in execute context: did you mean "signal"?',
    ],
    [
      'a workflow',
      (dlq) => dlq.workflow().run({ id: 't', task: 1, target: ['a'] } as never, () => 1),
      'unknown key "target" in workflow task: did you mean "targets"?',
    ],
    [
      'edit',
      (dlq, id) => dlq.edit(id, { tag: ['x'], reason: 'r', by: 'mia' } as never),
      'unknown key "tag" in edit: did you mean "tags"?',
    ],
    [
      'review',
      (dlq, id) => dlq.review(id, { decision: 'resolve', by: 'mia', notes: 'x' } as never),
      'unknown key "notes" in review: did you mean "note"?',
    ],
    [
      'review, as a decision',
      (dlq, id) => dlq.review(id, { decision: 'resolved' as never, by: 'mia' }),
      'unknown decision "resolved": did you mean "resolve"?',
    ],
    [
      'clear',
      (dlq) => dlq.clear({ state: 'resolved' }, { confirms: 0 } as never),
      'unknown key "confirms" in clear options: did you mean "confirm"?',
    ],
    [
      'stop',
      (dlq) => dlq.stop({ drainsMs: 5 } as never),
      'unknown key "drainsMs" in stop options: did you mean "drainMs"?',
    ],
    [
      'groups',
      (dlq) => dlq.groups({ limits: 5 } as never),
      'unknown key "limits" in group query: did you mean "limit"?',
    ],
    [
      'groups, as a state',
      (dlq) => dlq.groups({ state: 'queued' as never }),
      'unknown state "queued"',
    ],
    [
      'search',
      (dlq) => dlq.search('x', { limits: 5 } as never),
      'unknown key "limits" in search options: did you mean "limit"?',
    ],
    [
      'foreignLetters',
      async (dlq) => dlq.foreignLetters({ queues: 'a' } as never),
      'unknown key "queues" in foreignLetters options: did you mean "queue"?',
    ],
    [
      'deadLetters',
      async (dlq) => dlq.deadLetters({ queues: 'a' } as never),
      'unknown key "queues" in deadLetters options: did you mean "queue"?',
    ],
    [
      'on, as a type of event',
      async (dlq) => dlq.on('resolve' as never, () => {}),
      'unknown event type "resolve": did you mean "resolved"?',
    ],
    [
      'on, without a listener',
      async (dlq) => dlq.on('resolved', undefined as never),
      'the listener for "resolved" must be a function, got undefined',
    ],
  ])('is rejected by %s, by name', async (_name, act, message) => {
    const { dlq } = await aQueue()
    const before = await dlq.enqueue(operation, forbidden())
    await expect((async () => act(dlq, before.id))()).rejects.toThrow(message)
    expect(await dlq.get(before.id)).toEqual(before)
    expect((await dlq.stats()).size).toBe(1)
    await dlq.close()
  })

  it('affects neither the error nor the letter of a guarded call', async () => {
    const { dlq, eventsOf } = await aQueue()
    const guarded = dlq.guard('a', () => Promise.reject(refused()), {
      context: () => ({ tagz: ['x'] }) as never,
    })
    await expect(guarded(1)).rejects.toThrow('ECONNREFUSED')
    expect((await dlq.stats()).size).toBe(1)
    expect(String(eventsOf('error')[0]?.error)).toContain('did you mean "tags"?')
    await dlq.close()
  })
})
