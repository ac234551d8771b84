import { dotted, problemAt, type Layer, type Path, type Problem } from '../../config/layer.ts'
import { formatUnits } from '../../check/units.ts'
import { parseConnection } from '../../backends/kafka/address.ts'
import { nearest } from '../../check/nearest.ts'
import type { ValidNode, ValidParts } from './schema.ts'
import { nodeDefaults } from './settings.ts'
import {
  dlqTopicOf,
  inputTopicOf,
  quarantineTopicOf,
  replaysTopicOf,
  type NodePlace,
} from './topics.ts'

/** A node, and its path in the configuration. */
export interface PlacedNode extends NodePlace {
  path: Path
  data: ValidNode
  inputTopic: string
}

export function placedNodes({ cluster_id: cluster, graphs }: ValidParts): PlacedNode[] {
  return graphs.flatMap((graph, graphAt) =>
    (graph?.nodes ?? []).flatMap((data, at) => {
      if (!graph || !data) return []
      const place = { cluster, graph: graph.graph_id, node: data.node_id }
      const { kafka_input_topic: topic = '' } = data
      const inputTopic = topic === '' ? inputTopicOf(place) : topic
      return [{ ...place, path: ['graphs', graphAt, 'nodes', at], data, inputTopic }]
    }),
  )
}

/** Problems between values: contradictions and missing parts. */
export function problemsIn(
  data: ValidParts,
  placed: readonly PlacedNode[],
  layer: Layer,
): Problem[] {
  return [
    ...kafkaProblems(data, layer),
    ...graphProblems(data, layer),
    ...idProblems(placed, layer),
    ...timeProblems(placed, layer),
    ...edgeProblems(data, layer),
    ...topicProblems(placed, layer),
  ]
}

function kafkaProblems({ kafka }: ValidParts, layer: Layer): Problem[] {
  try {
    if (kafka !== undefined) parseConnection(kafka)
    return []
  } catch (error) {
    return [problemAt(['kafka'], layer, (error as Error).message)]
  }
}

/** Reports duplicates, with the first occurrence. */
function twice<T>(
  all: readonly T[],
  nameOf: (one: T) => string,
  problemOf: (one: T, first: T) => Problem,
): Problem[] {
  const firsts = new Map<string, T>()
  return all.flatMap((one) => {
    const first = firsts.get(nameOf(one))
    if (first !== undefined) return [problemOf(one, first)]
    firsts.set(nameOf(one), one)
    return []
  })
}

function graphProblems({ graphs }: ValidParts, layer: Layer): Problem[] {
  return twice(
    graphs.flatMap((graph, at) =>
      graph ? [{ graph: graph.graph_id, path: ['graphs', at, 'graph_id'] }] : [],
    ),
    ({ graph }) => graph,
    ({ path }, first) => problemAt(path, layer, `is the same as ${dotted(first.path)}`),
  )
}

function idProblems(placed: readonly PlacedNode[], layer: Layer): Problem[] {
  return twice(
    placed,
    ({ node }) => node,
    ({ path }, first) => {
      const other = dotted([...first.path, 'node_id'])
      const text = `is the same as ${other}: a cluster has one DLQ topic per id`
      return problemAt([...path, 'node_id'], layer, text)
    },
  )
}

function timeProblems(placed: readonly PlacedNode[], layer: Layer): Problem[] {
  return placed.flatMap(({ path, data }) => {
    const { timeout = nodeDefaults.timeoutMs, deadline = nodeDefaults.deadlineMs } = data
    if (timeout <= deadline) return []
    const [one, all] = [timeout, deadline].map((ms) => formatUnits(ms, 'duration'))
    const text = `is ${one}, but all calls for a record together have ${all} (deadline)`
    return [problemAt([...path, 'timeout'], layer, text)]
  })
}

function edgeProblems({ graphs }: ValidParts, layer: Layer): Problem[] {
  return graphs.flatMap((graph, graphAt) => {
    const { nodes = [], edges = [] } = graph ?? {}
    const known = nodes.flatMap((node) => (node ? [node.node_id] : []))
    const pathOf = (at: number): Path => ['graphs', graphAt, 'edges', at]
    const given = edges.flatMap((edge, at) => (edge ? [{ ...edge, at }] : []))
    const dangling = given.flatMap(({ at, ...edge }) =>
      (['from', 'to'] as const)
        .filter((end) => !known.includes(edge[end]))
        .map((end) => problemAt([...pathOf(at), end], layer, unknownNode(edge[end], known))),
    )
    const same = twice(
      given.map(({ from, to, at }) => ({ name: JSON.stringify([from, to]), at })),
      ({ name }) => name,
      ({ at }, first) => problemAt(pathOf(at), layer, `is the same as ${dotted(pathOf(first.at))}`),
    )
    return [...dangling, ...same]
  })
}

function unknownNode(node: string, known: readonly string[]): string {
  const near = nearest(node, known)
  return `is not a node of this graph${near === undefined ? '' : `: did you mean "${near}"?`}`
}

interface Use {
  topic: string
  path: Path
  what: string
}

/**
 * No topic has two uses: dead records would be read as new ones, or one node would read records of
 * another.
 */
function topicProblems(placed: readonly PlacedNode[], layer: Layer): Problem[] {
  const uses = placed.flatMap((place): Use[] => {
    const { path, node, inputTopic, data } = place
    const use = (topic: string, what: string, ...key: string[]): Use => ({
      topic,
      what: `${what} of ${JSON.stringify(node)}`,
      path: [...path, ...key],
    })
    return [
      use(inputTopic, 'the input topic', 'kafka_input_topic'),
      use(dlqTopicOf(place, data.dlq_config?.topic), 'the DLQ topic', 'dlq_config', 'topic'),
      use(quarantineTopicOf(place), 'the quarantine topic', 'node_id'),
      use(replaysTopicOf(place), 'the topic of replays', 'node_id'),
    ]
  })
  // For two nodes with the same id, the id is the problem.
  const nodes = new Set<string>()
  const distinct = uses.filter(({ topic, what }) => {
    const isNew = !nodes.has(what + topic)
    nodes.add(what + topic)
    return isNew
  })
  return twice(
    distinct,
    // Kafka rejects a name that differs from another in this only.
    ({ topic }) => topic.replaceAll('.', '_'),
    ({ path, topic, what }, first) =>
      problemAt(path, layer, `${topic} is both ${what} and ${first.what}`),
  )
}
