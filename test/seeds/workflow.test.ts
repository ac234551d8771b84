import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { describe, expect, it } from 'vitest'
import { loadConfig } from '../../src/config/load.ts'
import { states, type ErrorCategory, type RetryPolicy } from '../../src/letter/letter.ts'
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
import { aQueue, deferred, refused } from '../a-queue.ts'
import { quote } from './rows.ts'

function minutes(policy: RetryPolicy, count: number): (number | null)[] {
  return Array.from({ length: count }, (_, retry) => {
    const delayMs = backoffMs(policy, retry, () => 0.5)
    return delayMs === null ? null : delayMs / 60_000
  })
}

describe(quote('W1'), () => {
  it('linear waits 5 · (n + 1) minutes', () => {
    expect(minutes(linear(), 4)).toEqual([5, 10, 15, 20])
  })

  it('exponential waits min(2ⁿ, 60) minutes', () => {
    expect(minutes(exponential(), 8)).toEqual([1, 2, 4, 8, 16, 32, 60, 60])
  })

  it('immediate does not wait, never does not retry', () => {
    expect(minutes(immediate(), 2)).toEqual([0, 0])
    expect(minutes(never(), 1)).toEqual([null])
  })

  it('never is parked at once, and exponential is the default', async () => {
    const { dlq } = await aQueue()
    const parked = { state: 'parked', reason: 'never' }
    expect(await dlq.enqueue({ type: 'a' }, refused(), { policy: never() })).toMatchObject(parked)
    expect(await dlq.enqueue({ type: 'a' }, refused(), { maxRetries: 0 })).toMatchObject(parked)
    expect((await dlq.enqueue({ type: 'a' }, refused())).policy.kind).toBe('exponential')
  })
})

describe(quote('W2'), () => {
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
  it.each(cases)('%s', async (_title, error, category, policy) => {
    const { dlq } = await aQueue()
    expect(await dlq.enqueue({ type: 'a' }, error)).toMatchObject({
      category,
      policy: { kind: policy },
    })
  })

  const wrong: [string, ErrorCategory][] = [
    ['room not found', 'resource'],
    ['author not found', 'permission'],
    ['no information available', 'validation'],
    ['certificate has expired', 'network'],
    ['502 Bad Gateway', 'permanent'],
    ['Deadlock detected', 'permanent'],
    ['fetch failed', 'validation'],
  ]
  it.each(wrong)('%s is not %s', async (message, category) => {
    const { dlq } = await aQueue()
    expect((await dlq.enqueue({ type: 'a' }, new Error(message))).category).not.toBe(category)
  })

  it('keeps what it does not know, and retries it a little', async () => {
    const { dlq } = await aQueue({ maxRetries: 10 })
    const { id } = await dlq.enqueue({ type: 'a' }, new Error('zzz'))
    for (let run = 0; run < 3; run++) await dlq.fail(id, new Error('zzz'))
    expect(await dlq.get(id)).toMatchObject({
      state: 'parked',
      reason: 'retries-exhausted',
      retries: 3,
    })
  })
})

describe(quote('W5'), () => {
  it('starts, runs in parallel within a bound, and stop drains', async () => {
    const { dlq, clock, heard } = await aQueue({ backoff: immediate(), maxConcurrent: 2 })
    const gates = [deferred(), deferred(), deferred()]
    let begun = 0
    dlq.handle('a', () => gates[begun++]!.promise)
    for (let n = 0; n < 3; n++) await dlq.enqueue({ type: 'a' }, refused())
    dlq.start()
    await clock.advance(0)
    expect(begun).toBe(2)
    const stopped = dlq.stop()
    for (const gate of gates) gate.resolve()
    await stopped
    expect(heard('resolved')).toHaveLength(2)
    expect((await dlq.stats()).states).toMatchObject({ resolved: 2, pending: 1 })
  })

  it('a slow letter does not hold up the others', async () => {
    const { dlq, clock, heard } = await aQueue({ backoff: immediate(), maxConcurrent: 2 })
    const slow = deferred()
    dlq.handle('a', ({ input }) => (input === 'slow' ? slow.promise : undefined))
    await dlq.enqueue({ type: 'a', payload: 'slow' }, refused())
    for (let n = 0; n < 5; n++) await dlq.enqueue({ type: 'a', payload: n }, refused())
    dlq.start()
    await clock.advance(0)
    expect(heard('resolved')).toHaveLength(5)
    slow.resolve()
    await dlq.close()
  })

  it('respects an open breaker: letters wait and spend no retry', async () => {
    const breaker = { failures: 3, openMs: 60_000 }
    const { dlq, clock, heard } = await aQueue({
      backoff: linear(),
      priority: 'critical',
      maxConcurrent: 1,
      breaker,
    })
    dlq.handle('a', () => Promise.reject(refused()))
    for (let n = 0; n < 10; n++) await dlq.enqueue({ type: 'a', payload: n }, refused())
    dlq.start()
    await clock.advance(30_000)
    expect(heard('started')).toHaveLength(3)
    const unspent = (await dlq.find({ limit: 100 })).items.filter((letter) => letter.retries === 0)
    expect(unspent).toHaveLength(7)
    await dlq.close()
  })
})

describe(quote('W6'), () => {
  it('pages past 100 without skipping or repeating', async () => {
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

  it('gets, retries now, archives out of sight, restores, and clears only with confirmation', async () => {
    const { dlq, clock } = await aQueue()
    const { id } = await dlq.enqueue({ type: 'a' }, refused())
    expect(Date.parse((await dlq.retry(id)).retryAt!)).toBe(clock.now())
    await dlq.archive(id)
    expect((await dlq.find()).items).toEqual([])
    expect((await dlq.get(id))?.state).toBe('archived')
    expect((await dlq.restore(id)).state).toBe('pending')
    await expect(dlq.clear({ queue: 'a' }, { confirm: 7 })).rejects.toMatchObject({
      code: 'INVALID_INPUT',
    })
    expect(await dlq.clear({ queue: 'a' }, { confirm: 1 })).toBe(1)
  })
})

describe(quote('W7'), () => {
  it('has size, maximum, utilisation, breakdowns, lifetime totals and the processor', async () => {
    const { dlq } = await aQueue({ maxItems: 200, pollMs: 2500 })
    const [first] = await dlq.enqueueAll(
      Array.from({ length: 4 }, () => ({ operation: { type: 'a' }, error: refused() })),
    )
    await dlq.resolve(first!)
    const stats = await dlq.stats()
    expect(stats).toMatchObject({
      size: 4,
      maxItems: 200,
      utilisation: 2,
      queues: { a: 4 },
      policies: { exponential: 4 },
      categories: { network: 4 },
      lifetime: { captured: 4, resolved: 1 },
      processor: { running: false, active: 0, pollMs: 2500 },
    })
    expect(Object.keys(stats.states)).toEqual([...states])
    dlq.start()
    expect((await dlq.stats()).processor.running).toBe(true)
    await dlq.close()
  })
})

describe(quote('W3'), () => {
  const permanent = (): Error => Object.assign(new Error('gone'), { status: 410 })
  const task = { id: 'wf_1', task: { type: 'code_sweep' }, targets: ['a'] }
  const failing = (thrown: Error) => (): Promise<never> => Promise.reject(thrown)

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

  it('is switched at run time', async () => {
    const { dlq } = await aQueue()
    const workflow = dlq.workflow({ strategy: 'disabled' })
    expect(await workflow.run(task, failing(refused()))).toMatchObject({ why: 'disabled' })
    workflow.setStrategy('manual')
    expect(await workflow.enqueue(task, refused())).toMatchObject({ enqueued: true })
  })

  it('says that the queue is full, not that a policy skipped it', async () => {
    const { dlq } = await aQueue({ maxItems: 1 })
    await dlq.enqueue({ type: 'a' }, refused())
    const result = await dlq.workflow().run(task, failing(refused()))
    expect(result).toMatchObject({ enqueued: false, why: 'queue-full' })
  })
})

describe(quote('W4'), () => {
  it('keeps the whole context, and retries with it only the targets that failed', async () => {
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
    const [letter] = (await dlq.find()).items
    expect(letter).toMatchObject({
      queue: 'sweep',
      source: { kind: 'workflow', taskId: 'wf_1', targets: ['a', 'b'], adapter: 'llamaindex' },
      metadata: { team: 'platform' },
    })
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

  it('takes a returned failed status for a failure, at the door and on retry', async () => {
    const { dlq, clock, heard } = await aQueue({ backoff: immediate(), maxRetries: 2 })
    const workflow = dlq.workflow({ handler: async () => ({ status: 'failed', error: refused() }) })
    expect(await workflow.run({ id: 'wf_2', task: 1 })).toMatchObject({
      status: 'failed',
      enqueued: true,
    })
    dlq.start()
    await clock.advance(10)
    expect(heard('resolved')).toEqual([])
    expect((await dlq.stats()).states).toMatchObject({ exhausted: 1 })
    await dlq.close()
  })
})

describe(quote('W8'), () => {
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

  it('reads the six settings from YAML', () => {
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

  it('reads them from the environment, which goes before the file, and from files of secrets', () => {
    files['/run/size'] = '200\n'
    const { options } = load(yaml, {
      REDRIVE_DLQ_MAX_SIZE_FILE: '/run/size',
      REDRIVE_DLQ_DEFAULT_RETRY_POLICY: 'immediate',
      REDRIVE_DLQ_RETRY_PROCESSOR_ENABLED: 'false',
    })
    expect(options).toMatchObject({ maxItems: 200, maxRetries: 7, backoff: immediate() })
    expect(options.redeliver).toBe(false)
  })

  it('has the defaults of the design: 10,000, exponential, 3 retries, 60 s', () => {
    expect(load('dlq_enabled: true').options).toMatchObject({
      maxItems: 10_000,
      maxRetries: 3,
      pollMs: 60_000,
      backoff: exponential(),
    })
  })

  it.each([
    ['dlq_max_size', [100, 100_000], [99, 100_001]],
    ['dlq_default_max_retries', [0, 10], [-1, 11, 1.5]],
    ['dlq_retry_interval_seconds', [10, 3600], [9, 3601]],
  ])('%s keeps to its bounds, and says them', (key, allowed, refused) => {
    for (const value of allowed) expect(() => load(`${key}: ${value}`)).not.toThrow()
    for (const value of refused)
      expect(() => load(`${key}: ${value}`)).toThrow(
        Number.isInteger(value) ? new RegExp(`${key}.*${allowed[0]}.*${allowed[1]}`, 's') : key,
      )
  })

  it('refuses a wrong value with the allowed ones, and a wrong key with the nearest', () => {
    expect(() => load('dlq_default_retry_policy: sometimes')).toThrow(
      /never, linear, exponential, immediate/,
    )
    expect(() => load('dlq_max_sise: 500')).toThrow(/dlq_max_size/)
  })
})

describe(quote('W10'), () => {
  const raised = (events: { state: string; alert: { name: string } }[]): string[] =>
    events.filter(({ state }) => state === 'raised').map(({ alert }) => alert.name)

  it('utilisation above 80 % is told once, and cleared', async () => {
    const { dlq, clock, heard } = await aQueue({ maxItems: 10 })
    for (let n = 0; n < 8; n++) await dlq.enqueue({ type: 'a' }, refused(), { policy: never() })
    dlq.start()
    await clock.advance(61_000)
    expect(heard('alert')).toEqual([])
    const { id } = await dlq.enqueue({ type: 'a' }, refused(), { policy: never() })
    await clock.advance(180_000)
    expect(raised(heard('alert'))).toEqual(['nearly-full'])
    expect((await dlq.health()).alerts).toMatchObject([{ name: 'nearly-full' }])
    await dlq.archive(id)
    await clock.advance(61_000)
    expect(heard('alert').at(-1)).toMatchObject({ state: 'cleared' })
    await dlq.close()
  })

  it('more than 100 exhausted letters are told once', async () => {
    const { dlq, clock, heard } = await aQueue({
      maxRetries: 1,
      backoff: immediate(),
      breaker: false,
    })
    dlq.handle('a', () => Promise.reject(refused()))
    for (let n = 0; n < 101; n++) await dlq.enqueue({ type: 'a', payload: n }, refused())
    dlq.start()
    await clock.advance(120_000)
    expect(raised(heard('alert'))).toContain('many-exhausted')
    expect(raised(heard('alert')).filter((name) => name === 'many-exhausted')).toHaveLength(1)
    await dlq.close()
  })

  it('a success rate below 50 % is told', async () => {
    const { dlq, clock, heard } = await aQueue({
      backoff: immediate(),
      maxRetries: 1,
      breaker: false,
    })
    dlq.handle('a', ({ input }) => {
      if (Number(input) % 3 > 0) throw refused()
    })
    for (let n = 0; n < 30; n++) await dlq.enqueue({ type: 'a', payload: n }, refused())
    dlq.start()
    await clock.advance(61_000)
    expect(raised(heard('alert'))).toEqual(['retries-fail'])
    await dlq.close()
  })
})

describe(quote('W12'), () => {
  it('critical letters go first', async () => {
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

  it('B is retried after A succeeds, and letters of one key in their order', async () => {
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

  it('waits by a function of its own', async () => {
    const { dlq, clock } = await aQueue({
      backoff: custom('fibonacci'),
      backoffs: { fibonacci: (retry) => [1000, 1000, 2000, 3000][retry]! },
    })
    const { retryAt } = await dlq.enqueue({ type: 'a' }, refused())
    expect(Date.parse(retryAt!) - clock.now()).toBe(1000)
  })

  it('has templates for common failure patterns: what it is, how to wait, what to do', async () => {
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

  it('tells of exhausted letters by itself, and an incident is opened and closed', async () => {
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
    const incidents = pagerduty({ routingKey: 'k'.repeat(32), url: `http://127.0.0.1:${port}/` })
    const { dlq, clock } = await aQueue({
      maxRetries: 1,
      backoff: immediate(),
      alerts: [
        { name: 'exhausted', when: { metric: 'exhausted', above: 0 }, severity: 'critical' },
      ],
      observers: [incidents],
    })
    dlq.handle('a', () => Promise.reject(refused()))
    const { id } = await dlq.enqueue({ type: 'a' }, refused())
    dlq.start()
    await clock.advance(61_000)
    await incidents.idle()
    await dlq.resolve(id, 'mia')
    await clock.advance(61_000)
    await incidents.idle()
    expect(sent.map(({ event_action }) => event_action)).toEqual(['trigger', 'resolve'])
    expect(sent[0]!.dedup_key).toBe(sent[1]!.dedup_key)
    await dlq.close()
    server.close()
  })
})
