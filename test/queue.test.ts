import { describe, expect, it } from 'vitest'
import { fixed, immediate } from '../src/policy/backoff.ts'
import { RedriveError } from '../src/errors.ts'
import { decodePayload } from '../src/letter/payload.ts'
import { DeadLetterQueue } from '../src/queue.ts'
import type { FakeClock } from '../src/testing/index.ts'
import { aQueue, deferred, forbidden, refused } from './a-queue.ts'

describe('DeadLetterQueue.open', () => {
  // As from an environment variable that nobody has set.
  it.each([undefined, null, 7, {}])('refuses %j and says what to give', async (store) => {
    await expect(DeadLetterQueue.open(store as never)).rejects.toMatchObject({
      code: 'INVALID_INPUT',
      message: expect.stringContaining('sqlite:redrive.db') as string,
    })
  })
})

describe('DeadLetterQueue.enqueue', () => {
  it('keeps a failure as a pending letter that waits one minute for its first retry', async () => {
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

  it('parks what cannot succeed by waiting, and keeps it all the same', async () => {
    const { dlq } = await aQueue()
    const letter = await dlq.enqueue({ type: 'send-mail' }, forbidden())
    expect(letter).toMatchObject({ state: 'parked', reason: 'permanent', category: 'permission' })
    expect(letter.review?.neededSince).toBe(letter.deadLetteredAt)
    expect(letter.retryAt).toBeUndefined()
  })

  it('tells of a letter that is parked at once, too', async () => {
    const { dlq, heard } = await aQueue()
    const { id } = await dlq.enqueue({ type: 'send-mail' }, forbidden())
    expect(heard('parked').map(({ letter }) => letter.id)).toEqual([id])
  })

  it('gives back the letter that is kept already when the same id is captured again', async () => {
    const { dlq, heard } = await aQueue()
    const id = '0198c0de-0000-7000-8000-000000000001'
    const first = await dlq.enqueue({ type: 'a', payload: 1 }, refused(), { id })
    const again = await dlq.enqueue({ type: 'a', payload: 1 }, refused(), { id })
    expect(again).toEqual(first)
    expect(heard('captured')).toHaveLength(1)
  })

  it('refuses another payload under the same id, and keeps the first', async () => {
    const { dlq } = await aQueue()
    const id = '0198c0de-0000-7000-8000-000000000001'
    await dlq.enqueue({ type: 'a', payload: 1 }, refused(), { id })
    await expect(dlq.enqueue({ type: 'a', payload: 2 }, refused(), { id })).rejects.toMatchObject({
      code: 'ID_CONFLICT',
    })
    expect(Buffer.from((await dlq.get(id))!.payload.bytes).toString()).toBe('1')
  })

  it('keeps a failure of its own when the letter that it counted for is removed in between', async () => {
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
    const { dlq, heard } = await aQueue()
    const first = await dlq.enqueue({ type: 'a', payload: 1 }, refused(), { dedupeKey: 'k' })
    const again = await dlq.enqueue({ type: 'a', payload: 1 }, forbidden(), { dedupeKey: 'k' })
    expect(again).toMatchObject({ id: first.id, occurrences: 2 })
    expect(heard('duplicate')).toHaveLength(1)
    expect((await dlq.find()).items).toHaveLength(1)
  })

  it('refuses at maxItems with QUEUE_FULL and says so to observers', async () => {
    const { dlq, heard } = await aQueue({ maxItems: 1 })
    await dlq.enqueue({ type: 'a' }, refused())
    await expect(dlq.enqueue({ type: 'a' }, refused())).rejects.toMatchObject({
      code: 'QUEUE_FULL',
    })
    expect(heard('full')).toHaveLength(1)
  })

  it('makes room from resolved letters when told to', async () => {
    const { dlq, heard } = await aQueue({ maxItems: 1, overflow: 'evict-resolved' })
    const first = await dlq.enqueue({ type: 'a' }, refused())
    await dlq.resolve(first.id)
    const second = await dlq.enqueue({ type: 'a' }, refused())
    expect((await dlq.find()).items.map((letter) => letter.id)).toEqual([second.id])
    expect(heard('evicted')).toEqual([{ type: 'evicted', count: 1 }])
    expect((await dlq.stats()).lifetime.evicted).toBe(1)
  })

  it('refuses payloads above the limit before anything is kept', async () => {
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
    ['another form of a moment', { type: 'a' }, { failedAt: '1/2/2026' }],
    ['no operation', null as never, {}],
    ['holes in the tags', { type: 'a' }, { tags: Array<string>(2) }],
    ['an empty dedupe key', { type: 'a' }, { dedupeKey: '' }],
  ])('refuses %s with INVALID_INPUT', async (_what, operation, context) => {
    const { dlq } = await aQueue()
    await expect(dlq.enqueue(operation, refused(), context)).rejects.toMatchObject({
      code: 'INVALID_INPUT',
    })
    expect((await dlq.find()).items).toEqual([])
  })

  it('does not change when the caller changes what it passed', async () => {
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

  it('is refused once the queue is closed', async () => {
    const { dlq } = await aQueue()
    await dlq.close()
    await dlq.close()
    await expect(dlq.enqueue({ type: 'a' }, refused())).rejects.toMatchObject({ code: 'CLOSED' })
  })
})

describe('DeadLetterQueue.enqueueAll', () => {
  it('refuses what is no list, since it would keep nothing of it', async () => {
    const { dlq } = await aQueue()
    const failures = new Set([{ operation: { type: 'a' }, error: refused() }])
    await expect(dlq.enqueueAll(failures as never)).rejects.toMatchObject({ code: 'INVALID_INPUT' })
  })

  it('keeps many in the order given', async () => {
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

  it('says how many are kept when it has to stop in the middle of many writes', async () => {
    const { dlq } = await aQueue({ maxItems: 300 })
    const failures = Array.from({ length: 1000 }, () => ({
      operation: { type: 'bulk' },
      error: refused(),
    }))
    await expect(dlq.enqueueAll(failures)).rejects.toThrow('300 of 1000 are kept')
    expect((await dlq.stats()).size).toBe(300)
  })

  it('says how many are kept when it has to stop', async () => {
    const { dlq } = await aQueue({ maxItems: 3 })
    const failures = Array.from({ length: 5 }, () => ({
      operation: { type: 'bulk' },
      error: refused(),
    }))
    await expect(dlq.enqueueAll(failures)).rejects.toThrow('3 of 5 are kept')
  })
})

describe('DeadLetterQueue.guard', () => {
  it('keeps the failure, rethrows the very error, and runs the function again when it is due', async () => {
    const { dlq, clock, heard } = await aQueue()
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
    await clock.advance(60_000)
    expect(calls).toBe(2)
    expect(heard('resolved').map(({ letter }) => letter.retries)).toEqual([1])
    await dlq.close()
  })

  it('refuses what is no function when it is given, not when it is called', async () => {
    const { dlq } = await aQueue()
    expect(() => dlq.guard('charge', undefined as never)).toThrow(
      'the handler of charge must be a function',
    )
  })

  it('passes results through and makes no letter when nothing fails', async () => {
    const { dlq } = await aQueue()
    const double = dlq.guard('double', async (n: number) => n * 2)
    expect(await double(21)).toBe(42)
    expect((await dlq.stats()).lifetime.captured).toBe(0)
  })

  it('swallows the error once it is kept, when told to', async () => {
    const { dlq } = await aQueue()
    const quiet = dlq.guard('quiet', async () => Promise.reject(refused()), { rethrow: false })
    expect(await quiet(undefined)).toBeUndefined()
    expect((await dlq.stats()).lifetime.captured).toBe(1)
  })

  it('takes a returned { ok: false, error } for a failure', async () => {
    const { dlq } = await aQueue()
    const soft = dlq.guard('soft', async () => ({ ok: false as const, error: refused() }))
    expect(await soft(undefined)).toMatchObject({ ok: false })
    expect((await dlq.find({ queue: 'soft' })).items[0]).toMatchObject({ category: 'network' })
  })

  it('keeps the input as it was passed in, whatever the function does to it', async () => {
    const { dlq } = await aQueue()
    const spoil = dlq.guard('spoil', async (input: { list: number[] }) => {
      input.list.push(99)
      throw refused()
    })
    await spoil({ list: [1] }).catch(() => {})
    const [letter] = (await dlq.find({ queue: 'spoil', payload: true })).items
    expect(Buffer.from(letter!.payload.bytes).toString()).toBe('{"list":[1]}')
  })

  it('makes no second letter when it fails inside a redelivery', async () => {
    const { dlq, clock } = await aQueue({ backoff: fixed(100) })
    const inner = dlq.guard('inner', async () => Promise.reject(refused()))
    dlq.handle('outer', async () => inner(undefined))
    dlq.start()
    await dlq.enqueue({ type: 'outer' }, refused(), { maxRetries: 2 })
    await clock.advance(1000)
    expect((await dlq.stats()).queues).toEqual({ outer: 1 })
    await dlq.close()
  })

  it('does not hide the error when the letter cannot be kept, and reports the trouble', async () => {
    const { dlq, heard } = await aQueue({ maxItems: 1 })
    await dlq.enqueue({ type: 'a' }, refused())
    const error = refused()
    await expect(dlq.guard('b', async () => Promise.reject(error))(undefined)).rejects.toBe(error)
    expect(heard('trouble')).toHaveLength(1)
    const swallowing = dlq.guard('c', async () => Promise.reject(error), { rethrow: false })
    await expect(swallowing(undefined)).rejects.toMatchObject({
      code: 'STORE_UNAVAILABLE',
      cause: error,
    })
  })
})

describe('DeadLetterQueue.stats', () => {
  it('has every state, category and priority, also those with none', async () => {
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

describe('DeadLetterQueue.getSummary', () => {
  it('shows what is hidden in the name of a queue, so that it cannot act on a terminal or look like a line', async () => {
    const { dlq } = await aQueue()
    await dlq.enqueue({ type: 'a\u009b2J\u2028Total Successes: 9' }, refused())
    expect((await dlq.getSummary()).split('\n')).toContain(
      '- a\\u009b2J\\u2028Total Successes: 9: 1',
    )
    await dlq.close()
  })
})

describe('DeadLetterQueue.groups', () => {
  it('gathers letters by cause, the most frequent first', async () => {
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

  it.each(['', 'x', '-1', '1.5', '1x'])('refuses %j, which is no cursor', async (cursor) => {
    const { dlq } = await aQueue()
    await expect(dlq.groups({ cursor })).rejects.toMatchObject({ code: 'INVALID_INPUT' })
  })

  it.each([0, -1, NaN])('gives none for a limit of %s, and no next page', async (limit) => {
    const { dlq } = await aQueue()
    await dlq.enqueue({ type: 'a' }, refused())
    await dlq.enqueue({ type: 'a' }, forbidden())
    expect(await dlq.groups({ limit })).toEqual({ items: [] })
  })
})

describe('DeadLetterQueue.handle', () => {
  it('refuses a handler that is no function, since letters would spend their retries on it', async () => {
    const { dlq } = await aQueue()
    expect(() => dlq.handle('a', undefined as never)).toThrow(
      expect.objectContaining({ code: 'INVALID_INPUT' }) as Error,
    )
  })
})

describe('DeadLetterQueue.start and stop', () => {
  it('may be called twice, and start works again after stop', async () => {
    const { dlq, clock, heard } = await aQueue({ backoff: immediate() })
    dlq.handle('a', () => {})
    dlq.start()
    dlq.start()
    await dlq.stop()
    await dlq.stop()
    await dlq.enqueue({ type: 'a' }, refused())
    await clock.advance(10_000)
    expect(heard('started')).toEqual([])
    dlq.start()
    await clock.advance(10)
    expect(heard('resolved')).toHaveLength(1)
    await dlq.close()
    expect(clock.pending()).toBe(0)
  })

  it('waits for running handlers', async () => {
    const { dlq, clock, heard } = await aQueue({ backoff: immediate() })
    const work = deferred()
    dlq.handle('a', () => work.promise)
    dlq.start()
    await dlq.enqueue({ type: 'a' }, refused())
    await clock.advance(10)
    const stopped = dlq.stop()
    work.resolve()
    await stopped
    expect(heard('resolved')).toHaveLength(1)
  })

  it('aborts and gives back, uncounted, what does not end in time', async () => {
    const { dlq, clock, heard } = await aQueue({ backoff: immediate() })
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
    expect(heard('released')).toHaveLength(1)
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

  it('leaves the slot to a handler that goes on after its letter was given back', async () => {
    const { dlq, clock, heard } = await aQueue({ backoff: immediate(), maxConcurrent: 1 })
    const works: (() => void)[] = []
    dlq.handle('a', () => new Promise<void>((resolve) => works.push(resolve)))
    await runAndRestart(dlq, clock)
    await clock.advance(10_000)
    expect(works).toHaveLength(1)
    const { problems } = await dlq.health()
    expect(problems).toEqual([expect.stringContaining('1 of 1 slots (maxConcurrent) are kept')])
    works[0]!()
    await clock.advance(10)
    expect(works).toHaveLength(2)
    expect((await dlq.health()).problems).toEqual([])
    works[1]!()
    await clock.advance(10)
    expect(heard('resolved')).toHaveLength(1)
  })

  it('counts both runs of a letter that was given back within the limit of its queue', async () => {
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
  ])('refuses fewest letters at a time above the most in $path', async ({ options, path, got }) => {
    await expect(aQueue(options)).rejects.toMatchObject({
      code: 'INVALID_CONFIG',
      message: `option "${path}.min": must not be above max (got ${got})`,
    })
    const { dlq } = await aQueue({ concurrency: { min: 2, max: 2 } })
    const policy = { concurrency: { min: 2, max: 1 } }
    const problem = 'queue option "concurrency.min": must not be above max (got 2)'
    expect(() => dlq.handle('a', () => {}, policy)).toThrow(problem)
    expect(() => dlq.guard('a', async () => {}, policy)).toThrow(problem)
  })

  it.each<[string, (reason: Error) => unknown, unknown]>([
    ['throws', (reason) => Promise.reject(reason), [1, 2]],
    ['returns that it failed', (error) => ({ ok: false, error }), [1, 2]],
    ['returns what remains', (error) => ({ ok: false, error, remaining: [2] }), [2]],
  ])('gives back, uncounted, a run that %s once its signal aborts', async (_how, answer, left) => {
    const { dlq, clock, heard } = await aQueue({ backoff: immediate() })
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
    expect(heard('released')).toHaveLength(1)
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
