import { describe, expect, it } from 'vitest'
import { states } from '../../src/letter/letter.ts'
import { exponential, fixed, immediate } from '../../src/policy/backoff.ts'
import { DeadLetterQueue } from '../../src/queue.ts'
import { memoryStore } from '../../src/stores/memory/memory.ts'
import { aQueue, deferred, refused } from '../a-queue.ts'
import { quote } from './rows.ts'

const rateLimit = (): Error => new Error('Rate limit exceeded')

describe(quote('O1'), () => {
  it('a letter has all that the item had', async () => {
    const { dlq } = await aQueue()
    const task = { id: 'task-1', description: 'summarise', source: 'issue' }
    const github = { owner: 'o', repo: 'r', entityNumber: 7, entityType: 'pr' as const }
    const letter = await dlq.enqueue(
      {
        type: 'github_api',
        method: 'POST',
        endpoint: '/issues',
        payload: { title: 't' },
        context: { run: 1 },
      },
      Object.assign(new Error('Service Unavailable'), { status: 503 }),
      { task, github, tags: ['ci'], metadata: { notes: 'n' }, by: 'executor' },
    )
    expect(letter).toMatchObject({
      task,
      github,
      queue: 'github_api',
      source: {
        kind: 'operation',
        type: 'github_api',
        method: 'POST',
        endpoint: '/issues',
        context: { run: 1 },
      },
      state: 'pending',
      retries: 0,
      maxRetries: 3,
      tags: ['ci'],
      metadata: { notes: 'n' },
      failure: { name: 'Error', message: 'Service Unavailable', status: 503 },
      history: [{ actor: 'executor', action: 'capture', from: null, to: 'pending' }],
    })
    expect(letter.failure.stack).toContain('operation.test.ts')
    const moments = [
      letter.failedAt,
      letter.deadLetteredAt,
      letter.updatedAt,
      letter.retryAt!,
      letter.failure.at,
    ]
    for (const moment of moments) expect(new Date(moment).toISOString()).toBe(moment)
  })

  it('has six states, each of which a letter can reach', async () => {
    const { dlq, store } = await aQueue({ backoff: immediate() })
    const make = async (): Promise<string> =>
      (await dlq.enqueue({ type: 'a' }, refused(), { maxRetries: 1 })).id
    await make()
    await store.claim({ worker: 'w', limit: 1, leaseMs: 60_000 })
    await dlq.resolve(await make())
    await dlq.fail(await make(), refused())
    await dlq.park(await make())
    await dlq.archive(await make())
    await make()
    expect((await dlq.stats()).states).toEqual(
      Object.fromEntries(states.map((state) => [state, 1])),
    )
  })

  it('runs critical letters first, and at once', async () => {
    const { dlq, clock } = await aQueue({ maxConcurrent: 1 })
    const order: unknown[] = []
    dlq.handle('a', ({ input }) => void order.push(input))
    for (const priority of ['low', 'medium', 'high', 'critical'] as const)
      await dlq.enqueue({ type: 'a', payload: priority }, rateLimit(), { priority })
    dlq.start()
    await clock.advance(0)
    expect(order).toEqual(['critical'])
    await clock.advance(60_000)
    expect(order).toEqual(['critical', 'high', 'medium', 'low'])
    await dlq.close()
  })
})

describe(quote('O2'), () => {
  it('get, resolve (markSuccess), fail (markFailed), park (markForManualReview) and remove (deleteItem) act on one letter', async () => {
    const { dlq } = await aQueue()
    const [a, b, c, d] = await Promise.all(
      [1, 2, 3, 4].map((n) => dlq.enqueue({ type: 'a', payload: n }, rateLimit())),
    )
    expect((await dlq.resolve(a!.id)).state).toBe('resolved')
    expect(await dlq.fail(b!.id, refused())).toMatchObject({ state: 'pending', retries: 1 })
    expect(await dlq.park(c!.id, 'look at this')).toMatchObject({
      state: 'parked',
      reason: 'operator',
    })
    await dlq.remove(d!.id)
    expect(await dlq.get(d!.id)).toBeUndefined()
    expect((await dlq.get(a!.id))?.id).toBe(a!.id)
  })

  it('is guarded by the state machine', async () => {
    const { dlq } = await aQueue()
    const { id } = await dlq.enqueue({ type: 'a' }, rateLimit())
    await dlq.resolve(id)
    for (const act of [
      () => dlq.retry(id),
      () => dlq.fail(id, refused()),
      () => dlq.resolve(id),
      () => dlq.park(id),
    ])
      await expect(act()).rejects.toMatchObject({ code: 'ILLEGAL_MOVE' })
  })

  it('find (getItems) filters, then sorts, then limits; a limit of 0 gives none', async () => {
    const { dlq } = await aQueue()
    for (const delayMs of [3000, 1000, 2000])
      await dlq.enqueue({ type: 'a', payload: delayMs }, rateLimit(), { policy: fixed(delayMs) })
    await dlq.enqueue({ type: 'b' }, rateLimit(), { policy: fixed(1) })
    const soonest = await dlq.find({ queue: 'a', order: 'due', limit: 2 })
    expect(soonest.items.map((letter) => letter.backoffMs)).toEqual([1000, 2000])
    expect((await dlq.find({ limit: 0 })).items).toEqual([])
  })

  it('gives copies: changing what was returned changes nothing', async () => {
    const { dlq } = await aQueue()
    const { id } = await dlq.enqueue({ type: 'a' }, rateLimit(), { tags: ['t'] })
    const copy = (await dlq.get(id))!
    copy.tags.push('mine')
    copy.state = 'resolved'
    expect(await dlq.get(id)).toMatchObject({ state: 'pending', tags: ['t'] })
  })

  it('clear removes all that match, once confirmed', async () => {
    const { dlq } = await aQueue()
    await dlq.enqueue({ type: 'a' }, rateLimit())
    expect(await dlq.clear({ state: [...states] }, { confirm: 1 })).toBe(1)
    expect((await dlq.stats()).size).toBe(0)
  })
})

describe(quote('O3'), () => {
  it('maxItems refuses, or makes room, by the overflow policy', async () => {
    const { dlq } = await aQueue({ maxItems: 1 })
    await dlq.enqueue({ type: 'a' }, rateLimit())
    await expect(dlq.enqueue({ type: 'a' }, rateLimit())).rejects.toMatchObject({
      code: 'QUEUE_FULL',
    })
    const roomy = await aQueue({ maxItems: 1, overflow: 'evict-resolved' })
    const { id } = await roomy.dlq.enqueue({ type: 'a' }, rateLimit())
    await roomy.dlq.resolve(id)
    expect((await roomy.dlq.enqueue({ type: 'a' }, rateLimit())).state).toBe('pending')
  })

  it('backoff is initial · multiplierⁿ, capped, from the first retry on, and what is stored is what is waited', async () => {
    const backoff = exponential({ baseMs: 1000, factor: 2, maxMs: 5000 })
    const { dlq, clock } = await aQueue({ backoff, maxRetries: 5, priority: 'high' })
    const waits: number[] = []
    dlq.on('rescheduled', ({ letter }) => waits.push(letter.backoffMs))
    dlq.handle('a', () => Promise.reject(refused()))
    dlq.start()
    const letter = await dlq.enqueue({ type: 'a' }, rateLimit())
    expect(letter).toMatchObject({ priority: 'high', maxRetries: 5, backoffMs: 1000 })
    await clock.advance(60_000)
    expect(waits).toEqual([2000, 4000, 5000, 5000])
    await dlq.close()
  })

  it('takes at most the batch size at once, and runs at most maxConcurrent', async () => {
    const limits: number[] = []
    const { dlq, clock } = await aQueue(
      { claimBatch: 2, maxConcurrent: 3, backoff: immediate() },
      (fake) => {
        const store = memoryStore({ clock: fake })
        const claim: typeof store.claim = store.claim.bind(store)
        return Object.assign(store, {
          claim: (request: Parameters<typeof claim>[0]) => {
            limits.push(request.limit)
            return claim(request)
          },
        })
      },
    )
    const gate = deferred()
    dlq.handle('a', () => gate.promise)
    for (let n = 0; n < 5; n++) await dlq.enqueue({ type: 'a' }, rateLimit())
    dlq.start()
    await clock.advance(0)
    expect(Math.max(...limits)).toBe(2)
    expect((await dlq.stats()).processor.active).toBe(3)
    gate.resolve()
    await dlq.close()
  })

  it('looks for the work of other processes every interval', async () => {
    const deaf = { watch: () => () => {} }
    const { dlq, clock, store } = await aQueue({ pollMs: 2000 }, (fake) =>
      Object.assign(memoryStore({ clock: fake }), deaf),
    )
    const seen: unknown[] = []
    dlq.handle('a', ({ input }) => void seen.push(input))
    dlq.start()
    await clock.advance(10)
    const other = await DeadLetterQueue.open(store, { clock, backoff: immediate() })
    await other.enqueue({ type: 'a', payload: 'theirs' }, rateLimit())
    await clock.advance(2400)
    expect(seen).toEqual(['theirs'])
    await dlq.close()
  })

  it('cleans up by age, by itself, to the archive', async () => {
    const { dlq, clock } = await aQueue({ retention: { archiveAfterMs: 3_600_000 } })
    const { id } = await dlq.enqueue({ type: 'a' }, rateLimit())
    await dlq.resolve(id)
    dlq.start()
    await clock.advance(3_500_000)
    expect((await dlq.get(id))!.state).toBe('resolved')
    await clock.advance(200_000)
    expect((await dlq.get(id))!.state).toBe('archived')
    await dlq.close()
  })

  it('refuses options that are unknown or out of bounds, by name', async () => {
    await expect(aQueue({ maxRetires: 3 } as object)).rejects.toThrow(
      'unknown option "maxRetires": did you mean "maxRetries"?',
    )
    await expect(aQueue({ maxConcurrent: 0 })).rejects.toThrow('maxConcurrent')
    const nan = aQueue({ backoff: { kind: 'fixed', delayMs: Number.NaN } })
    await expect(nan).rejects.toMatchObject({ code: 'INVALID_CONFIG' })
  })

  it('keeps letters where the URL says, and refuses what it does not know', async () => {
    await using memory = await DeadLetterQueue.open('memory:')
    expect((await memory.health()).store.ok).toBe(true)
    await expect(DeadLetterQueue.open('databse:x')).rejects.toMatchObject({ code: 'INVALID_INPUT' })
  })
})

describe(quote('O4'), () => {
  it('runs letters of each registered type in the background', async () => {
    const { dlq, clock } = await aQueue()
    const types = ['github_api', 'llm_call', 'tool_execution', 'verification']
    const ran: string[] = []
    for (const type of types) dlq.handle(type, ({ letter }) => void ran.push(letter.queue))
    for (const type of types) await dlq.enqueue({ type, payload: { type } }, rateLimit())
    dlq.start()
    await clock.advance(60_000)
    expect(ran.sort()).toEqual(types)
    await dlq.close()
  })

  it('parks an unknown type with no-handler and spends no retry on it', async () => {
    const { dlq, clock } = await aQueue()
    dlq.handle('known', () => {})
    const { id } = await dlq.enqueue({ type: 'unknown' }, rateLimit())
    dlq.start()
    await clock.advance(70_000)
    expect(await dlq.get(id)).toMatchObject({ state: 'parked', reason: 'no-handler', retries: 0 })
    await dlq.close()
  })

  it('takes { ok: false, error } for a failure with its reason', async () => {
    const { dlq, clock } = await aQueue({ backoff: immediate(), maxRetries: 1 })
    dlq.handle('verification', () => ({ ok: false, error: new Error('2 tests are red') }))
    const { id } = await dlq.enqueue({ type: 'verification' }, rateLimit())
    dlq.start()
    await clock.advance(10)
    expect(await dlq.get(id)).toMatchObject({
      state: 'exhausted',
      failure: { message: '2 tests are red' },
    })
    await dlq.close()
  })
})

describe(quote('O7'), () => {
  it('counts at the transition, exactly, by priority and by type', async () => {
    const { dlq, clock } = await aQueue({ backoff: fixed(1000), maxRetries: 2 })
    dlq.handle('good', ({ attempt }) => (attempt < 2 ? Promise.reject(refused()) : undefined))
    dlq.handle('bad', () => Promise.reject(refused()))
    dlq.start()
    await dlq.enqueue({ type: 'good' }, rateLimit(), { priority: 'high' })
    await dlq.enqueue({ type: 'bad' }, rateLimit())
    const parked = await dlq.enqueue({ type: 'bad' }, rateLimit(), { policy: fixed(1e9) })
    await dlq.park(parked.id)
    await clock.advance(10_000)
    expect(await dlq.metrics()).toEqual({
      totalEnqueued: 3,
      totalRetried: 4,
      totalSuccesses: 1,
      totalAbandoned: 1,
      totalManualReviews: 1,
      totalReplayed: 0,
      enqueuedByPriority: { critical: 0, high: 1, medium: 2, low: 0 },
      enqueuedByType: { good: 1, bad: 2 },
      successByPriority: { critical: 0, high: 1, medium: 0, low: 0 },
      successByType: { good: 1 },
      abandonedByPriority: { critical: 0, high: 0, medium: 1, low: 0 },
      abandonedByType: { bad: 1 },
      avgRetryCount: 2,
      avgBackoffMs: (1000 + 1000 + 1e9 + 1000 + 1000) / 5,
      maxRetryCount: 2,
      successRate: 1 / 3,
      abandonmentRate: 1 / 3,
      totalSettledRetries: 4,
      totalWaits: 5,
      totalBackoffMs: 1000 + 1000 + 1e9 + 1000 + 1000,
    })
    const summary = (await dlq.getSummary()).split('\n')
    expect(summary).toEqual(
      expect.arrayContaining([
        'Total Enqueued: 3',
        'Total Retried: 4',
        'Total Successes: 1 (33.3%)',
        'Total Abandoned: 1 (33.3%)',
        'Manual Reviews: 1',
        '- High: 1',
        '- bad: 2',
        '- Avg Retry Count: 2.00',
        '- Max Retry Count: 2',
      ]),
    )
    await dlq.close()
  })

  it('is all zero before anything happened', async () => {
    const { dlq } = await aQueue()
    expect(await dlq.getSummary()).toContain('Total Successes: 0 (0%)')
  })
})

describe(quote('O8'), () => {
  it('a letter that enters review needs one; only a decision names who and when', async () => {
    const { dlq, clock } = await aQueue()
    const { id } = await dlq.enqueue({ type: 'a' }, rateLimit())
    const { review } = await dlq.park(id, 'odd', 'mia')
    expect(Object.keys(review!)).toEqual(['neededSince'])
    await clock.advance(5000)
    const decided = await dlq.review(id, { decision: 'resolve', note: 'paid by hand', by: 'tom' })
    expect(decided).toMatchObject({
      state: 'resolved',
      review: { decidedBy: 'tom', decision: 'resolve', note: 'paid by hand' },
    })
    expect(decided.review!.decidedAt! > review!.neededSince).toBe(true)
    const told = decided.history.map((entry) => `${entry.actor} ${entry.action}`)
    expect(told).toEqual(['capture capture', 'mia park', 'tom review'])
  })

  it('requeue gives a fresh budget, discard archives', async () => {
    const { dlq } = await aQueue()
    const { id } = await dlq.enqueue({ type: 'a' }, rateLimit(), { maxRetries: 1 })
    await dlq.fail(id, refused())
    expect(await dlq.review(id, { decision: 'requeue', by: 'tom' })).toMatchObject({
      state: 'pending',
      retries: 0,
    })
    await dlq.park(id)
    expect(await dlq.review(id, { decision: 'discard', by: 'tom' })).toMatchObject({
      state: 'archived',
      reason: 'operator',
    })
    await expect(dlq.review(id, { decision: 'requeue', by: 'tom' })).rejects.toMatchObject({
      code: 'ILLEGAL_MOVE',
    })
  })
})

describe(quote('O10'), () => {
  it('enqueues an item', async () => {
    const { dlq } = await aQueue()
    const { id } = await dlq.enqueue({ type: 'llm_call', payload: {} }, rateLimit())
    expect((await dlq.find()).items.map((letter) => letter.id)).toEqual([id])
  })

  it('retries an item after its backoff', async () => {
    const { dlq, clock } = await aQueue({ backoff: exponential({ baseMs: 100 }) })
    const gate = deferred()
    dlq.handle('llm_call', () => gate.promise)
    const { id } = await dlq.enqueue({ type: 'llm_call', payload: {} }, rateLimit())
    expect(await dlq.get(id)).toMatchObject({ state: 'pending', retries: 0 })
    dlq.start()
    await dlq.retry(id)
    await clock.advance(0)
    expect(await dlq.get(id)).toMatchObject({ state: 'retrying', retries: 1 })
    gate.resolve()
    await dlq.close()
  })

  it('gives an item up after its maximum of retries', async () => {
    const { dlq } = await aQueue({ maxRetries: 2 })
    const { id } = await dlq.enqueue({ type: 'llm_call', payload: {} }, rateLimit())
    for (let round = 0; round < 2; round++) {
      await dlq.retry(id)
      await dlq.fail(id, new Error('Failed'))
    }
    expect(await dlq.get(id)).toMatchObject({ state: 'exhausted', retries: 2 })
  })
})
