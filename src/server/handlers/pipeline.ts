import type { pipelineEndpoints } from '../../api/endpoints/pipeline.ts'
import type { OutputOf, ReadInputOf } from '../../api/endpoints.ts'
import type { PipelineNodeView } from '../../api/schemas/pipeline.ts'
import { withoutUndefined } from '../../check/keys.ts'
import type { Clock } from '../../clock/clock.ts'
import { hasCode, RedriveError } from '../../errors.ts'
import { toMs } from '../../letter/time.ts'
import type { NodeStatus } from '../../pipeline/admin.ts'
import type { ReplayFilter } from '../../pipeline/replay/filter.ts'
import type { ReplayReport } from '../../pipeline/replay/options.ts'
import type { Handlers, ServedPipeline } from './handler.ts'

/** A longer replay is continued by another call, so that no call outlives its connection. */
const maxReplayMs = 20_000

export const pipelineHandlers: Handlers<keyof typeof pipelineEndpoints> = {
  async getPipeline(_, { pipeline }) {
    return { nodes: pipeline ? await nodesOf(pipeline) : [] }
  },

  async replayNode(input, { pipeline, audit, caller, clock, signal }) {
    if (!pipeline)
      throw new RedriveError(
        'NODE_NOT_FOUND',
        'this server has no pipeline: start it with redrive serve --pipeline graph.yaml',
      )
    const { node } = pipeline.find(input.nodeId)
    const replay = (): Promise<ReplayReport> =>
      withTimeLimit(clock, signal, (until) =>
        pipeline.replay(node, { ...optionsOf(input), signal: until }),
      )
    if (input.dryRun) return viewReport(await replay())
    const what = { kind: 'pipeline-node', id: node } as const
    const act = { action: 'pipeline-replay', what, actor: caller.name } as const
    return audit.act(act, async (describe) => {
      const report = await replay()
      const { id, sent, quarantined, done } = report
      describe({ after: { replay: id, sent, quarantined, done } })
      return viewReport(report)
    })
  },
}

function optionsOf({
  filter,
  to,
  limit,
  rate,
  again,
  id,
  dryRun,
}: ReadInputOf<'replayNode'>): Omit<Parameters<ServedPipeline['replay']>[1], 'signal'> {
  return withoutUndefined({
    filter: filter && filterOf(filter),
    target: to,
    limit,
    rate,
    again,
    id,
    dryRun,
  })
}

function filterOf({
  since,
  until,
  errorTypes,
  ...rest
}: NonNullable<ReadInputOf<'replayNode'>['filter']>): ReplayFilter {
  return withoutUndefined({
    ...rest,
    errorTypes: errorTypes?.map((type) => type.toUpperCase()),
    sinceMs: since === undefined ? undefined : toMs(since),
    untilMs: until === undefined ? undefined : toMs(until),
  })
}

function viewReport(given: ReplayReport): OutputOf<'replayNode'> {
  const { request: _, ...report } = given
  return { ...report, positions: [...report.positions], ends: [...report.ends] }
}

/** Calls with a signal that aborts after the time limit, and when the client has gone. */
async function withTimeLimit<T>(
  clock: Clock,
  signal: AbortSignal,
  call: (signal: AbortSignal) => Promise<T>,
): Promise<T> {
  const limit = new AbortController()
  const cancel = clock.timer(maxReplayMs, () => limit.abort(), { background: true })
  try {
    return await call(AbortSignal.any([signal, limit.signal]))
  } finally {
    cancel()
  }
}

/** The graph is known without Kafka, and is shown while Kafka is unreachable. */
async function nodesOf(pipeline: ServedPipeline): Promise<PipelineNodeView[]> {
  const { nodes } = pipeline.graphs
  const status = await pipeline.status().catch((error: unknown): NodeStatus[] => {
    if (!hasCode(error, 'MAILBOX_UNAVAILABLE')) throw error
    const unknown = { depth: null, oldestAt: null, quarantined: null, problem: error.message }
    return nodes.map(({ graph, node, name }) => ({ graph, node, name, ...unknown }))
  })
  return nodes.map(({ inputTopic, dlq, next }, index) => ({
    ...status[index]!,
    inputTopic,
    dlqTopic: dlq.topic,
    quarantineTopic: dlq.quarantineTopic,
    next: next.map(({ to, topic }) => ({ node: to, topic })),
  }))
}
