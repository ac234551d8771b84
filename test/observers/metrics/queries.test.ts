import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { parse } from 'yaml'
import { findProgram } from '../../../scripts/servers/machine.ts'
import { metricDefinitions, metricNames } from '../../../src/observers/metrics/definitions.ts'
import { PrometheusMetrics } from '../../../src/observers/metrics/metrics.ts'
import { PipelineMetrics } from '../../../src/pipeline/metrics/metrics.ts'
import { fakeClock } from '../../../src/testing/index.ts'
import { aFolder } from '../../folders.ts'
import { runSync } from '../../processes.ts'

const folder = aFolder('queries')
const ops = join(import.meta.dirname, '../../../ops')
const read = (path: string): string => readFileSync(join(ops, path), 'utf8')

interface Panel {
  title: string
  type: string
  datasource?: { uid: string }
  targets?: { expr: string; legendFormat: string; datasource: { uid: string } }[]
}
interface Dashboard {
  __inputs: { name: string }[]
  templating: { list: { name: string; definition: string }[] }
  panels: Panel[]
}
const dashboard = JSON.parse(read('grafana/redrive.json')) as Dashboard
const { __inputs: inputs } = dashboard

/** The queries of the dashboard, with values for the variables of Grafana. */
const panelQueries = dashboard.panels.flatMap(({ title, targets = [] }) =>
  targets.map(({ expr }): [string, string] => [
    title,
    expr.replaceAll('$__rate_interval', '5m').replaceAll('$queue', '.*'),
  ]),
)

interface Rules {
  groups: { rules: { alert: string; expr: string; annotations: Record<string, string> }[] }[]
}
const rules = ['prometheus/redrive.rules.yaml', 'prometheus/redrive-pipeline.rules.yaml'].flatMap(
  (path) => (parse(read(path)) as Rules).groups.flatMap((group) => group.rules),
)
const ruleQueries = rules.map(({ alert, expr }): [string, string] => [alert, expr])

const queries = [...panelQueries, ...ruleQueries]

/** Labels that Prometheus adds to every series. */
const addedLabels = ['instance', 'job']

/** The exported series names with their labels. */
async function exportedSeries(): Promise<Map<string, string[]>> {
  const series = new Map<string, string[]>()
  for (const name of metricNames) {
    const { type, labels } = metricDefinitions[name]
    const suffixes = type === 'histogram' ? ['_bucket', '_sum', '_count'] : ['']
    for (const suffix of suffixes)
      series.set(`${name}${suffix}`, suffix === '_bucket' ? [...labels, 'le'] : [...labels])
  }
  const add = (text: string): void => {
    for (const [, name, labels = ''] of text.matchAll(/^([a-z_0-9]+)(?:\{(.*)\})? /gm)) {
      const names = [...labels.matchAll(/(\w+)="/g)].map(([, label]) => label!)
      if (!series.has(name!)) series.set(name!, names)
    }
  }
  add(await new PrometheusMetrics().text())
  add(await pipelineText())
  return series
}

/** All metrics of a pipeline. */
async function pipelineText(): Promise<string> {
  const place = { cluster: 'c', graph: 'g', node: 'n' }
  const measureDepths = async () => [{ ...place, topic: 't', depth: 1, oldestMs: 0 }]
  const metrics = new PipelineMetrics({ clock: fakeClock(), measureDepths })
  metrics.count({ type: 'dead-lettered', ...place, errorType: 'TIMEOUT' } as never)
  return metrics.text()
}

const words = /[a-zA-Z_:][\w:]*/g
const keywords = new Set(
  'by without on ignoring group_left group_right or and unless offset bool'.split(' '),
)

/** The names of metrics in a query: words that are no function, keyword, label or duration. */
function metricsIn(query: string): string[] {
  const bare = query
    .replaceAll(/"[^"]*"/g, '""')
    .replaceAll(/\{[^}]*\}/g, '{}')
    .replaceAll(/\[[^\]]*\]/g, '[]')
    .replaceAll(/\b(by|without|on|ignoring)\s*\([^)]*\)/g, '$1')
    .replaceAll(/\boffset\s+\w+/g, '')
  return [...bare.matchAll(words)]
    .filter(({ 0: word, index }) => {
      const isFunction = /^\s*\(/.test(bare.slice(index + word.length))
      const isAggregation = /^\s*(by|without)\b/.test(bare.slice(index + word.length))
      const isNumber = /[\d.]$/.test(bare.slice(0, index))
      return !isFunction && !isAggregation && !isNumber && !keywords.has(word)
    })
    .map(([word]) => word)
}

/** The names of labels in a query: in braces, and after `by`. */
function labelsIn(query: string): string[] {
  const bare = query.replaceAll(/"[^"]*"/g, '""')
  const matchers = [...bare.matchAll(/\{([^}]*)\}/g)].flatMap(([, inside = '']) =>
    [...inside.matchAll(/(\w+)\s*(?:=~|!~|!=|=)/g)].map(([, label]) => label!),
  )
  const grouped = [...bare.matchAll(/\b(?:by|without|on)\s*\(([^)]*)\)/g)].flatMap(
    ([, inside = '']) => inside.split(',').map((label) => label.trim()),
  )
  return [...matchers, ...grouped]
}

it('the names and labels of a query are found', () => {
  const query = 'sum by (a, le) (rate(x_total{b=~"c{d}",e!=""}[5m] offset 1h)) / 2 > y or z{} == 1'
  expect(metricsIn(query)).toEqual(['x_total', 'y', 'z'])
  expect(labelsIn(query)).toEqual(['b', 'e', 'a', 'le'])
})

describe('every query of the dashboard and of the alerts', () => {
  it.each(queries)('%s uses metrics and labels that exist', async (_, query) => {
    const series = await exportedSeries()
    const metrics = metricsIn(query)
    expect(metrics.length).toBeGreaterThan(0)
    expect(metrics.filter((name) => !series.has(name))).toEqual([])
    const known = [...metrics.flatMap((name) => series.get(name)!), ...addedLabels]
    expect(labelsIn(query).filter((label) => !known.includes(label))).toEqual([])
  })

  const promtool = findProgram('promtool')
  const title = promtool
    ? 'is valid for promtool'
    : 'needs promtool, which is not installed: npm run servers -- install'
  it.skipIf(!promtool)(title, { timeout: 60_000 }, () => {
    const file = join(folder, 'rules.json')
    const records = queries.map(([, expr], n) => ({ record: `query:${n}`, expr }))
    writeFileSync(file, JSON.stringify({ groups: [{ name: 'queries', rules: records }] }))
    const output = runSync(promtool!, ['check', 'rules', file], { stdio: 'pipe' })
    expect(output).toContain(`${queries.length} rules found`)
  })

  it.skipIf(!promtool)('fires when it must and not before', { timeout: 60_000 }, () => {
    const args = ['test', 'rules', 'redrive.test.yaml']
    const cwd = join(ops, 'prometheus')
    expect(runSync(promtool!, args, { cwd })).toContain('SUCCESS')
  })
})

describe('the alerts', () => {
  it('each have a test, a summary and a description', () => {
    const tests =
      read('prometheus/redrive.test.yaml') + read('prometheus/redrive-pipeline.test.yaml')
    const untested = rules.filter(({ alert }) => !new RegExp(`\\b${alert}\\b`).test(tests))
    expect(untested.map(({ alert }) => alert)).toEqual([])
    for (const { annotations } of rules)
      expect(Object.keys(annotations)).toEqual(['summary', 'description'])
  })

  it('use only labels that their expression keeps', () => {
    const wrong = rules.flatMap(({ alert, expr, annotations }) => {
      const grouped = /\bby \(([^)]*)\)/.exec(expr)?.[1]?.split(', ')
      const used = Object.values(annotations).flatMap((text) =>
        [...text.matchAll(/\$labels\.(\w+)/g)].map(([, label]) => label!),
      )
      return grouped
        ? used.filter((label) => !grouped.includes(label)).map((one) => [alert, one])
        : []
    })
    expect(wrong).toEqual([])
  })
})

describe('the dashboard', () => {
  it('reads from the data source that Grafana asks for', () => {
    expect(inputs.map(({ name }) => name)).toEqual(['DS_PROMETHEUS'])
    const sources = dashboard.panels
      .filter(({ type }) => type !== 'row')
      .flatMap(({ datasource, targets = [] }) => [
        datasource!.uid,
        ...targets.map((target) => target.datasource.uid),
      ])
    expect([...new Set(sources)]).toEqual(['${DS_PROMETHEUS}'])
  })

  it('has legends with labels that the query returns', () => {
    const wrong = dashboard.panels.flatMap(({ title, targets = [] }) =>
      targets.flatMap(({ expr, legendFormat }) => {
        const kept = [...expr.matchAll(/\bby \(([^)]*)\)/g)].flatMap(([, list = '']) =>
          list.split(', '),
        )
        const used = [...legendFormat.matchAll(/\{\{(\w+)\}\}/g)].map(([, label]) => label!)
        return used
          .filter((label) => kept.length > 0 && !kept.includes(label))
          .map((label) => [title, label])
      }),
    )
    expect(wrong).toEqual([])
  })
})
