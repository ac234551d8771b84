import type { Clock } from '../../clock/clock.ts'
import { toTimestamp } from '../../letter/time.ts'
import type { ServedPipeline } from '../../server/handlers/handler.ts'
import { RedriveError } from '../../errors.ts'
import { readGraphs } from '../../pipeline/graph/graph.ts'

const graphs = `
cluster_id: demo
graphs:
  - graph_id: documents
    nodes:
      - { node_id: fetch, module: { function: fetch } }
      - { node_id: parse, module: { function: parse } }
      - { node_id: detect-language, module: { function: detect } }
      - { node_id: embed, module: { function: embed } }
      - { node_id: index, module: { function: index } }
    edges:
      - { from: fetch, to: parse }
      - { from: fetch, to: detect-language }
      - { from: parse, to: embed }
      - { from: detect-language, to: index }
      - { from: embed, to: index }
`

const minuteMs = 60_000
/** Dead records of each node when the demo starts. */
const deadAtStart: Record<string, number> = { parse: 14, embed: 231, index: 3 }
/** One more record of the node dies in each of these times. */
const growth = { node: 'embed', everyMs: 7000 }

/** A pipeline without Kafka: its dead records are numbers in the memory of this process. */
export function demoPipeline(clock: Clock): ServedPipeline {
  const startMs = clock.now()
  const replayed = new Map<string, number>()
  const parsed = readGraphs(graphs, 'the graph of the demo')
  const deadOf = (node: string): number => {
    const added = node === growth.node ? Math.floor((clock.now() - startMs) / growth.everyMs) : 0
    return (deadAtStart[node] ?? 0) + added - (replayed.get(node) ?? 0)
  }
  return {
    graphs: parsed,
    status: async () =>
      parsed.nodes.map(({ graph, node, name }) => ({
        graph,
        node,
        name,
        depth: deadOf(node),
        oldestAt: deadOf(node) === 0 ? null : toTimestamp(startMs - 42 * minuteMs),
        quarantined: node === growth.node ? 2 : 0,
      })),
    find: (wanted) => {
      const found = parsed.nodes.find(({ node, name }) => node === wanted || name === wanted)
      if (!found) throw new RedriveError('NODE_NOT_FOUND', `the demo has no node ${wanted}`)
      return found
    },
    replay: async (node, { dryRun = false, limit = Infinity, id = `demo-${node}` }) => {
      const sent = Math.min(deadOf(node), limit)
      if (!dryRun) replayed.set(node, (replayed.get(node) ?? 0) + sent)
      return {
        id,
        request: '',
        dryRun,
        done: true,
        sent,
        quarantined: 0,
        passed: 0,
        left: 0,
        positions: [sent],
        ends: [sent],
        startedAt: toTimestamp(clock.now()),
      }
    },
  }
}
