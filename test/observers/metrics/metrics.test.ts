import { afterEach, describe, expect, it, vi } from 'vitest'
import { findProgram } from '../../../scripts/servers/machine.ts'
import { metricsType } from '../../../src/api/endpoint.ts'
import { RedriveError } from '../../../src/errors.ts'
import { metricsOf } from '../../../src/loops/metrics.ts'
import {
  metricDefinitions,
  metricNames,
  type MetricName,
} from '../../../src/observers/metrics/definitions.ts'
import { metricsContentType, PrometheusMetrics } from '../../../src/observers/metrics/metrics.ts'
import { otelMetrics } from '../../../src/observers/metrics/otel-metrics.ts'
import type { QueueOptions } from '../../../src/options/options.ts'
import { DeadLetterQueue } from '../../../src/queue/queue.ts'
import { memoryStore } from '../../../src/stores/memory/memory.ts'
import { aLetter, fakeClock, type FakeClock } from '../../../src/testing/index.ts'
import { runSync } from '../../processes.ts'
import { samplesOf } from './samples.ts'

const closers: (() => Promise<unknown>)[] = []
afterEach(async () => {
  for (const close of closers.splice(0)) await close()
})

interface Measured {
  dlq: DeadLetterQueue
  clock: FakeClock
  metrics: PrometheusMetrics
  errors: unknown[]
  /** The value of a series, such as `redrive_letters{queue="a",state="parked"}`. */
  value: (series: string) => Promise<number | undefined>
}

async function measuredQueue(options: QueueOptions = {}): Promise<Measured> {
  const clock = fakeClock()
  const errors: unknown[] = []
  const onError = (error: unknown): unknown => errors.push(error)
  const metrics = new PrometheusMetrics({ process: false, clock, version: '1.2.3', onError })
  const dlq = await DeadLetterQueue.open(memoryStore({ clock }), {
    clock,
    ...options,
    observers: [metrics.observe],
    onStoreCall: metrics.countStoreCall,
  })
  closers.push(() => dlq.close())
  metrics.watch(dlq)
  const value = async (series: string): Promise<number | undefined> =>
    samplesOf(await metrics.text()).get(series)
  return { dlq, clock, metrics, errors, value }
}

const failing = (queue: string): { type: string; payload: unknown } => ({ type: queue, payload: 1 })

describe('what is read from the store', () => {
  it('has letters by queue and state, the depth, and the age of the oldest', async () => {
    const { dlq, clock, value } = await measuredQueue()
    const first = await dlq.enqueue(failing('mail'), new Error('x'))
    await dlq.enqueue(failing('mail'), new Error('x'))
    await dlq.enqueue(failing('charge'), new Error('x'))
    await dlq.park(first.id)
    await clock.advance(90_000)
    expect(await value('redrive_letters{queue="mail",state="parked"}')).toBe(1)
    expect(await value('redrive_letters{queue="mail",state="pending"}')).toBe(1)
    expect(await value('redrive_letters{queue="mail",state="resolved"}')).toBe(0)
    expect(await value('dlq_queue_depth{dlq="letters of mail"}')).toBe(2)
    expect(await value('redrive_oldest_letter_age_seconds{state="parked"}')).toBe(90)
    expect(await value('redrive_actions_total{queue="mail",action="capture"}')).toBe(2)
    expect(await value('redrive_store_up')).toBe(1)
  })

  it('leaves out a queue once its letters are removed', async () => {
    const { dlq, value } = await measuredQueue()
    const { id } = await dlq.enqueue(failing('mail'), new Error('x'))
    expect(await value('redrive_letters{queue="mail",state="pending"}')).toBe(1)
    await dlq.remove(id)
    expect(await value('redrive_letters{queue="mail",state="pending"}')).toBeUndefined()
  })

  it('is left out while the store is unreachable, and never an old value', async () => {
    const { dlq, metrics, errors, value } = await measuredQueue()
    await dlq.enqueue(failing('mail'), new Error('x'))
    expect(await value('redrive_letters{queue="mail",state="pending"}')).toBe(1)
    const away = new RedriveError('STORE_UNAVAILABLE', 'away')
    metrics.watch({
      store: {
        ...dlq.store,
        tally: () => Promise.reject(away),
        totals: () => Promise.reject(away),
        find: () => Promise.reject(away),
      },
      health: () => dlq.health(),
      activeBulkActions: () => dlq.activeBulkActions(),
    })
    const samples = samplesOf(await metrics.text())
    expect(samples.get('redrive_store_up')).toBe(0)
    expect(samples.get('redrive_scrape_errors_total')).toBe(1)
    expect([...samples.keys()].filter((series) => series.startsWith('redrive_letters'))).toEqual([])
    expect(samples.get('redrive_captures_total{queue="mail",outcome="stored"}')).toBe(1)
    expect(errors).toEqual([away])
  })

  it('does not wait for a store that hangs', async () => {
    const { dlq, clock, metrics } = await measuredQueue()
    const { promise: never } = Promise.withResolvers<never>()
    const store = { tally: () => never, totals: () => never, find: () => never }
    metrics.watch({
      store,
      health: () => dlq.health(),
      activeBulkActions: () => dlq.activeBulkActions(),
    })
    const text = metrics.text()
    await clock.advance(5000)
    expect(samplesOf(await text).get('redrive_store_up')).toBe(0)
  })

  it('is read once for scrapes that overlap, by a number of calls that does not grow', async () => {
    const { dlq, metrics } = await measuredQueue()
    const letters = Array.from({ length: 2000 }, (_, n) => aLetter({ queue: `q${n % 300}` }))
    await dlq.store.add(letters)
    const calls = { tally: 0, totals: 0, find: 0 }
    const spy = <K extends keyof typeof calls>(name: K) =>
      ((...args: never[]) => {
        calls[name] += 1
        return (dlq.store[name] as (...args: never[]) => unknown)(...args)
      }) as unknown as (typeof dlq.store)[K]
    metrics.watch({
      store: { tally: spy('tally'), totals: spy('totals'), find: spy('find') },
      health: () => dlq.health(),
      activeBulkActions: () => dlq.activeBulkActions(),
    })
    const [one, other] = await Promise.all([metrics.text(), metrics.text()])
    expect(one).toBe(other)
    expect(calls).toEqual({ tally: 6, totals: 1, find: 4 })
  })

  it('has the progress of bulk actions that have not ended', async () => {
    const { dlq, value } = await measuredQueue()
    for (let n = 0; n < 3; n++) await dlq.enqueue(failing('mail'), new Error('x'))
    const { id } = await dlq.plan('park', { queue: 'mail' }, { by: 'mia' })
    expect(await value('redrive_bulk_actions{action="park",state="running"}')).toBeUndefined()
    await dlq.run(id)
    expect(await value('redrive_bulk_actions{action="park",state="running"}')).toBe(1)
    expect(await value('redrive_bulk_letters{action="park",outcome="pending"}')).toBe(3)
  })
})

describe('what is counted in this process', () => {
  it('has captures by outcome', async () => {
    const { dlq, value } = await measuredQueue({ maxItems: 2 })
    await dlq.enqueue(failing('mail'), new Error('x'), { dedupeKey: 'a' })
    await dlq.enqueue(failing('mail'), new Error('x'), { dedupeKey: 'a' })
    await dlq.enqueue(failing('mail'), new Error('x'))
    await expect(dlq.enqueue(failing('mail'), new Error('x'))).rejects.toMatchObject({
      code: 'QUEUE_FULL',
    })
    for (const [outcome, count] of Object.entries({ stored: 2, duplicate: 1, full: 1 }))
      expect(await value(`redrive_captures_total{queue="mail",outcome="${outcome}"}`)).toBe(count)
  })

  it('has runs by outcome with their durations, and counters that start at 0', async () => {
    const { dlq, clock, value } = await measuredQueue()
    let runs = 0
    dlq.handle('mail', () => {
      runs += 1
      if (runs === 1) throw new Error('unexpected')
    })
    await dlq.enqueue(failing('mail'), new Error('x'))
    expect(await value('redrive_runs_total{queue="mail",outcome="exhausted"}')).toBe(0)
    expect(await value('redrive_handlers_stuck_total{queue="mail"}')).toBe(0)
    dlq.start()
    await clock.advance(3_600_000)
    expect(await value('redrive_runs_total{queue="mail",outcome="rescheduled"}')).toBe(1)
    expect(await value('redrive_runs_total{queue="mail",outcome="resolved"}')).toBe(1)
    expect(await value('redrive_run_duration_seconds_count{queue="mail"}')).toBe(2)
    const labels = 'dlq="letters of mail",source="operation",action="processed"'
    expect(await value(`dlq_messages_processed_total{${labels}}`)).toBe(1)
    expect(await value(`dlq_processing_duration_seconds_count{${labels}}`)).toBe(1)
  })

  it('has replays, discarded letters and their ages under the names of mailboxes', async () => {
    const { dlq, clock, value } = await measuredQueue()
    const { id } = await dlq.enqueue(failing('mail'), new Error('x'))
    await clock.advance(120_000)
    await dlq.remove(id)
    const labels = 'dlq="letters of mail",source="operation",action="discarded"'
    expect(await value(`dlq_messages_discarded_total{${labels}}`)).toBe(1)
    expect(await value(`dlq_message_age_seconds_sum{${labels}}`)).toBe(120)
    const sent = 'source="operation",destination="letters of mail",error_type="unknown"'
    expect(await value(`dlq_messages_sent_total{${sent}}`)).toBe(1)
  })

  it('has the state of breakers, alerts, the spool and errors', async () => {
    const { metrics } = await measuredQueue()
    const breaker = { type: 'breaker', kind: 'queue', name: 'mail' } as const
    metrics.observe({ ...breaker, state: 'open' })
    metrics.observe({ ...breaker, state: 'half-open' })
    metrics.observe({ type: 'drained', count: 7, duplicates: 1 })
    metrics.observe({ type: 'error', during: 'claiming', error: new Error('x') })
    const samples = samplesOf(await metrics.text())
    const stateOf = (state: string): number | undefined =>
      samples.get(`redrive_breaker_state{kind="queue",name="mail",state="${state}"}`)
    expect(['open', 'half-open', 'closed'].map(stateOf)).toEqual([0, 1, 0])
    expect(samples.get('redrive_spool_drained_total')).toBe(7)
    expect(samples.get('redrive_errors_total')).toBe(1)
  })

  it('has the spool and the runs while the store is unreachable, and never an old value', async () => {
    const { dlq, metrics, errors } = await measuredQueue()
    const away = new RedriveError('STORE_UNAVAILABLE', 'away')
    const spool = { letters: 3, bytes: 40, oldestAt: null, drained: 0 }
    const files = { damaged: 1, refused: 0, unreadable: 0 }
    let isReadable = true
    metrics.watch({
      store: { ...dlq.store, totals: () => Promise.reject(away) },
      health: async () => {
        if (!isReadable) throw away
        return { ...(await dlq.health()), ok: false, spool: { ...spool, ...files } }
      },
      activeBulkActions: () => dlq.activeBulkActions(),
    })
    const names = /^redrive_(spool_(letters|bytes|files)|runs_active|store_up|alerts_raised)/
    const read = async (): Promise<object> =>
      Object.fromEntries(
        [...samplesOf(await metrics.text())].filter(([series]) => names.test(series)),
      )
    expect(await read()).toEqual({
      redrive_store_up: 0,
      redrive_runs_active: 0,
      redrive_spool_letters: 3,
      redrive_spool_bytes: 40,
      'redrive_spool_files_set_aside{what="damaged"}': 1,
      'redrive_spool_files_set_aside{what="refused"}': 0,
      'redrive_spool_files_set_aside{what="unreadable"}': 0,
    })
    isReadable = false
    expect(await read()).toEqual({ redrive_store_up: 0 })
    // Each scrape reports one error.
    expect(errors).toEqual([away, away])
  })

  it('has the calls of the store: durations, items and errors', async () => {
    const { dlq, metrics } = await measuredQueue()
    await dlq.enqueueAll([1, 2, 3].map(() => ({ operation: failing('mail'), error: 'x' })))
    await dlq.store.get(['a', 'b'])
    metrics.countStoreCall({ method: 'claim', durationMs: 3, code: 'STORE_UNAVAILABLE' })
    const samples = samplesOf(await metrics.text())
    expect(samples.get('redrive_store_call_items_sum{method="add"}')).toBe(3)
    expect(samples.get('redrive_store_call_items_sum{method="get"}')).toBe(2)
    expect(samples.get('redrive_store_call_duration_seconds_count{method="add"}')).toBe(1)
    const error = 'redrive_store_call_errors_total{method="claim",code="STORE_UNAVAILABLE"}'
    expect(samples.get(error)).toBe(1)
  })

  it('has the metrics of loops under the spelling of Prometheus', async () => {
    const { metrics } = await measuredQueue()
    metrics.record(
      metricsOf({
        type: 'dead-lettered',
        mailbox: 'requests',
        destination: 'requests-dlq',
        errorType: 'TypeError',
      } as never),
    )
    metrics.record([
      { name: 'dlq.processing.duration_ms', kind: 'histogram', value: 250, tags: {} },
      { name: 'dlq.queue.depth', kind: 'gauge', value: 4, tags: { dlq: 'requests-dlq' } },
      { name: 'mailbox.messages.deferred', kind: 'counter', value: 1, tags: {} },
    ])
    const samples = samplesOf(await metrics.text())
    const sent = 'source="requests",destination="requests-dlq",error_type="TypeError"'
    expect(samples.get(`dlq_messages_sent_total{${sent}}`)).toBe(1)
    expect(samples.get('dlq_queue_depth{dlq="requests-dlq"}')).toBe(4)
    const labels = 'dlq="",source="",action=""'
    expect(samples.get(`dlq_processing_duration_seconds_sum{${labels}}`)).toBe(0.25)
  })
})

describe('labels', () => {
  it('have at most 100 queues: further ones share `other`', async () => {
    const { dlq, metrics } = await measuredQueue()
    const letters = Array.from({ length: 250 }, (_, n) => aLetter({ queue: `queue-${n}` }))
    await dlq.store.add(letters)
    for (const letter of letters) metrics.observe({ type: 'captured', letter })
    const samples = samplesOf(await metrics.text())
    const series = (name: string): string[] =>
      [...samples.keys()].filter((one) => one.startsWith(name))
    expect(series('redrive_letters{')).toHaveLength(101 * 6)
    expect(samples.get('redrive_letters{queue="other",state="pending"}')).toBe(150)
    expect(samples.get('redrive_captures_total{queue="other",outcome="stored"}')).toBe(150)
  })

  it('have no id, tenant, key, fingerprint or message', async () => {
    const { dlq, metrics } = await measuredQueue()
    const letter = await dlq.enqueue(
      { type: 'mail', payload: { card: 'secret-payload' } },
      Object.assign(new Error('secret-message'), { name: 'secret-name', code: 'secret-code' }),
      {
        tenant: 'secret-tenant',
        dedupeKey: 'secret-key',
        lane: 'secret-lane',
        headers: { x: 'secret-header' },
        tags: ['secret-tag'],
      },
    )
    await dlq.resolve(letter.id)
    const text = await metrics.text()
    expect(text).not.toContain('secret')
    expect(text).not.toContain(letter.id)
    expect(text).not.toContain(letter.fingerprint)
  })

  it('have the rule of an alert about a group, without the fingerprint', async () => {
    const { dlq, metrics, value } = await measuredQueue()
    const alert = {
      severity: 'warning',
      metric: 'new-group',
      value: 1,
      summary: 'new cause of failures',
      raisedAt: '2026-01-01T00:00:00.000Z',
    } as const
    const alerts = ['f1', 'f2'].map((group) => ({ ...alert, name: `new-cause:${group}`, group }))
    metrics.watch({
      store: dlq.store,
      health: async () => ({ ...(await dlq.health()), alerts }),
      activeBulkActions: () => dlq.activeBulkActions(),
    })
    expect(await value('redrive_alerts_raised{alert="new-cause",severity="warning"}')).toBe(2)
  })

  it('are not used up by metrics that are not in the table', async () => {
    const { metrics, value } = await measuredQueue()
    const unknown = Array.from({ length: 100 }, (_, n) => ({ dlq: `unknown-${n}` }))
    metrics.record(unknown.map((tags) => ({ name: 'mine', kind: 'counter', value: 1, tags })))
    const depth = { name: 'dlq.queue.depth', kind: 'gauge', value: 4 } as const
    metrics.record([{ ...depth, tags: { dlq: 'requests-dlq' } }])
    expect(await value('dlq_queue_depth{dlq="requests-dlq"}')).toBe(4)
  })

  it('have no text that is not the name of an error', async () => {
    const { metrics } = await measuredQueue()
    const errorType = 'the card 4111 was refused'
    metrics.record([{ name: 'dlq.messages.sent', kind: 'counter', value: 1, tags: { errorType } }])
    expect(await metrics.text()).not.toContain('4111')
  })
})

it('has the content type that the endpoint declares', () => {
  expect(metricsContentType).toBe(metricsType)
})

it('adds other metrics in the same format, and survives their errors', async () => {
  const { metrics, errors } = await measuredQueue()
  metrics.include(() => '# TYPE more gauge\nmore 1')
  metrics.include(() => Promise.reject(new Error('no broker')))
  const text = await metrics.text()
  expect(text.endsWith('more 1\n')).toBe(true)
  expect(errors).toHaveLength(1)
})

it('records the metrics of loops with a meter of OpenTelemetry, once for each name', () => {
  const add = vi.fn<(value: number, tags?: object) => void>()
  const record = vi.fn<(value: number, tags?: object) => void>()
  const created: string[] = []
  const meter = {
    createCounter: (name: string) => ({ add, name: created.push(name) }),
    createGauge: (name: string) => ({ record, name: created.push(name) }),
    createHistogram: (name: string) => ({ record, name: created.push(name) }),
  }
  const tags = { source: 'requests' }
  const send = otelMetrics(meter)
  for (let n = 0; n < 2; n++)
    send([
      { name: 'dlq.messages.sent', kind: 'counter', value: 1, tags },
      { name: 'dlq.message.age_seconds', kind: 'histogram', value: 9, tags },
      { name: 'dlq.queue.depth', kind: 'gauge', value: 4, tags },
    ])
  expect(created).toEqual(['dlq.messages.sent', 'dlq.message.age_seconds', 'dlq.queue.depth'])
  expect(add).toHaveBeenCalledTimes(2)
  expect(record.mock.calls).toEqual([
    [9, tags],
    [4, tags],
    [9, tags],
    [4, tags],
  ])
})

const promtool = findProgram('promtool')
const title = promtool
  ? 'is valid for promtool, with all metrics and odd names'
  : 'needs promtool, which is not installed: npm run servers -- install'

it.skipIf(!promtool)(title, { timeout: 60_000 }, async () => {
  const { dlq, metrics } = await measuredQueue()
  const odd = aLetter({ queue: 'a\\b"c\nd größe 🙂 {x="y"} #' })
  await dlq.store.add([odd, aLetter({ state: 'parked' })])
  metrics.observe({ type: 'captured', letter: odd })
  metrics.observe({ type: 'resolved', letter: odd, durationMs: 3 })
  metrics.observe({ type: 'stuck', letter: odd, overdueMs: 3 })
  metrics.observe({ type: 'breaker', kind: 'dependency', name: 'x "y"', state: 'open' })
  metrics.countRequest({ endpoint: 'listLetters', method: 'GET', status: 200, durationMs: 4 })
  const withProcess = new PrometheusMetrics({ version: '1.2.3' })
  const check = (text: string): string =>
    runSync(promtool!, ['check', 'metrics'], { input: text, stdio: 'pipe' })
  expect(check(await metrics.text())).toBe('')
  expect(check(await withProcess.text())).toBe('')
})

it('names every metric by the rules of Prometheus', () => {
  const wrong = metricNames.filter((name: MetricName) => {
    const { type } = metricDefinitions[name]
    return (type === 'counter') !== name.endsWith('_total') || /_ms|milli/.test(name)
  })
  expect(wrong).toEqual([])
})
