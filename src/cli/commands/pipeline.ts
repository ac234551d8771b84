import type { Command } from 'commander'
import { systemClock } from '../../clock/clock.ts'
import { RedriveError } from '../../errors.ts'
import { toMs } from '../../letter/time.ts'
import type { NodeStatus } from '../../pipeline/admin.ts'
import type { ReplayReport } from '../../pipeline/replay/options.ts'
import type { NodeSettings } from '../../pipeline/graph/settings.ts'
import { collect } from '../filter.ts'
import type { GlobalOptions } from '../open.ts'
import { loadWithKafka, openPipeline, type GraphSource } from '../open-pipeline.ts'
import {
  formatCount,
  truncate,
  printDocument,
  escapeLine,
  lineWidth,
  formatDuration,
  formatTable,
} from '../print.ts'
import { createProgressLine, type Progress } from '../progress-line.ts'
import { stoppedExit, stopOnSignal } from '../stop-on-signal.ts'
import { terminal } from '../terminal.ts'

const replayExamples = `
Examples:
  redrive pipeline replay parser --config graph.yaml --dry-run
  redrive pipeline replay parser --config graph.yaml --filter error_type=TIMEOUT
  redrive pipeline replay parser --config graph.yaml --limit 100 --rate 10

Returns dead records unchanged to their source topics, with keys and headers.
Records that were replayed before are skipped. To continue a replay that was
stopped, run the same command again. A completed --id is not replayed again.

Filters, each given once: error_type=TIMEOUT,CRASH_LOOP  message=TEXT
  since=2026-01-31T10:00:00Z  until=…  stream_id=ID  key=TEXT

Exits with 0 when the replay is completed, and with 130 when it was stopped.`

const statusExamples = `
Examples:
  redrive pipeline status --config graph.yaml
  redrive pipeline status --config graph.yaml --json | jq '.[].depth'`

interface PipelineOptions extends GlobalOptions {
  config: string
  kafka?: string
}

interface ReplayCommandOptions extends PipelineOptions {
  filter?: string[]
  limit?: string
  rate?: string
  to?: string
  id?: string
  again?: boolean
  dryRun?: boolean
}

export function addPipeline(program: Command): void {
  const pipeline = program
    .command('pipeline')
    .description('manage the dead records of pipelines on Kafka')
  addGraphOptions(pipeline.command('replay'))
    .description('return dead records of a node to their source topics')
    .argument('<node>', 'the id of the node, or its name')
    .option('--filter <name=value>', 'only matching records; may be repeated', collect)
    .option('--limit <count>', 'maximum number of records')
    .option('--rate <count>', 'maximum number of records per second')
    .option('--to <topic>', 'target topic; default: the source topic of each record')
    .option('--again', 'include records that were replayed before')
    .option('--id <id>', 'name of the replay, to continue it later')
    .option('--dry-run', 'count only, send nothing')
    .addHelpText('after', replayExamples)
    .action((node: string, _, self: Command) =>
      runReplay(node, self.optsWithGlobals<ReplayCommandOptions>()),
    )
  addGraphOptions(pipeline.command('status'))
    .description('count the dead records of each node')
    .addHelpText('after', statusExamples)
    .action((_, self: Command) => printStatus(self.optsWithGlobals<PipelineOptions>()))
}

function addGraphOptions(command: Command): Command {
  return command
    .requiredOption('--config <file>', 'YAML file with the graphs')
    .option('--kafka <url>', 'URL of Kafka, if the graphs do not have it')
}

async function runReplay(name: string, options: ReplayCommandOptions): Promise<void> {
  const { replayFilter } = await loadWithKafka(() => import('../../pipeline/replay/filter.ts'))
  const pipeline = await openPipeline(graphSource(options))
  const settings = pipeline.find(name)
  const { limit, rate, to, id, dryRun = false, again = false } = options
  // Almost certainly an unset variable. With the same name, only the first replay would do
  // anything.
  if (id === '')
    throw new RedriveError(
      'INVALID_INPUT',
      '--id is empty: give the replay a name, or remove the option',
    )
  const progressOutput = options.json ? undefined : createProgressLine(terminal.stderr, systemClock)
  const stopping = stopOnSignal()
  let worked = false
  try {
    const report = await pipeline.replay(settings.node, {
      filter: replayFilter(options.filter ?? []),
      dryRun,
      again,
      ...(limit === undefined ? {} : { limit: Number(limit) }),
      ...(rate === undefined ? {} : { rate: Number(rate) }),
      ...(to === undefined ? {} : { target: to }),
      ...(id === undefined ? {} : { id }),
      signal: stopping.signal,
      onProgress: (report) => {
        worked = true
        progressOutput?.show(toProgress(report))
      },
    })
    progressOutput?.close()
    if (options.json) printDocument(options, report)
    else
      terminal.stdout.write(`${formatSummary(settings, report, lineWidth(), worked).join('\n')}\n`)
    if (!report.done) terminal.exitCode = stoppedExit
  } finally {
    stopping.end()
    progressOutput?.close()
    await pipeline.close()
  }
}

function graphSource({ config: file, kafka }: PipelineOptions): GraphSource {
  return { option: '--config', file, kafka }
}

function toProgress(report: ReplayReport): Progress {
  const { sent, quarantined, passed, left, dryRun } = report
  const done = sent + quarantined + passed + left
  return {
    label: 'replay',
    done,
    share: shareDone(report),
    note: `${sent.toLocaleString('en')}${dryRun ? ' would be' : ''} sent`,
  }
}

function shareDone({ positions, ends }: ReplayReport): number {
  const sum = (all: readonly number[]): number => all.reduce((total, one) => total + one, 0)
  return sum(ends) === 0 ? 1 : sum(positions) / sum(ends)
}

/**
 * The summary, in lines that fit the terminal. A replay that was completed before does no work and
 * reports its old counts.
 */
export function formatSummary(
  { name, dlq }: Pick<NodeSettings, 'name' | 'dlq'>,
  { id, sent, quarantined, passed, left, ends, done, dryRun }: ReplayReport,
  width: number,
  worked = true,
): string[] {
  const would = dryRun && worked ? ' would be' : ''
  const lines = [`Node ${escapeLine(name)}, from ${escapeLine(dlq.topic)}`]
  if (ends.length === 0) {
    lines.push('The topic does not exist: no record of this node has died.')
    lines.push('If some have died, check the topic in dlq_config and the Kafka URL (--kafka).')
    return lines.map((text) => truncate(text, width))
  }
  lines.push(`${formatCount(sent, 'record')}${would} returned.`)
  if (quarantined > 0)
    lines.push(
      `${formatCount(quarantined, 'record')}${would} quarantined: replayed ${dlq.maxReprocessCount} times already.`,
    )
  if (passed > 0)
    lines.push(
      `${formatCount(passed, 'record')} skipped: not matched, or replayed or erased before.`,
    )
  if (left > 0) lines.push(`${formatCount(left, 'record')} left: not returnable unchanged.`)
  if (done && !worked)
    lines.push('Completed before: nothing was sent. Use another --id for a new replay.')
  if (!done) lines.push('Stopped. Run the same command again to continue.')
  if (!dryRun) lines.push(`Replay ${escapeLine(id)}`)
  return lines.map((text) => truncate(text, width))
}

async function printStatus(options: PipelineOptions): Promise<void> {
  const pipeline = await openPipeline(graphSource(options))
  try {
    const rows = await pipeline.status()
    if (options.jsonl) for (const row of rows) printDocument(options, row)
    else if (options.json) printDocument(options, rows)
    else terminal.stdout.write(`${formatStatus(rows, systemClock.now(), lineWidth()).join('\n')}\n`)
  } finally {
    await pipeline.close()
  }
}

export function formatStatus(rows: readonly NodeStatus[], nowMs: number, width: number): string[] {
  const count = (value: number | null): string => value?.toLocaleString('en') ?? '?'
  const lines = formatTable<NodeStatus>(
    [
      { title: 'NODE', cell: ({ name }) => escapeLine(name), minWidth: 10 },
      { title: 'DEAD', cell: ({ depth }) => count(depth), alignRight: true },
      {
        title: 'OLDEST',
        cell: ({ oldestAt }) => (oldestAt === null ? '-' : formatDuration(nowMs - toMs(oldestAt))),
        alignRight: true,
      },
      { title: 'QUARANTINED', cell: ({ quarantined }) => count(quarantined), alignRight: true },
    ],
    rows,
    width,
  )
  const problems = rows.flatMap(({ name, problem }) =>
    problem === undefined ? [] : [truncate(`${escapeLine(name)}: ${escapeLine(problem)}`, width)],
  )
  return [...lines, ...problems]
}
