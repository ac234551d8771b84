import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import * as redrive from '../../src/index.ts'
import { decodePayload } from '../../src/letter/payload.ts'
import { DeadLetterQueue } from '../../src/queue/queue.ts'
import { memoryStore } from '../../src/stores/memory/memory.ts'
import { loadConfig } from '../../src/config/load.ts'
import { states, type ErrorCategory, type RetryPolicy } from '../../src/letter/letter.ts'
import type { LetterQuery } from '../../src/letter/query.ts'
import { pagerduty } from '../../src/observers/notify/pagerduty.ts'
import {
  backoffMs,
  custom,
  exponential,
  fixed,
  immediate,
  linear,
  never,
} from '../../src/policy/backoff.ts'
import { aQueue, deferred, refused, timedOut, type QueueBench } from '../a-queue.ts'
import { aFolder } from '../folders.ts'
import { clause, row } from './rows.ts'
import { onStore, storeKinds } from './stores.ts'
import { waitFor } from '../wait-for.ts'

function minutes(policy: RetryPolicy, count: number): (number | null)[] {
  return Array.from({ length: count }, (_, retry) => {
    const delayMs = backoffMs(policy, retry, () => 0.5)
    return delayMs === null ? null : delayMs / 60_000
  })
}

describe(row('W1'), () => {
  it(clause('W1', 'linear (5, 10, 15 … min)'), () => {
    expect(minutes(linear(), 4)).toEqual([5, 10, 15, 20])
  })

  it(clause('W1', 'exponential (1, 2, 4 … 60 min)'), () => {
    expect(minutes(exponential(), 8)).toEqual([1, 2, 4, 8, 16, 32, 60, 60])
  })

  it(clause('W1', "immediate, with the seed's formulas"), async () => {
    expect(minutes(immediate(), 3)).toEqual([0, 0, 0])
    const { dlq, clock } = await aQueue()
    const letter = await dlq.enqueue({ type: 'a' }, refused(), { policy: immediate() })
    expect(Date.parse(letter.retryAt!)).toBe(clock.now())
  })

  it(clause('W1', 'retry policies never'), async () => {
    expect(minutes(never(), 1)).toEqual([null])
    const { dlq } = await aQueue()
    const parked = { state: 'parked', reason: 'never' }
    expect(await dlq.enqueue({ type: 'a' }, refused(), { policy: never() })).toMatchObject(parked)
    expect(await dlq.enqueue({ type: 'a' }, refused(), { maxRetries: 0 })).toMatchObject(parked)
  })
})

describe(row('W2'), () => {
  const cases: [string, unknown, ErrorCategory, string][] = [
    ['a busy service', new Error('Service temporarily unavailable'), 'transient', 'exponential'],
    ['429 Too Many Requests', new Error('429 Too Many Requests'), 'rate-limit', 'exponential'],
    ['a reset connection', new Error('Connection reset by peer'), 'network', 'exponential'],
    ['a quota', new Error('disk quota exceeded'), 'resource', 'linear'],
    [
      'Permission denied for resource',
      new Error('Permission denied for resource'),
      'permission',
      'never',
    ],
    ['invalid workspace name', new Error('invalid workspace name'), 'validation', 'never'],
    ['Read timed out', new Error('Read timed out'), 'timeout', 'exponential'],
    [
      'ECONNREFUSED',
      Object.assign(new Error('x'), { code: 'ECONNREFUSED' }),
      'network',
      'exponential',
    ],
    [
      'an empty timeout',
      Object.assign(new Error(''), { name: 'TimeoutError' }),
      'timeout',
      'exponential',
    ],
    ['something odd', new Error('something odd'), 'unknown', 'exponential'],
  ]
  describe(
    clause('W2', "automatic classification into the seed's categories with their default policies"),
    () => {
      it.each(cases)('%s', async (_title, error, category, policy) => {
        const { dlq } = await aQueue()
        expect(await dlq.enqueue({ type: 'a' }, error)).toMatchObject({
          category,
          policy: { kind: policy },
        })
      })
    },
  )

  const wrong: [string, ErrorCategory][] = [
    ['room not found', 'resource'],
    ['author not found', 'permission'],
    ['no information available', 'validation'],
    ['certificate has expired', 'network'],
    ['502 Bad Gateway', 'permanent'],
    ['Deadlock detected', 'permanent'],
    ['fetch failed', 'validation'],
  ]
  describe(clause('W2', 'the wrong examples classified right'), () => {
    it.each(wrong)('%s is not %s', async (message, category) => {
      const { dlq } = await aQueue()
      expect((await dlq.enqueue({ type: 'a' }, new Error(message))).category).not.toBe(category)
    })
  })

  describe(
    clause('W2', "automatic classification into the seed's categories with their default policies"),
    () => {
      it('stores unknown errors, and retries them a few times', async () => {
        const { dlq } = await aQueue({ maxRetries: 10 })
        const { id } = await dlq.enqueue({ type: 'a' }, new Error('zzz'))
        for (let run = 0; run < 3; run++) await dlq.fail(id, new Error('zzz'))
        expect(await dlq.get(id)).toMatchObject({
          state: 'parked',
          reason: 'retries-exhausted',
          retries: 3,
        })
      })
    },
  )

  it(clause('W2', 'retry limits per category (5/3/2/0 in the seed) as an option'), async () => {
    const { dlq } = await aQueue({
      maxRetriesByCategory: { transient: 5, network: 3, resource: 2, permission: 0 },
      maxRetries: 9,
      backoff: immediate(),
    })
    const cases: [Error, number][] = [
      [new Error('Service temporarily unavailable'), 5],
      [new Error('Connection reset by peer'), 3],
      [new Error('disk quota exceeded'), 2],
    ]
    for (const [error, limit] of cases) {
      const { id } = await dlq.enqueue({ type: 'a', payload: limit }, error)
      let runs = 0
      for (; (await dlq.get(id))?.state === 'pending'; runs++) await dlq.fail(id, error)
      expect(runs, error.message).toBe(limit)
    }
    const denied = await dlq.enqueue({ type: 'a' }, new Error('Permission denied'))
    expect(denied).toMatchObject({ state: 'parked', retries: 0 })
  })
})

describe(row('W5'), () => {
  it(clause('W5', 'background processor start/stop (drains)'), async () => {
    const { dlq, clock, eventsOf } = await aQueue({ backoff: immediate(), maxConcurrent: 1 })
    const gate = deferred()
    dlq.handle('a', () => gate.promise)
    for (let n = 0; n < 2; n++) await dlq.enqueue({ type: 'a', payload: n }, refused())
    await clock.advance(60_000)
    expect(eventsOf('started')).toEqual([])
    dlq.start()
    dlq.start()
    await clock.advance(0)
    let stopped = false
    const stopping = dlq.stop().then(() => (stopped = true))
    await clock.advance(0)
    expect(stopped).toBe(false)
    gate.resolve()
    await stopping
    expect(eventsOf('resolved')).toHaveLength(1)
    expect((await dlq.stats()).states).toMatchObject({ resolved: 1, pending: 1 })
  })

  it(clause('W5', 'interval'), async () => {
    // Without a watch, letters of another process are found by polling.
    const { dlq, clock, store, eventsOf } = await aQueue({ pollMs: 30_000 }, (fake) =>
      Object.assign(memoryStore({ clock: fake }), { watch: () => () => {} }),
    )
    dlq.handle('a', () => {})
    dlq.start()
    await clock.advance(1000)
    const other = await DeadLetterQueue.open(store, { clock, backoff: immediate() })
    await other.enqueue({ type: 'a' }, refused())
    await clock.advance(20_000)
    expect(eventsOf('resolved')).toEqual([])
    await clock.advance(20_000)
    expect(eventsOf('resolved')).toHaveLength(1)
    await dlq.close()
  })

  describe(clause('W5', 'parallel within a bound'), () => {
    it('at most maxConcurrent run at once', async () => {
      const { dlq, clock } = await aQueue({ backoff: immediate(), maxConcurrent: 2 })
      const gates = [deferred(), deferred(), deferred()]
      let begun = 0
      dlq.handle('a', () => gates[begun++]!.promise)
      for (let n = 0; n < 3; n++) await dlq.enqueue({ type: 'a', payload: n }, refused())
      dlq.start()
      await clock.advance(0)
      expect(begun).toBe(2)
      gates[0]!.resolve()
      await clock.advance(10)
      expect(begun).toBe(3)
      for (const gate of gates) gate.resolve()
      await dlq.close()
    })
  })

  describe(clause('W5', 'parallel within a bound'), () => {
    it('a slow letter does not block the others', async () => {
      const { dlq, clock, eventsOf } = await aQueue({ backoff: immediate(), maxConcurrent: 2 })
      const slow = deferred()
      dlq.handle('a', ({ input }) => (input === 'slow' ? slow.promise : undefined))
      await dlq.enqueue({ type: 'a', payload: 'slow' }, refused())
      for (let n = 0; n < 5; n++) await dlq.enqueue({ type: 'a', payload: n }, refused())
      dlq.start()
      await clock.advance(0)
      expect(eventsOf('resolved')).toHaveLength(5)
      slow.resolve()
      await dlq.close()
    })
  })

  it(clause('W5', 'circuit breaker respected'), async () => {
    const breaker = { failures: 3, openMs: 60_000 }
    const { dlq, clock, eventsOf } = await aQueue({
      backoff: linear(),
      priority: 'critical',
      maxConcurrent: 1,
      breaker,
    })
    dlq.handle('a', () => Promise.reject(refused()))
    for (let n = 0; n < 10; n++) await dlq.enqueue({ type: 'a', payload: n }, refused())
    dlq.start()
    await clock.advance(30_000)
    expect(eventsOf('started')).toHaveLength(3)
    const unspent = (await dlq.find({ limit: 100 })).items.filter((letter) => letter.retries === 0)
    expect(unspent).toHaveLength(10)
    await dlq.close()
  })
})

describe(row('W6'), () => {
  it(clause('W6', 'pages past 100'), async () => {
    const { dlq } = await aQueue()
    await dlq.enqueueAll(
      Array.from({ length: 250 }, (_, n) => ({
        operation: { type: 'a', payload: n },
        error: refused(),
      })),
    )
    const seen: string[] = []
    let cursor: string | undefined
    do {
      const page = await dlq.find({ state: 'pending', limit: 60, ...(cursor ? { cursor } : {}) })
      seen.push(...page.items.map((letter) => letter.id))
      cursor = page.cursor
    } while (cursor)
    expect(seen).toHaveLength(250)
    expect(new Set(seen).size).toBe(250)
  })

  it(clause('W6', 'list, get'), async () => {
    const { dlq } = await aQueue()
    const { id } = await dlq.enqueue({ type: 'a', payload: { n: 1 } }, refused())
    await dlq.enqueue({ type: 'b' }, refused())
    expect((await dlq.find({ queue: 'a' })).items).toMatchObject([{ id, state: 'pending' }])
    expect((await dlq.find()).items).toHaveLength(2)
    const letter = await dlq.get(id)
    expect(decodePayload(letter!.payload)).toEqual({ n: 1 })
  })

  it(clause('W6', 'retry now'), async () => {
    const { dlq, clock } = await aQueue({ maxRetries: 1 })
    const { id } = await dlq.enqueue({ type: 'a' }, refused())
    expect(Date.parse((await dlq.retry(id)).retryAt!)).toBe(clock.now())
    await dlq.fail(id, refused())
    expect((await dlq.get(id))?.state).toBe('exhausted')
    expect(await dlq.retry(id, 'mia')).toMatchObject({ state: 'pending', retries: 0 })
  })

  describe(clause('W6', 'retry can wait for and report its outcome'), () => {
    it('resolves with the letter as the run left it', async () => {
      const { dlq, clock } = await aQueue({ maxRetries: 1 })
      let broken = false
      dlq.handle('a', () => (broken ? Promise.reject(new Error('still broken')) : undefined))
      dlq.start()
      const [good, bad] = [
        await dlq.enqueue({ type: 'a', payload: 1 }, refused()),
        await dlq.enqueue({ type: 'a', payload: 2 }, refused()),
      ]
      const first = dlq.retry(good.id, 'mia', { wait: true })
      await clock.advance(0)
      expect(await first).toMatchObject({ id: good.id, state: 'resolved' })
      broken = true
      const second = dlq.retry(bad.id, 'mia', { wait: true })
      await clock.advance(0)
      expect(await second).toMatchObject({
        id: bad.id,
        retries: 1,
        failure: { message: 'still broken' },
      })
      await dlq.close()
    })
  })

  it(clause('W6', 'archive, restore'), async () => {
    const { dlq } = await aQueue()
    const { id } = await dlq.enqueue({ type: 'a' }, refused())
    await dlq.archive(id)
    expect((await dlq.find()).items).toEqual([])
    expect((await dlq.find({ state: 'archived' })).items).toMatchObject([{ id }])
    expect((await dlq.restore(id)).state).toBe('pending')
    expect((await dlq.find()).items).toMatchObject([{ id }])
  })

  it(clause('W6', 'clear with confirmation'), async () => {
    const { dlq } = await aQueue()
    for (const type of ['a', 'a', 'b']) await dlq.enqueue({ type }, refused())
    for (const confirm of [0, 1, 3])
      await expect(dlq.clear({ queue: 'a' }, { confirm })).rejects.toMatchObject({
        code: 'INVALID_INPUT',
      })
    expect((await dlq.stats()).size).toBe(3)
    expect(await dlq.clear({ queue: 'a' }, { confirm: 2 })).toBe(2)
    expect((await dlq.find()).items).toMatchObject([{ queue: 'b' }])
  })
})

describe(row('W7'), () => {
  const four = async (): Promise<QueueBench> => {
    const bench = await aQueue({ maxItems: 200, pollMs: 2500 })
    const [first] = await bench.dlq.enqueueAll(
      Array.from({ length: 4 }, () => ({ operation: { type: 'a' }, error: refused() })),
    )
    await bench.dlq.resolve(first!)
    return bench
  }

  it(clause('W7', 'statistics: size, max, utilisation'), async () => {
    const { dlq } = await four()
    expect(await dlq.stats()).toMatchObject({ size: 4, maxItems: 200, utilisation: 2 })
  })

  it(clause('W7', 'breakdown by state, category, policy'), async () => {
    const { dlq } = await four()
    const { states: byState, categories, policies } = await dlq.stats()
    expect(Object.keys(byState)).toEqual([...states])
    expect(byState).toMatchObject({ pending: 3, resolved: 1 })
    expect(categories).toMatchObject({ network: 4, unknown: 0 })
    expect(policies).toEqual({ exponential: 4 })
  })

  it(clause('W7', 'processor running, interval'), async () => {
    const { dlq } = await four()
    expect((await dlq.stats()).processor).toEqual({ running: false, active: 0, pollMs: 2500 })
    dlq.start()
    expect((await dlq.stats()).processor.running).toBe(true)
    await dlq.close()
  })
})

describe(row('W3'), () => {
  const permanent = (): Error => Object.assign(new Error('gone'), { status: 410 })
  const task = { id: 'wf_1', task: { type: 'code_sweep' }, targets: ['a'] }
  const failing = (thrown: Error) => (): Promise<never> => Promise.reject(thrown)

  describe(clause('W3', 'strategies automatic, selective, manual, disabled'), () => {
    it.each([
      ['automatic', refused(), { enqueued: true }],
      ['automatic', permanent(), { enqueued: true }],
      ['selective', refused(), { enqueued: true }],
      ['selective', permanent(), { enqueued: false, why: 'not-selected' }],
      ['manual', refused(), { enqueued: false, why: 'manual' }],
      ['disabled', refused(), { enqueued: false, why: 'disabled' }],
    ] as const)('%s: %s', async (strategy, error, expected) => {
      const { dlq } = await aQueue()
      const workflow = dlq.workflow({ strategy })
      expect(await workflow.run(task, failing(error))).toMatchObject({
        status: 'failed',
        ...expected,
      })
      expect((await dlq.find()).items).toHaveLength(expected.enqueued ? 1 : 0)
    })
  })

  it(clause('W3', 'switchable at run time'), async () => {
    const { dlq } = await aQueue()
    const workflow = dlq.workflow({ strategy: 'disabled' })
    expect(await workflow.run(task, failing(refused()))).toMatchObject({ why: 'disabled' })
    workflow.setStrategy('manual')
    expect(await workflow.enqueue(task, refused())).toMatchObject({ enqueued: true })
  })

  it(clause('W3', 'the result says enqueued or why not'), async () => {
    const { dlq } = await aQueue({ maxItems: 1 })
    await dlq.enqueue({ type: 'a' }, refused())
    const result = await dlq.workflow().run(task, failing(refused()))
    expect(result).toMatchObject({ enqueued: false, why: 'queue-full' })
  })
})

describe(row('W4'), () => {
  it(clause('W4', 'task id, task, repos (targets), error, metadata, adapter kept'), async () => {
    const { dlq } = await aQueue()
    const workflow = dlq.workflow<{ type: string }>({ name: 'sweep' })
    const task = {
      id: 'wf_1',
      task: { type: 'code_sweep' },
      targets: ['a', 'b'],
      adapter: 'llamaindex',
      metadata: { team: 'platform' },
    }
    await workflow.run(task, () => Promise.reject(refused()))
    const [letter] = (await dlq.find({ payload: true })).items
    expect(letter).toMatchObject({
      queue: 'sweep',
      source: { kind: 'workflow', taskId: 'wf_1', targets: ['a', 'b'], adapter: 'llamaindex' },
      metadata: { team: 'platform' },
      failure: { code: 'ECONNREFUSED' },
    })
    expect(decodePayload(letter!.payload)).toMatchObject({ task: { type: 'code_sweep' } })
  })

  it(clause('W4', 'retried with the same context'), async () => {
    const { dlq, clock } = await aQueue({ backoff: immediate() })
    const seen: unknown[] = []
    const workflow = dlq.workflow<{ type: string }>({
      name: 'sweep',
      handler: async ({ id, task, targets = [], adapter, user }) => {
        seen.push({ id, task, targets, adapter, user })
        const left = targets.filter((target) => target === 'b' && seen.length < 3)
        return left.length > 0 ? { status: 'partial', failed: left } : { status: 'completed' }
      },
    })
    const result = await workflow.run({
      id: 'wf_1',
      task: { type: 'code_sweep' },
      targets: ['a', 'b'],
      adapter: 'llamaindex',
      user: { id: 'mia' },
      metadata: { team: 'platform' },
    })
    expect(result).toMatchObject({ status: 'partial', failed: ['b'], enqueued: true })
    dlq.start()
    await clock.advance(10)
    const context = {
      id: 'wf_1',
      task: { type: 'code_sweep' },
      adapter: 'llamaindex',
      user: { id: 'mia' },
    }
    expect(seen).toEqual([
      { ...context, targets: ['a', 'b'] },
      { ...context, targets: ['b'] },
      { ...context, targets: ['b'] },
    ])
    expect((await dlq.stats()).states).toMatchObject({ resolved: 1 })
    await dlq.close()
  })

  describe(clause('W4', "found by the workflow's own id and by metadata on every store"), () => {
    it.each(storeKinds)('%s', async (kind) => {
      await onStore(kind, async (open) => {
        const dlq = await open()
        const workflow = dlq.workflow({ name: 'sweep' })
        const failing = (): Promise<never> => Promise.reject(refused())
        for (const [id, team] of [
          ['wf_1', 'platform'],
          ['wf_2', 'data'],
        ] as const)
          await workflow.run({ id, task: { type: 'code_sweep' }, metadata: { team } }, failing)
        const find = async (query: LetterQuery): Promise<unknown[]> =>
          (await dlq.find(query)).items.map(({ source }) => 'taskId' in source && source.taskId)
        await expect.poll(() => find({ sourceId: 'wf_1' })).toEqual(['wf_1'])
        await expect.poll(() => find({ metadata: { team: 'data' } })).toEqual(['wf_2'])
        expect(await find({ sourceId: 'wf_3' })).toEqual([])
        expect(await find({ metadata: { team: 'platform', region: 'eu' } })).toEqual([])
      })
    })
  })

  it(clause('W4', 'a returned failed/partial status is a failure'), async () => {
    const { dlq, clock, eventsOf } = await aQueue({ backoff: immediate(), maxRetries: 2 })
    const workflow = dlq.workflow({
      handler: async () => ({ status: 'failed', error: timedOut() }),
    })
    expect(await workflow.run({ id: 'wf_2', task: 1 })).toMatchObject({
      status: 'failed',
      enqueued: true,
    })
    dlq.start()
    await clock.advance(10)
    expect(eventsOf('resolved')).toEqual([])
    expect((await dlq.stats()).states).toMatchObject({ exhausted: 1 })
    await dlq.close()
  })
})

describe(row('W8'), () => {
  describe('in an embedding program', () => {
    const folder = aFolder('settings')

    const configured = async (text: string): Promise<DeadLetterQueue> => {
      const file = join(folder, 'redrive.yaml')
      await writeFile(file, `store: 'memory:'\n${text}`)
      const { store, options } = redrive.loadConfig({ file, env: { REDRIVE_DLQ_MAX_SIZE: '300' } })
      return DeadLetterQueue.open(store, options)
    }

    it(clause('W8', 'an embedding application can load the same settings'), async () => {
      await using dlq = await configured('dlq_default_max_retries: 7')
      expect((await dlq.stats()).maxItems).toBe(300)
      expect((await dlq.enqueue({ type: 'a' }, refused())).maxRetries).toBe(7)
    })

    it(clause('W8', 'disabling stops capture'), async () => {
      await using dlq = await configured('dlq_enabled: false')
      await expect(dlq.enqueue({ type: 'a' }, refused())).rejects.toMatchObject({
        code: 'CAPTURE_DISABLED',
      })
      const charge = dlq.guard('charges', () => Promise.reject(refused()))
      await expect(charge({})).rejects.toThrow('ECONNREFUSED')
      const failing = (): Promise<never> => Promise.reject(refused())
      expect(await dlq.workflow().run({ id: 'wf_1', task: 1 }, failing)).toMatchObject({
        enqueued: false,
        why: 'disabled',
      })
      expect((await dlq.find()).items).toEqual([])
    })
  })

  const files: Record<string, string> = {}
  const load = (yaml: string, env: Record<string, string> = {}) =>
    loadConfig({
      env,
      read: (path) => {
        if (path === 'redrive.yaml') return yaml
        const text = files[path]
        if (text === undefined) throw Object.assign(new Error('none'), { code: 'ENOENT' })
        return text
      },
    })
  const yaml = `
dlq_enabled: true
dlq_max_size: 5000
dlq_default_retry_policy: linear
dlq_default_max_retries: 7
dlq_retry_processor_enabled: true
dlq_retry_interval_seconds: 30
`

  describe(clause('W8', 'from YAML and environment'), () => {
    it('the six settings from YAML', () => {
      const { options } = load(yaml)
      expect(options).toMatchObject({
        capture: true,
        redeliver: true,
        maxItems: 5000,
        maxRetries: 7,
        pollMs: 30_000,
      })
      expect(options.backoff).toEqual(linear())
    })
  })

  describe(clause('W8', 'from YAML and environment'), () => {
    it('the environment overrides the file, and a variable may name a file', () => {
      files['/run/size'] = '200\n'
      const { options } = load(yaml, {
        REDRIVE_DLQ_MAX_SIZE_FILE: '/run/size',
        REDRIVE_DLQ_DEFAULT_RETRY_POLICY: 'immediate',
        REDRIVE_DLQ_RETRY_PROCESSOR_ENABLED: 'false',
      })
      expect(options).toMatchObject({ maxItems: 200, maxRetries: 7, backoff: immediate() })
      expect(options.redeliver).toBe(false)
    })
  })

  describe(clause('W8', "settings with the seed's names and bounds"), () => {
    it('defaults: 10,000, exponential, 3 retries, 60 s', () => {
      expect(load('dlq_enabled: true').options).toMatchObject({
        maxItems: 10_000,
        maxRetries: 3,
        pollMs: 60_000,
        backoff: exponential(),
      })
    })
  })

  describe(clause('W8', "settings with the seed's names and bounds"), () => {
    it.each([
      ['dlq_max_size', [100, 100_000], [99, 100_001]],
      ['dlq_default_max_retries', [0, 10], [-1, 11, 1.5]],
      ['dlq_retry_interval_seconds', [10, 3600], [9, 3601]],
    ])('%s is checked against its bounds, and the error names them', (key, allowed, refused) => {
      for (const value of allowed) expect(() => load(`${key}: ${value}`)).not.toThrow()
      for (const value of refused)
        expect(() => load(`${key}: ${value}`)).toThrow(
          Number.isInteger(value) ? new RegExp(`${key}.*${allowed[0]}.*${allowed[1]}`, 's') : key,
        )
    })
  })

  it(clause('W8', 'a wrong value is refused with the allowed ones'), () => {
    expect(() => load('dlq_default_retry_policy: sometimes')).toThrow(
      /never, linear, exponential or immediate/,
    )
    expect(() => load('dlq_max_sise: 500')).toThrow(/dlq_max_size/)
  })
})

describe(row('W10'), () => {
  const raised = (events: { state: string; alert: { name: string } }[]): string[] =>
    events.filter(({ state }) => state === 'raised').map(({ alert }) => alert.name)

  it(clause('W10', 'monitoring rules: utilisation > 80 %'), async () => {
    const { dlq, clock, eventsOf } = await aQueue({ maxItems: 10 })
    for (let n = 0; n < 8; n++) await dlq.enqueue({ type: 'a' }, refused(), { policy: never() })
    dlq.start()
    await clock.advance(61_000)
    expect(eventsOf('alert')).toEqual([])
    const { id } = await dlq.enqueue({ type: 'a' }, refused(), { policy: never() })
    await clock.advance(180_000)
    expect(raised(eventsOf('alert'))).toEqual(['nearly-full'])
    expect((await dlq.health()).alerts).toMatchObject([{ name: 'nearly-full' }])
    await dlq.archive(id)
    await clock.advance(61_000)
    expect(eventsOf('alert').at(-1)).toMatchObject({ state: 'cleared' })
    await dlq.close()
  })

  it(clause('W10', 'exhausted > 100'), async () => {
    const { dlq, clock, eventsOf } = await aQueue({
      maxRetries: 1,
      backoff: immediate(),
      breaker: false,
    })
    dlq.handle('a', () => Promise.reject(timedOut()))
    for (let n = 0; n < 101; n++) await dlq.enqueue({ type: 'a', payload: n }, refused())
    dlq.start()
    await clock.advance(120_000)
    expect(raised(eventsOf('alert'))).toContain('many-exhausted')
    expect(raised(eventsOf('alert')).filter((name) => name === 'many-exhausted')).toHaveLength(1)
    await dlq.close()
  })

  it(clause('W10', 'success rate < 50 %'), async () => {
    const { dlq, clock, eventsOf } = await aQueue({
      backoff: immediate(),
      maxRetries: 1,
      breaker: false,
    })
    dlq.handle('a', ({ input }) => {
      if (Number(input) % 3 > 0) throw timedOut()
    })
    for (let n = 0; n < 30; n++) await dlq.enqueue({ type: 'a', payload: n }, refused())
    dlq.start()
    await clock.advance(61_000)
    expect(raised(eventsOf('alert'))).toEqual(['retries-fail'])
    await dlq.close()
  })
})

describe(row('W12'), () => {
  it(clause('W12', 'its future list: priority queues'), async () => {
    const { dlq, clock } = await aQueue({ maxConcurrent: 1 })
    const order: unknown[] = []
    dlq.handle('a', ({ letter }) => void order.push(letter.priority))
    for (const priority of ['low', 'high', 'critical', 'medium'] as const) {
      const { id } = await dlq.enqueue({ type: 'a', payload: priority }, refused(), { priority })
      await dlq.retry(id)
    }
    dlq.start()
    await clock.advance(10)
    expect(order).toEqual(['critical', 'high', 'medium', 'low'])
    await dlq.close()
  })

  it(clause('W12', 'task dependencies'), async () => {
    const { dlq, clock } = await aQueue({ backoff: immediate() })
    const order: unknown[] = []
    let failures = 2
    dlq.handle('a', ({ input }) => {
      if (input === 'A' && failures-- > 0) throw refused()
      order.push(input)
    })
    const first = await dlq.enqueue({ type: 'a', payload: 'A' }, refused())
    await dlq.enqueue({ type: 'a', payload: 'B' }, refused(), { dependsOn: [first.id] })
    for (const payload of ['1', '2', '3'])
      await dlq.enqueue({ type: 'a', payload }, refused(), { lane: 'mia' })
    dlq.start()
    await clock.advance(1000)
    expect(order.indexOf('A')).toBeLessThan(order.indexOf('B'))
    expect(order.filter((one) => Number(one) > 0)).toEqual(['1', '2', '3'])
    await dlq.close()
  })

  it(clause('W12', 'custom backoff'), async () => {
    const { dlq, clock } = await aQueue({
      backoff: custom('fibonacci'),
      backoffs: { fibonacci: (retry) => [1000, 1000, 2000, 3000][retry]! },
    })
    const { retryAt } = await dlq.enqueue({ type: 'a' }, refused())
    expect(Date.parse(retryAt!) - clock.now()).toBe(1000)
  })

  it(clause('W12', 'templates for common failure patterns'), async () => {
    const { dlq, clock } = await aQueue({
      templates: [
        'expired-credentials',
        {
          name: 'nightly-maintenance',
          when: { message: 'closed for maintenance' },
          category: 'dependency',
          backoff: fixed(1_800_000),
          maxRetries: 12,
          priority: 'low',
          hint: 'The warehouse is closed from 2 to 4.',
        },
      ],
    })
    const closed = new Error('the warehouse is closed for maintenance')
    const letter = await dlq.enqueue({ type: 'a' }, closed)
    expect(letter).toMatchObject({
      category: 'dependency',
      maxRetries: 12,
      priority: 'low',
      failure: { hint: 'The warehouse is closed from 2 to 4.' },
    })
    expect(Date.parse(letter.retryAt!) - clock.now()).toBe(1_800_000)
    const expired = Object.assign(new Error('token expired'), { status: 401 })
    expect((await dlq.enqueue({ type: 'a' }, expired)).failure.hint).toMatch(
      /key|credential|token/i,
    )
  })

  it(clause('W12', 'automatic alerting on exhausted'), async () => {
    const { dlq, clock, eventsOf } = await aQueue({
      maxRetries: 1,
      backoff: immediate(),
      alerts: [
        { name: 'any-exhausted', when: { metric: 'exhausted', above: 0 }, severity: 'warning' },
      ],
    })
    dlq.handle('a', () => Promise.reject(timedOut()))
    await dlq.enqueue({ type: 'a' }, refused())
    dlq.start()
    await clock.advance(61_000)
    expect(eventsOf('alert')).toMatchObject([{ state: 'raised', alert: { name: 'any-exhausted' } }])
    await dlq.close()
  })

  it(clause('W12', 'incident-management integration'), async () => {
    const sent: { event_action: string; dedup_key: string }[] = []
    const server = createServer((request, response) => {
      let body = ''
      request.on('data', (part) => (body += part))
      request.on('end', () => {
        sent.push(JSON.parse(body))
        response.writeHead(202).end()
      })
    })
    await new Promise<void>((resolve) => void server.listen(0, '127.0.0.1', resolve))
    const { port } = server.address() as AddressInfo
    const incidents = pagerduty({
      routingKey: 'k'.repeat(32),
      url: `http://127.0.0.1:${port}/`,
      private: true,
    })
    const { dlq, clock } = await aQueue({
      maxRetries: 1,
      backoff: immediate(),
      alerts: [
        { name: 'exhausted', when: { metric: 'exhausted', above: 0 }, severity: 'critical' },
      ],
      notify: { incidents },
    })
    dlq.handle('a', () => Promise.reject(timedOut()))
    const { id } = await dlq.enqueue({ type: 'a' }, refused())
    dlq.start()
    await clock.advance(61_000)
    await waitFor(() => expect(sent).toHaveLength(1))
    await dlq.resolve(id, 'mia')
    await clock.advance(61_000)
    await waitFor(() => expect(sent).toHaveLength(2))
    expect(sent.map(({ event_action }) => event_action)).toEqual(['trigger', 'resolve'])
    expect(sent[0]!.dedup_key).toBe(sent[1]!.dedup_key)
    await dlq.close()
    server.close()
  })
})
