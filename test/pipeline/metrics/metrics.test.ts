import * as fc from 'fast-check'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { findProgram } from '../../../scripts/servers/machine.ts'
import { RedriveError } from '../../../src/errors.ts'
import type { PipelineEvent } from '../../../src/pipeline/events.ts'
import { PipelineMetrics } from '../../../src/pipeline/metrics/metrics.ts'
import type { NodeDepth } from '../../../src/pipeline/metrics/depth.ts'
import { fakeClock } from '../../../src/testing/fake-clock.ts'
import { aFolder } from '../../folders.ts'
import { runSync } from '../../processes.ts'

const ops = join(import.meta.dirname, '..', '..', '..', 'ops', 'prometheus')
const parser = { cluster: 'prod', graph: 'g', node: 'parser' }
const labels = 'cluster="prod",graph="g",node_id="parser"'
const topic = 'dlq.prod.parser'
const streamId = 's'
const message = 'it failed'
type Died = Extract<PipelineEvent, { errorType: string; topic: string }>
const died = (errorType = 'TIMEOUT', place = parser): Died => ({
  ...place,
  type: 'dead-lettered',
  streamId,
  errorType,
  message,
  topic,
})
const away = new RedriveError('MAILBOX_UNAVAILABLE', 'the cluster is away')

/** The metrics, a fake clock, and the open records, which a test may change. */
function metricsOf(...depths: NodeDepth[]) {
  const clock = fakeClock()
  const errors: unknown[] = []
  const onError = (error: unknown): unknown => errors.push(error)
  const metrics = new PipelineMetrics({ clock, onError, measureDepths: async () => depths })
  return { clock, metrics, depths, errors }
}

/**
 * Parses the text format strictly: one header per metric, followed by all of its series, each once.
 */
function parse(text: string): Map<string, number> {
  const found = new Map<string, number>()
  const heads = new Set<string>()
  let current = ''
  expect(text === '' || text.endsWith('\n')).toBe(true)
  const lines = text.split('\n').slice(0, -1)
  for (const [at, line] of lines.entries()) {
    const help = /^# HELP (\w+) .+$/.exec(line)
    if (help) {
      current = help[1]!
      expect(heads).not.toContain(current)
      heads.add(current)
      const type = current.endsWith('_total') ? 'counter' : 'gauge'
      expect(lines[at + 1]).toBe(`# TYPE ${current} ${type}`)
    } else if (!line.startsWith('# TYPE')) {
      const sample =
        /^(\w+)(\{(?:\w+="(?:[^"\\]|\\[\\"n])*",?)+\}) (\d+(?:\.\d+)?(?:e[+-]\d+)?)$/.exec(line)
      expect(sample?.[1], line).toBe(current)
      const series = `${current}${sample![2]}`
      expect(found).not.toContain(series)
      found.set(series, Number(sample![3]))
    }
  }
  return found
}

describe('PipelineMetrics', () => {
  it('counts events of nodes', async () => {
    const { metrics } = metricsOf()
    metrics.count({ ...parser, type: 'routed', streamId })
    metrics.count({ ...parser, type: 'routed', streamId })
    metrics.count({ ...parser, type: 'logical-failure', streamId, message })
    metrics.count({ ...parser, type: 'retry', streamId, retry: 1, errorType: 'TIMEOUT' })
    metrics.count(died('TIMEOUT'))
    metrics.count(died('TIMEOUT'))
    metrics.count(died('MALFORMED'))
    metrics.count({ ...died('TIMEOUT'), type: 'quarantined' })
    metrics.count({ ...parser, type: 'publish-failed', topic, error: away })
    metrics.count({ ...parser, type: 'error', error: away })
    expect(Object.fromEntries(parse(await metrics.text()))).toEqual({
      [`pipestream_dlq_messages_total{${labels},error_type="TIMEOUT"}`]: 2,
      [`pipestream_dlq_messages_total{${labels},error_type="MALFORMED"}`]: 1,
      [`pipestream_dlq_publish_failures_total{${labels}}`]: 1,
      [`pipestream_dlq_quarantined_total{${labels}}`]: 1,
      [`pipestream_records_total{${labels},outcome="routed"}`]: 2,
      [`pipestream_records_total{${labels},outcome="logical_failure"}`]: 1,
      [`pipestream_records_total{${labels},outcome="dead_lettered"}`]: 3,
      [`pipestream_records_total{${labels},outcome="quarantined"}`]: 1,
      [`pipestream_retries_total{${labels}}`]: 1,
      [`pipestream_scrape_errors_total{${labels}}`]: 0,
    })
  })

  it('reports how many dead records are open, and the age of the oldest', async () => {
    const { clock, metrics, depths } = metricsOf()
    depths.push({ ...parser, topic, depth: 101, oldestMs: clock.now() - 90_500 })
    depths.push({ ...parser, node: 'other', topic: 'other', depth: 0, oldestMs: undefined })
    const found = parse(await metrics.text())
    expect(found.get(`pipestream_dlq_depth{${labels},topic="${topic}"}`)).toBe(101)
    expect(found.get(`pipestream_dlq_oldest_age_seconds{${labels},topic="${topic}"}`)).toBe(90.5)
    const other = labels.replace('parser', 'other')
    expect(found.get(`pipestream_dlq_depth{${other},topic="other"}`)).toBe(0)
    expect(found.get(`pipestream_dlq_oldest_age_seconds{${other},topic="other"}`)).toBe(0)
  })

  it('has an age of 0 for a record from a clock that is ahead', async () => {
    const { clock, metrics, depths } = metricsOf()
    depths.push({ ...parser, topic, depth: 1, oldestMs: clock.now() + 5000 })
    const found = parse(await metrics.text())
    expect(found.get(`pipestream_dlq_oldest_age_seconds{${labels},topic="${topic}"}`)).toBe(0)
  })

  it('omits an unknown depth of a node and counts the failure, but not for other nodes', async () => {
    const { metrics, depths, errors } = metricsOf()
    depths.push({ ...parser, topic, error: away })
    depths.push({ ...parser, node: 'other', topic: 'other', depth: 3, oldestMs: undefined })
    await metrics.text()
    const found = parse(await metrics.text())
    expect([...found.keys()].filter((series) => series.includes('_depth'))).toEqual([
      `pipestream_dlq_depth{${labels.replace('parser', 'other')},topic="other"}`,
    ])
    expect(found.get(`pipestream_scrape_errors_total{${labels}}`)).toBe(2)
    expect(errors).toEqual([away, away])
  })

  it('combines error types above fifty per node', async () => {
    const { metrics } = metricsOf()
    for (let n = 0; n < 60; n++) metrics.count(died(`E${n}`))
    metrics.count(died('E0'))
    metrics.count(died('E59', { ...parser, node: 'other' }))
    const found = parse(await metrics.text())
    const series = [...found.keys()].filter((name) => name.includes('dlq_messages'))
    expect(series).toHaveLength(52)
    const count = (type: string): unknown =>
      found.get(`pipestream_dlq_messages_total{${labels},error_type="${type}"}`)
    expect([count('E0'), count('E49'), count('OTHER')]).toEqual([2, 1, 10])
  })

  it('has all metrics of the alert rules', async () => {
    const { metrics, depths } = metricsOf()
    depths.push({ ...parser, topic, depth: 1, oldestMs: 0 })
    metrics.count(died())
    const exposed = new Set(
      [...parse(await metrics.text()).keys()].map((name) => name.split('{')[0]),
    )
    const rules = readFileSync(join(ops, 'redrive-pipeline.rules.yaml'), 'utf8')
    const required = new Set(rules.match(/pipestream_\w+/g))
    expect(required.size).toBe(4)
    expect([...required].filter((name) => !exposed.has(name))).toEqual([])
  })

  it('escapes any names', async () => {
    const name = fc.string({ unit: 'binary', maxLength: 20 })
    await fc.assert(
      fc.asyncProperty(fc.uniqueArray(name, { minLength: 2, maxLength: 5 }), async (nodes) => {
        const { metrics } = metricsOf()
        for (const node of nodes) metrics.count(died('TIMEOUT', { ...parser, node }))
        const series = [...parse(await metrics.text()).keys()]
        const parsed = series
          .filter((one) => one.startsWith('pipestream_dlq_messages'))
          .map((one) => /node_id=("(?:[^"\\]|\\.)*")/s.exec(one)![1]!)
          .map((text) => text.slice(1, -1).replaceAll(/\\(.)/g, (_, c) => (c === 'n' ? '\n' : c)))
        expect(parsed).toEqual(nodes)
      }),
    )
  })
})

const promtool = findProgram('promtool')
const title = promtool
  ? 'with promtool'
  : 'with promtool, which is not installed: npm run servers -- install'

describe.skipIf(!promtool)(title, { timeout: 30_000 }, () => {
  const run = (args: string[], input = ''): string => {
    try {
      return runSync(promtool!, args, { cwd: ops, input, stdio: 'pipe' })
    } catch (error) {
      const { stdout, stderr } = error as { stdout: string; stderr: string }
      throw new Error(`promtool ${args.join(' ')}: ${stdout}${stderr}`, { cause: error })
    }
  }

  it('is valid for promtool, whatever the names', async () => {
    const { metrics, depths } = metricsOf()
    const odd = { cluster: 'a\\b"c\nd\r\te', graph: '', node: 'größe 🙂 {x="y"} #' }
    depths.push({ ...odd, topic, depth: 1e21, oldestMs: 0 })
    depths.push({ ...parser, topic, error: away })
    metrics.count(died('', odd))
    expect(run(['check', 'metrics'], await metrics.text())).toBe('')
  })

  it('has valid rules, which fire when they must and not before', () => {
    run(['check', 'rules', 'redrive-pipeline.rules.yaml'])
    run(['test', 'rules', 'redrive-pipeline.test.yaml'])
  })

  const folder = aFolder('alerts')

  /** The alerts that fire at some minute of a history of the metrics. */
  const firing = (history: readonly Map<string, number>[], minute: number, wanted: string[]) => {
    const names = new Set(history.flatMap((sample) => [...sample.keys()]))
    const series = [...names].map((name) => ({
      series: name,
      values: history.map((sample) => sample.get(name) ?? '_').join(' '),
    }))
    const expr = 'sum by (alertname, node_id) (ALERTS{alertstate="firing"})'
    const samples = wanted.map((alert) => ({
      labels: `{alertname="${alert}",node_id="parser"}`,
      value: 1,
    }))
    const question = { expr, eval_time: `${minute}m`, exp_samples: samples }
    const file = join(folder, 'history.json')
    const test = { interval: '1m', input_series: series, promql_expr_test: [question] }
    const rule_files = [join(ops, 'redrive-pipeline.rules.yaml')]
    writeFileSync(file, JSON.stringify({ rule_files, evaluation_interval: '1m', tests: [test] }))
    run(['test', 'rules', file])
  }

  it('raises DLQDepthHigh after five minutes with 101 dead records, and clears it after one replay', async () => {
    const { clock, metrics, depths } = metricsOf()
    for (let n = 0; n < 101; n++) metrics.count(died(n % 2 ? 'TIMEOUT' : 'MODULE_UNAVAILABLE'))
    const oldestMs = clock.now()
    const history: Map<string, number>[] = []
    for (let minute = 0; minute < 10; minute++) {
      depths[0] = { ...parser, topic, depth: minute < 8 ? 101 : 100, oldestMs }
      history.push(parse(await metrics.text()))
      await clock.advance(60_000)
    }
    firing(history, 4, ['DLQGrowingSlowly'])
    firing(history, 5, ['DLQDepthHigh', 'DLQGrowingSlowly'])
    firing(history, 7, ['DLQDepthHigh', 'DLQGrowingSlowly'])
    firing(history, 8, ['DLQGrowingSlowly'])
  })

  it('raises DLQGrowing after ten minutes with two error types of 40 a minute each', async () => {
    const { metrics } = metricsOf()
    const history: Map<string, number>[] = []
    for (let minute = 0; minute < 20; minute++) {
      for (let n = 0; n < 80; n++) metrics.count(died(n % 2 ? 'TIMEOUT' : 'MALFORMED'))
      history.push(parse(await metrics.text()))
    }
    firing(history, 10, ['DLQGrowingSlowly'])
    firing(history, 16, ['DLQGrowing', 'DLQGrowingSlowly'])
  })

  it('raises DLQOldestHigh after an hour for a record that nobody handles', async () => {
    const { clock, metrics, depths } = metricsOf()
    depths.push({ ...parser, topic, depth: 1, oldestMs: clock.now() - 30_000 })
    const history: Map<string, number>[] = []
    for (let minute = 0; minute < 70; minute++) {
      history.push(parse(await metrics.text()))
      await clock.advance(60_000)
    }
    firing(history, 64, [])
    firing(history, 65, ['DLQOldestHigh'])
  })

  it('raises DLQUnmeasured for an unreachable cluster, and no depth of 0', async () => {
    const { metrics, depths } = metricsOf()
    const history: Map<string, number>[] = []
    for (let minute = 0; minute < 15; minute++) {
      depths[0] =
        minute < 2
          ? { ...parser, topic, depth: 101, oldestMs: undefined }
          : { ...parser, topic, error: away }
      history.push(parse(await metrics.text()))
    }
    firing(history, 11, [])
    firing(history, 12, ['DLQUnmeasured'])
  })
})
