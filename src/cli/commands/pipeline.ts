import type { Command } from 'commander'
import { systemClock } from '../../clock/clock.ts'
import { RedriveError } from '../../errors.ts'
import type { Cluster } from '../../backends/kafka/cluster.ts'
import { toMs, toTimestamp, type Timestamp } from '../../letter/time.ts'
import { nearest } from '../../check/nearest.ts'
import type { Graphs } from '../../pipeline/graph/graph.ts'
import type { ReplayReport } from '../../pipeline/replay/options.ts'
import type { NodeSettings } from '../../pipeline/graph/settings.ts'
import type { DeadPlace, NodeDepth } from '../../pipeline/metrics/depth.ts'
import { collect } from '../filter.ts'
import type { GlobalOptions } from '../open.ts'
import { loadWithKafka, openCluster, type GraphOptions } from '../pipeline-cluster.ts'
import {
  formatCount,
  truncate,
  toJson,
  escapeLine,
  lineWidth,
  formatDuration,
  formatTable,
} from '../print.ts'
import { createProgressLine } from '../progress-line.ts'
import { stoppedExit, stopOnSignal } from '../stop-on-signal.ts'

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

interface PipelineOptions extends GlobalOptions, GraphOptions {}

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
  const [{ replayNode }, { replayFilter }, { checkTopic }] = await loadWithKafka(() =>
    Promise.all([
      import('../../pipeline/replay/replay.ts'),
      import('../../pipeline/replay/filter.ts'),
      import('../../pipeline/graph/topics.ts'),
    ]),
  )
  const { graphs, cluster } = await openCluster(options)
  const settings = findNode(graphs, name)
  const { limit, rate, to, id, dryRun = false, again = false } = options
  // Almost certainly an unset variable. With the same name, only the first replay would do
  // anything.
  if (id === '')
    throw new RedriveError(
      'INVALID_INPUT',
      '--id is empty: give the replay a name, or remove the option',
    )
  const progressOutput = options.json ? undefined : createProgressLine(process.stderr, systemClock)
  const stopping = stopOnSignal()
  let worked = false
  try {
    const report = await replayNode({
      cluster,
      settings,
      filter: replayFilter(options.filter ?? []),
      dryRun,
      again,
      ...(limit === undefined ? {} : { limit: Number(limit) }),
      ...(rate === undefined ? {} : { rate: Number(rate) }),
      ...(to === undefined ? {} : { target: checkTopic(to) }),
      ...(id === undefined ? {} : { id }),
      signal: stopping.signal,
      onProgress: (report) => {
        worked = true
        progressOutput?.show(formatProgress(report), shareDone(report))
      },
    })
    progressOutput?.close()
    if (options.json) process.stdout.write(`${toJson(report, 2)}\n`)
    else
      process.stdout.write(`${formatSummary(settings, report, lineWidth(), worked).join('\n')}\n`)
    if (!report.done) process.exitCode = stoppedExit
  } finally {
    stopping.end()
    progressOutput?.close()
  }
}

function formatProgress({ sent, quarantined, passed, left, dryRun }: ReplayReport): string {
  const read = sent + quarantined + passed + left
  return `${formatCount(read, 'dead record')} read, ${sent.toLocaleString('en')}${dryRun ? ' would be' : ''} sent`
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
  const { DeadRecordDepth } = await loadWithKafka(() => import('../../pipeline/metrics/depth.ts'))
  const { graphs, cluster } = await openCluster(options)
  const existingTopics = new Set(await listTopics(cluster))
  const readDepths = async (
    placeOf: (node: NodeSettings) => Omit<DeadPlace, 'graph' | 'node'>,
  ): Promise<Map<string, NodeDepth>> => {
    const nodes = graphs.nodes
      .map((settings) => ({ graph: settings.graph, node: settings.node, ...placeOf(settings) }))
      .filter(({ topic }) => existingTopics.has(topic))
    const depths = new DeadRecordDepth({ cluster, nodes, longestMs: maxWaitMs })
    try {
      return new Map((await depths.ask()).map((one) => [one.node, one]))
    } finally {
      await depths.close()
    }
  }
  const dead = await readDepths(({ cluster, dlq }) => ({ cluster, topic: dlq.topic }))
  // Replay positions belong to the DLQ topic, not to the quarantine topic: query this one without a
  // cluster.
  const quarantined = await readDepths(({ dlq }) => ({ cluster: '', topic: dlq.quarantineTopic }))
  const rows = graphs.nodes.map((settings) =>
    toStatusRow(settings, dead.get(settings.node), quarantined.get(settings.node)),
  )
  if (options.json) process.stdout.write(`${toJson(rows, 2)}\n`)
  else process.stdout.write(`${formatStatus(rows, systemClock.now(), lineWidth()).join('\n')}\n`)
}

const maxWaitMs = 30_000

export interface StatusRow {
  graph: string
  node: string
  name: string
  /** Null: unknown, and `problem` says why. */
  depth: number | null
  /** When the oldest dead record died. */
  oldestAt: Timestamp | null
  quarantined: number | null
  problem?: string
}

async function listTopics(cluster: Cluster): Promise<string[]> {
  const admin = cluster.admin()
  try {
    return await cluster.call(() => admin.listTopics())
  } finally {
    await admin.close().catch(() => {})
  }
}

export function toStatusRow(
  { graph, node, name }: Pick<NodeSettings, 'graph' | 'node' | 'name'>,
  dead: NodeDepth | undefined,
  quarantined: NodeDepth | undefined,
): StatusRow {
  const { depth, problem } = toDepth(quarantined)
  const why = problem === undefined ? {} : { problem }
  return { graph, node, name, ...why, ...toDepth(dead), quarantined: depth }
}

/** A topic that does not exist has depth 0. */
function toDepth(
  measured: NodeDepth | undefined,
): Pick<StatusRow, 'depth' | 'oldestAt' | 'problem'> {
  if (!measured) return { depth: 0, oldestAt: null }
  if ('error' in measured) return { depth: null, oldestAt: null, problem: measured.error.message }
  const { depth, oldestMs } = measured
  return { depth, oldestAt: oldestMs === undefined ? null : toTimestamp(oldestMs) }
}

export function formatStatus(rows: readonly StatusRow[], nowMs: number, width: number): string[] {
  const count = (value: number | null): string => value?.toLocaleString('en') ?? '?'
  const lines = formatTable<StatusRow>(
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

function findNode({ nodes }: Graphs, wanted: string): NodeSettings {
  const byId = nodes.filter(({ node }) => node === wanted)
  const matches = byId.length > 0 ? byId : nodes.filter(({ name }) => name === wanted)
  if (matches.length === 1) return matches[0]!
  if (matches.length > 1)
    throw new RedriveError(
      'INVALID_INPUT',
      `several nodes are named ${wanted}: use the id of the node`,
    )
  const near = nearest(
    wanted,
    nodes.flatMap(({ node, name }) => [node, name]),
  )
  const all = nodes.map(({ node, name }) => (node === name ? node : `${node} (${name})`))
  const hint = near ? `did you mean ${near}?` : `known: ${all.join(', ')}`
  throw new RedriveError('INVALID_INPUT', `unknown node ${JSON.stringify(wanted)}: ${hint}`)
}
