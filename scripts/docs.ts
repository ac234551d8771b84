// Generates the reference pages from the tables in the source. `--check` only reports stale pages.
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { configJsonSchema } from '../src/config/json-schema.ts'
import { configPage } from '../src/config/reference.ts'
import { errorTable } from '../src/errors.ts'
import { states } from '../src/letter/letter.ts'
import { moveTable } from '../src/letter/move-table.ts'
import {
  metricDefinitions,
  metricNames,
  type MetricDefinition,
} from '../src/observers/metrics/definitions.ts'
import { cliPage } from './docs/cli.ts'
import { eventsPage } from './docs/events.ts'
import { httpPage } from './docs/http.ts'

const commands = await cliPage()

const pages: Record<string, () => string> = {
  'docs/reference/errors.md': () =>
    [
      '# Errors',
      '',
      'Every error that Redrive throws is a `RedriveError` with one of these codes. The admin API responds',
      'with the HTTP status, and the command line exits with the exit code. *Retry helps*: whether the',
      'same call can succeed when it is repeated.',
      '',
      '| code | HTTP | exit | retry helps | what it means and what to do |',
      '|---|---|---|---|---|',
      ...Object.entries(errorTable).map(
        ([code, { status, exit, retry, means }]) =>
          `| \`${code}\` | ${status} | ${exit} | ${retry ? 'yes' : 'no'} | ${means} |`,
      ),
    ].join('\n'),
  'docs/reference/moves.md': () =>
    [
      '# Moves',
      '',
      'A letter changes only by one of these moves. Any other move is rejected with `ILLEGAL_MOVE`.',
      '',
      `| move | ${states.join(' | ')} | ends in |`,
      `|---|${states.map(() => '---|').join('')}---|`,
      ...Object.entries(moveTable).map(([move, { from, to }]) => {
        const cells = states.map((state) =>
          (from as readonly string[]).includes(state) ? 'yes' : '',
        )
        return `| \`${move}\` | ${cells.join(' | ')} | ${to.length > 0 ? to.join(', ') : 'removed'} |`
      }),
      '',
      'A claim from `retrying` is possible only when the lease has expired. `edit` and `note` do not',
      'change the state, and `restore` returns the letter to the state before it was archived.',
    ].join('\n'),
  'docs/reference/metrics.md': () => {
    const table = (of: MetricDefinition['of']): string[] => [
      '| metric | type | labels | meaning |',
      '|---|---|---|---|',
      ...metricNames
        .filter((name) => metricDefinitions[name].of === of)
        .map((name) => {
          const { type, labels, help }: MetricDefinition = metricDefinitions[name]
          const names = labels.map((label) => `\`${label}\``).join(', ')
          return `| \`${name}\` | ${type} | ${names} | ${help} |`
        }),
    ]
    return [
      '# Metrics',
      '',
      'The metrics of `GET /metrics`. The [guide](../guides/metrics.md) explains how to scrape them.',
      'The metrics of the process and of Node (`process_*`, `nodejs_*`) are served as well.',
      '',
      '## Of the store',
      '',
      'They are read at each scrape. Every process on a store reports the same values: use `max`, not',
      '`sum`, over processes.',
      '',
      ...table('store'),
      '',
      '## Of the process',
      '',
      'Counters start at 0 with the process: use `sum` over processes, after `rate` or `increase`.',
      '',
      ...table('process'),
      '',
      '## Names in events and in OpenTelemetry',
      '',
      '`metricsOf(event)` and `otelMetrics(meter)` use these names. Prometheus has its own spelling: no',
      'dots, `_total` for counters, and seconds.',
      '',
      '| name | in Prometheus |',
      '|---|---|',
      ...metricNames.flatMap((name) => {
        const { dotted }: MetricDefinition = metricDefinitions[name]
        return dotted === undefined ? [] : [`| \`${dotted}\` | \`${name}\` |`]
      }),
    ].join('\n')
  },
  'docs/reference/cli.md': () => commands,
  'docs/reference/events.md': eventsPage,
  'docs/reference/http.md': httpPage,
  'docs/reference/config.md': configPage,
  'docs/reference/config.schema.json': () => JSON.stringify(configJsonSchema(), null, 2),
}

const root = join(import.meta.dirname, '..')
const stale = Object.entries(pages).filter(([path, make]) => {
  const text = `${make()}\n`
  let current = ''
  try {
    current = readFileSync(join(root, path), 'utf8')
  } catch {
    // A missing page is stale.
  }
  if (current === text) return false
  if (!process.argv.includes('--check')) {
    mkdirSync(dirname(join(root, path)), { recursive: true })
    writeFileSync(join(root, path), text)
  }
  return true
})
for (const [path] of stale)
  console.log(process.argv.includes('--check') ? `stale: ${path} (npm run docs)` : `wrote ${path}`)
if (process.argv.includes('--check') && stale.length > 0) process.exitCode = 1
