import { globSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { states } from '../../src/letter/letter.ts'
import { exponential, fixed, immediate } from '../../src/policy/backoff.ts'
import { DeadLetterQueue } from '../../src/queue/queue.ts'
import { memoryStore } from '../../src/stores/memory/memory.ts'
import { decodePayload } from '../../src/letter/payload.ts'
import { aQueue, deferred, refused, timedOut, type QueueBench } from '../a-queue.ts'
import { clause, row } from './rows.ts'
import { onStore, storeKinds } from './stores.ts'

const rateLimit = (): Error => new Error('Rate limit exceeded')

describe(row('O1'), () => {
  it(clause('O1', 'the item with all its fields and history'), async () => {
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
    const timestamps = [
      letter.failedAt,
      letter.deadLetteredAt,
      letter.updatedAt,
      letter.retryAt!,
      letter.failure.at,
    ]
    for (const one of timestamps) expect(new Date(one).toISOString()).toBe(one)
  })

  it(clause('O1', 'six states'), async () => {
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

  it(clause('O1', 'four priorities, critical first and immediate'), async () => {
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

describe(row('O2'), () => {
  const enqueueOne = async (bench: QueueBench, payload?: unknown): Promise<string> =>
    (await bench.dlq.enqueue({ type: 'a', payload }, rateLimit())).id

  it(clause('O2', 'enqueue'), async () => {
    const { dlq, eventsOf } = await aQueue()
    const letter = await dlq.enqueue({ type: 'llm_call', payload: { n: 1 } }, rateLimit())
    expect(letter).toMatchObject({ queue: 'llm_call', state: 'pending', retries: 0 })
    expect(eventsOf('captured')).toMatchObject([{ letter: { id: letter.id } }])
  })

  it(clause('O2', 'retry'), async () => {
    const { dlq, clock, eventsOf } = await aQueue()
    const { id, retryAt } = await dlq.enqueue({ type: 'a' }, rateLimit())
    expect(Date.parse(retryAt!)).toBeGreaterThan(clock.now())
    dlq.handle('a', () => {})
    dlq.start()
    await dlq.retry(id)
    await clock.advance(0)
    expect(eventsOf('resolved')).toMatchObject([{ letter: { id, retries: 1 } }])
    await dlq.close()
  })

  it(clause('O2', 'markSuccess'), async () => {
    const bench = await aQueue()
    const id = await enqueueOne(bench)
    expect(await bench.dlq.resolve(id, 'mia')).toMatchObject({ state: 'resolved' })
    expect((await bench.dlq.get(id))?.history.at(-1)).toMatchObject({ actor: 'mia' })
  })

  it(clause('O2', 'markFailed'), async () => {
    const bench = await aQueue({ maxRetries: 2 })
    const id = await enqueueOne(bench)
    expect(await bench.dlq.fail(id, refused())).toMatchObject({
      state: 'pending',
      retries: 1,
      failure: { code: 'ECONNREFUSED' },
    })
    expect(await bench.dlq.fail(id, refused())).toMatchObject({ state: 'exhausted', retries: 2 })
  })

  it(clause('O2', 'markForManualReview'), async () => {
    const bench = await aQueue()
    const id = await enqueueOne(bench)
    expect(await bench.dlq.park(id, 'look at this')).toMatchObject({
      state: 'parked',
      reason: 'operator',
      review: { neededSince: expect.any(String) },
    })
  })

  it(clause('O2', 'getItem'), async () => {
    const bench = await aQueue()
    const id = await enqueueOne(bench, { n: 1 })
    const letter = (await bench.dlq.get(id))!
    expect(decodePayload(letter.payload)).toEqual({ n: 1 })
    // The returned letter is a copy.
    letter.tags.push('mine')
    letter.state = 'resolved'
    expect(await bench.dlq.get(id)).toMatchObject({ state: 'pending', tags: [] })
    expect(await bench.dlq.get('00000000-0000-7000-8000-000000000000')).toBeUndefined()
  })

  it(clause('O2', 'getStats'), async () => {
    const bench = await aQueue()
    await bench.dlq.resolve(await enqueueOne(bench))
    await enqueueOne(bench)
    expect(await bench.dlq.stats()).toMatchObject({
      size: 2,
      states: { pending: 1, resolved: 1 },
      queues: { a: 2 },
      priorities: { medium: 2 },
      lifetime: { captured: 2, resolved: 1 },
    })
  })

  it(clause('O2', 'average retry count in the statistics'), async () => {
    const bench = await aQueue({ maxRetries: 5 })
    for (const runs of [0, 1, 2]) {
      const id = await enqueueOne(bench)
      for (let run = 0; run < runs; run++) await bench.dlq.fail(id, refused())
    }
    expect(await bench.dlq.stats()).toMatchObject({ avgRetryCount: 1 })
  })

  it(clause('O2', 'deleteItem'), async () => {
    const bench = await aQueue()
    const id = await enqueueOne(bench)
    expect(await bench.dlq.remove(id)).toMatchObject({ id })
    expect(await bench.dlq.get(id)).toBeUndefined()
    await expect(bench.dlq.remove(id)).rejects.toMatchObject({ code: 'LETTER_NOT_FOUND' })
  })

  it(
    clause('O2', 'each under the name of our vocabulary, guarded by the state machine'),
    async () => {
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
    },
  )

  it(clause('O2', 'getItems with filter (sorted, then limited)'), async () => {
    const { dlq } = await aQueue()
    for (const delayMs of [3000, 1000, 2000])
      await dlq.enqueue({ type: 'a', payload: delayMs }, rateLimit(), { policy: fixed(delayMs) })
    await dlq.enqueue({ type: 'b' }, rateLimit(), { policy: fixed(1) })
    const soonest = await dlq.find({ queue: 'a', order: 'due', limit: 2 })
    expect(soonest.items.map((letter) => letter.backoffMs)).toEqual([1000, 2000])
    expect((await dlq.find({ limit: 0 })).items).toEqual([])
  })

  it(clause('O2', 'clear'), async () => {
    const { dlq } = await aQueue()
    await dlq.enqueue({ type: 'a' }, rateLimit())
    expect(await dlq.clear({ state: [...states] }, { confirm: 1 })).toBe(1)
    expect((await dlq.stats()).size).toBe(0)
  })
})

describe(row('O3'), () => {
  /** Options of the design with another name here: their name, a value, and our name. */
  const seedOptions: [string, unknown, string][] = [
    ['defaultPriority', 'high', 'priority'],
    ['initialBackoffMs', 1000, 'backoff'],
    ['maxBackoffMs', 60_000, 'backoff'],
    ['backoffMultiplier', 2, 'backoff'],
    ['processIntervalMs', 5000, 'pollMs'],
    ['processBatchSize', 10, 'claimBatch'],
    ['ageToCleanup', 86_400_000, 'retention'],
    ['autoCleanup', true, 'retention'],
    ['storageType', 'file', 'sqlite:'],
    ['storagePath', 'letters.db', 'sqlite:'],
  ]

  it(clause('O3', 'config: maxItems with an overflow policy'), async () => {
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

  it(clause('O3', 'backoff (initial, max, multiplier)'), async () => {
    const backoff = exponential({ baseMs: 1000, factor: 2, maxMs: 5000 })
    const { dlq, clock } = await aQueue({ backoff, maxRetries: 5 })
    const waits: number[] = []
    dlq.on('rescheduled', ({ letter }) => waits.push(letter.backoffMs))
    dlq.handle('a', () => Promise.reject(timedOut()))
    dlq.start()
    const letter = await dlq.enqueue({ type: 'a' }, rateLimit())
    expect(letter.backoffMs).toBe(1000)
    await clock.advance(60_000)
    expect(waits).toEqual([2000, 4000, 5000, 5000])
    await dlq.close()
  })

  it(clause('O3', 'batch size'), async () => {
    const limits: number[] = []
    const { dlq, clock } = await aQueue({ claimBatch: 2, backoff: immediate() }, (fake) => {
      const store = memoryStore({ clock: fake })
      const claim: typeof store.claim = store.claim.bind(store)
      return Object.assign(store, {
        claim: (request: Parameters<typeof claim>[0]) => {
          limits.push(request.limit)
          return claim(request)
        },
      })
    })
    let ran = 0
    dlq.handle('a', () => void ran++)
    for (let n = 0; n < 5; n++) await dlq.enqueue({ type: 'a', payload: n }, rateLimit())
    dlq.start()
    await clock.advance(0)
    expect(Math.max(...limits)).toBe(2)
    expect(ran).toBe(5)
    await dlq.close()
  })

  it(clause('O3', 'maxConcurrent'), async () => {
    const { dlq, clock } = await aQueue({ maxConcurrent: 3, backoff: immediate() })
    const gate = deferred()
    let active = 0
    let most = 0
    dlq.handle('a', async () => {
      most = Math.max(most, ++active)
      await gate.promise
      active--
    })
    for (let n = 0; n < 5; n++) await dlq.enqueue({ type: 'a', payload: n }, rateLimit())
    dlq.start()
    await clock.advance(0)
    expect((await dlq.stats()).processor.active).toBe(3)
    gate.resolve()
    await clock.advance(10)
    expect(most).toBe(3)
    expect((await dlq.stats()).states).toMatchObject({ resolved: 5 })
    await dlq.close()
  })

  it(clause('O3', 'process interval'), async () => {
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

  it(clause('O3', 'cleanup age and automatic cleanup'), async () => {
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

  it(clause('O3', 'maxRetries, default priority'), async () => {
    const { dlq } = await aQueue({ maxRetries: 1, priority: 'high' })
    const letter = await dlq.enqueue({ type: 'a' }, rateLimit())
    expect(letter).toMatchObject({ priority: 'high', maxRetries: 1 })
    expect(await dlq.fail(letter.id, refused())).toMatchObject({ state: 'exhausted' })
    const own = await dlq.enqueue({ type: 'a' }, rateLimit(), { priority: 'low', maxRetries: 2 })
    expect(own).toMatchObject({ priority: 'low', maxRetries: 2 })
  })

  it(clause('O3', 'a seed name that is given is refused with ours as the hint'), async () => {
    for (const [name, value, ours] of seedOptions)
      await expect(aQueue({ [name]: value }), name).rejects.toMatchObject({
        code: 'INVALID_CONFIG',
        message: expect.stringMatching(new RegExp(`${name}.*${ours}`, 's')),
      })
    await expect(aQueue({ maxRetires: 3 } as object)).rejects.toThrow(
      'unknown option "maxRetires": did you mean "maxRetries"?',
    )
  })

  it(clause('O3', "a page maps the seed's option names to ours"), () => {
    const docs = join(import.meta.dirname, '../../docs')
    const pages = globSync('**/*.md', { cwd: docs }).map((page) =>
      readFileSync(join(docs, page), 'utf8').split('\n'),
    )
    const maps = (lines: string[], name: string, ours: string): boolean =>
      lines.some((line) => line.startsWith('|') && line.includes(name) && line.includes(ours))
    const found = pages.filter((lines) =>
      seedOptions.every(([name, , ours]) => maps(lines, name, ours)),
    )
    expect(found).toHaveLength(1)
  })

  describe(clause('O3', 'storage memory/file/database'), () => {
    it.each(storeKinds.filter((kind) => kind !== 'opensearch'))('%s', async (kind) => {
      await onStore(kind, async (open) => {
        const first = await open()
        const { id } = await first.enqueue({ type: 'a', payload: { n: 1 } }, rateLimit())
        expect((await first.health()).store.ok).toBe(true)
        await first.close()
        const second = await open()
        const kept = await second.get(id)
        if (kind === 'memory') expect(kept).toBeUndefined()
        else expect(decodePayload(kept!.payload)).toEqual({ n: 1 })
      })
    })

    it('an unknown kind is refused', async () => {
      await expect(DeadLetterQueue.open('databse:x')).rejects.toMatchObject({
        code: 'INVALID_INPUT',
      })
    })
  })
})

describe(row('O4'), () => {
  it(clause('O4', 'automatic processing in the background'), async () => {
    const { dlq, clock, eventsOf } = await aQueue({ backoff: fixed(1000) })
    let broken = true
    dlq.handle('a', () => (broken ? Promise.reject(timedOut()) : undefined))
    dlq.start()
    const { id } = await dlq.enqueue({ type: 'a' }, rateLimit())
    await clock.advance(1000)
    expect(eventsOf('rescheduled')).toHaveLength(1)
    broken = false
    await clock.advance(2000)
    expect(eventsOf('resolved')).toMatchObject([{ letter: { id, retries: 2 } }])
    await dlq.close()
  })

  describe(
    clause(
      'O4',
      'handlers for llm_call, github_api, tool_execution, verification can be registered',
    ),
    () => {
      it('runs the letters of each type', async () => {
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
    },
  )

  it(clause('O4', 'an unknown type is parked no-handler, not burnt'), async () => {
    const { dlq, clock } = await aQueue()
    dlq.handle('known', () => {})
    const { id } = await dlq.enqueue({ type: 'unknown' }, rateLimit())
    dlq.start()
    await clock.advance(70_000)
    expect(await dlq.get(id)).toMatchObject({ state: 'parked', reason: 'no-handler', retries: 0 })
    await dlq.close()
  })

  describe(
    clause(
      'O4',
      'handlers for llm_call, github_api, tool_execution, verification can be registered',
    ),
    () => {
      it('a result { ok: false, error } is a failure with its reason', async () => {
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
    },
  )
})

describe(row('O7'), () => {
  /**
   * One letter that succeeds at its second run, one that fails permanently, and one that a person
   * parks.
   */
  const createBusyQueue = async (): Promise<QueueBench> => {
    const bench = await aQueue({ backoff: fixed(1000), maxRetries: 2 })
    const { dlq, clock } = bench
    dlq.handle('good', ({ attempt }) => (attempt < 2 ? Promise.reject(timedOut()) : undefined))
    dlq.handle('bad', () => Promise.reject(timedOut()))
    dlq.start()
    await dlq.enqueue({ type: 'good' }, rateLimit(), { priority: 'high' })
    await dlq.enqueue({ type: 'bad' }, rateLimit())
    const parked = await dlq.enqueue({ type: 'bad' }, rateLimit(), { policy: fixed(1e9) })
    await dlq.park(parked.id)
    await clock.advance(10_000)
    return bench
  }

  it(clause('O7', 'metrics: every counter and average of the seed, exact'), async () => {
    const { dlq } = await createBusyQueue()
    expect(await dlq.metrics()).toMatchObject({
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
    })
    await dlq.close()
  })

  describe(clause('O7', 'getSummary() as text'), () => {
    it('has a line for each counter', async () => {
      const { dlq } = await createBusyQueue()
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

  it(clause('O7', 'success and abandonment rates'), async () => {
    const { dlq } = await createBusyQueue()
    expect(await dlq.metrics()).toMatchObject({ successRate: 1 / 3, abandonmentRate: 1 / 3 })
    await dlq.close()
    const empty = await aQueue()
    expect(await empty.dlq.metrics()).toMatchObject({ successRate: 0, abandonmentRate: 0 })
  })

  describe(clause('O7', 'exact on every path (retry, fail, review at capture)'), () => {
    it('runs reported with fail count as retries', async () => {
      const { dlq } = await aQueue({ maxRetries: 2 })
      const { id } = await dlq.enqueue({ type: 'a' }, rateLimit())
      await dlq.fail(id, refused())
      await dlq.fail(id, refused())
      expect(await dlq.metrics()).toMatchObject({
        totalRetried: 2,
        totalAbandoned: 1,
        avgRetryCount: 2,
        maxRetryCount: 2,
      })
    })

    it('a retry requested by a person counts once', async () => {
      const { dlq, clock } = await aQueue()
      dlq.handle('a', () => {})
      dlq.start()
      const { id } = await dlq.enqueue({ type: 'a' }, rateLimit())
      await dlq.retry(id)
      await clock.advance(0)
      expect(await dlq.metrics()).toMatchObject({ totalRetried: 1, totalSuccesses: 1 })
      await dlq.close()
    })

    it('a letter that is parked at its capture counts as a review', async () => {
      const { dlq } = await aQueue()
      await dlq.enqueue({ type: 'a' }, Object.assign(new Error('Forbidden'), { status: 403 }))
      expect(await dlq.metrics()).toMatchObject({ totalEnqueued: 1, totalManualReviews: 1 })
    })

    it('a review that resolves counts as a success', async () => {
      const { dlq } = await aQueue()
      const { id } = await dlq.enqueue({ type: 'a' }, rateLimit())
      await dlq.park(id)
      await dlq.review(id, { decision: 'resolve', by: 'tom' })
      expect(await dlq.metrics()).toMatchObject({ totalManualReviews: 1, totalSuccesses: 1 })
    })
  })

  it(clause('O7', 'breakdown by severity and source'), async () => {
    const { dlq } = await aQueue()
    const letters = await Promise.all([
      dlq.enqueue({ type: 'a' }, rateLimit()),
      dlq.enqueue({ type: 'a', payload: 2 }, Object.assign(new Error('x'), { code: 'ENOSPC' })),
    ])
    const failing = (): Promise<never> => Promise.reject(refused())
    await dlq.workflow().run({ id: 'wf_1', task: { type: 'sweep' } }, failing)
    const [third] = (await dlq.find({ sourceId: 'wf_1' })).items
    const severities = new Map<string, number>()
    for (const { severity } of [...letters, third!])
      severities.set(severity, (severities.get(severity) ?? 0) + 1)
    expect(await dlq.stats({ by: ['severity', 'source'] })).toMatchObject({
      severities: Object.fromEntries(severities),
      sources: { operation: 2, workflow: 1, mailbox: 0, pipeline: 0 },
    })
  })
})

describe(row('O8'), () => {
  it(clause('O8', 'manual review: needed on entry'), async () => {
    const { dlq } = await aQueue()
    const { id } = await dlq.enqueue({ type: 'a' }, rateLimit())
    const parked = await dlq.park(id, 'odd', 'mia')
    expect(Object.keys(parked.review!)).toEqual(['neededSince'])
    const forbidden = Object.assign(new Error('Forbidden'), { status: 403 })
    const atCapture = await dlq.enqueue({ type: 'a' }, forbidden)
    expect(atCapture).toMatchObject({ state: 'parked' })
    expect(Object.keys(atCapture.review!)).toEqual(['neededSince'])
  })

  describe(
    clause('O8', 'decided with actor, note and decision (requeue, resolve, discard)'),
    () => {
      it('resolve names the actor, the note and the time', async () => {
        const { dlq, clock } = await aQueue()
        const { id } = await dlq.enqueue({ type: 'a' }, rateLimit())
        const { review } = await dlq.park(id, 'odd', 'mia')
        await clock.advance(5000)
        const decided = await dlq.review(id, {
          decision: 'resolve',
          note: 'paid by hand',
          by: 'tom',
        })
        expect(decided).toMatchObject({
          state: 'resolved',
          review: { decidedBy: 'tom', decision: 'resolve', note: 'paid by hand' },
        })
        expect(decided.review!.decidedAt! > review!.neededSince).toBe(true)
        const actions = decided.history.map((entry) => `${entry.actor} ${entry.action}`)
        expect(actions).toEqual(['capture capture', 'mia park', 'tom review'])
      })
    },
  )

  describe(
    clause('O8', 'decided with actor, note and decision (requeue, resolve, discard)'),
    () => {
      it('requeue resets the retry budget, discard archives', async () => {
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
    },
  )
})

describe(row('O10'), () => {
  describe(clause('O10', "the seed's three unit tests pass in our vocabulary"), () => {
    it('enqueues an item', async () => {
      const { dlq } = await aQueue()
      const { id } = await dlq.enqueue({ type: 'llm_call', payload: {} }, rateLimit())
      expect((await dlq.find()).items.map((letter) => letter.id)).toEqual([id])
    })
  })

  describe(clause('O10', "the seed's three unit tests pass in our vocabulary"), () => {
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
  })

  describe(clause('O10', "the seed's three unit tests pass in our vocabulary"), () => {
    it('exhausts an item after its maximum number of retries', async () => {
      const { dlq } = await aQueue({ maxRetries: 2 })
      const { id } = await dlq.enqueue({ type: 'llm_call', payload: {} }, rateLimit())
      for (let round = 0; round < 2; round++) {
        await dlq.retry(id)
        await dlq.fail(id, new Error('Failed'))
      }
      expect(await dlq.get(id)).toMatchObject({ state: 'exhausted', retries: 2 })
    })
  })
})
