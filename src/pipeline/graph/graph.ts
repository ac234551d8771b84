import { durationMs } from '@bufbuild/protobuf/wkt'
import { convertUnits } from '../../config/parse-value.ts'
import type { SchemaNode } from '../../check/schema-node.ts'
import { isTree, type Layer, type Problem } from '../../config/layer.ts'
import { invalidConfig, problemsOf } from '../../config/problems.ts'
import { readYaml } from '../../config/yaml.ts'
import { placedNodes, problemsIn, type PlacedNode } from './problems.ts'
import {
  dlqConfigNode,
  dlqConfigSchema,
  graphNode,
  graphSchema,
  type DlqData,
  type GraphData,
  type GraphInput,
  type NodeData,
  validParts,
} from './schema.ts'
import type { DlqConfig } from '../proto/redrive/pipeline/v1/dlq_pb.ts'
import { nodeSettings, type DlqSettings, type Edge, type NodeSettings } from './settings.ts'
import type { NodePlace } from './topics.ts'

/** What a node calls. A function is registered by the program under this name. */
export type ModuleTarget = { http: string } | { grpc: string } | { function: string }

/** The graphs of one cluster, complete and checked. */
export interface Graphs {
  cluster: string
  /** The connection to Kafka, if configured. */
  kafka?: string
  nodes: readonly NodeSettings[]
  /** By the id of the node. */
  modules: ReadonlyMap<string, ModuleTarget>
}

/**
 * Parses graphs from YAML; `name` identifies the file in errors. Throws INVALID_CONFIG with all
 * problems.
 */
export function readGraphs(text: string, name = 'graph'): Graphs {
  const { value, origins, problems } = readYaml(text, (line) => `${name}:${line}`)
  return checked(value, origins, name, problems)
}

/** Like `parseGraphs`, from an object. */
export function graphsOf(input: GraphInput): Graphs {
  return checked(input, new Map(), 'graph')
}

/** Checks everything before it throws, so that one run shows all problems. */
function checked(
  value: unknown,
  origins: Layer['origins'],
  from: string,
  found: readonly Problem[] = [],
): Graphs {
  if (!isTree(value)) {
    const problem = { key: '', from, text: 'must be an object' }
    throw invalidConfig(found.length > 0 ? found : [problem])
  }
  const layer = { value, origins }
  const input = convertUnits(value, graphNode)
  const { data, error } = graphSchema.safeParse(input)
  const parts = data ?? validParts(input)
  const placed = placedNodes(parts)
  const invalid = error ? problemsOf(error.issues, layer, graphNode) : []
  const problems = [...found, ...invalid, ...problemsIn(parts, placed, layer)]
  if (!data || problems.length > 0) throw invalidConfig(problems)
  return {
    cluster: data.cluster_id,
    ...(data.kafka === undefined ? {} : { kafka: data.kafka }),
    nodes: settingsOf(data, placed),
    modules: new Map(
      data.graphs.flatMap(({ nodes }) => nodes.map((node) => [node.node_id, targetOf(node)])),
    ),
  }
}

type Parsed<T> =
  | { success: true; data: T }
  | { success: false; error: { issues: Parameters<typeof problemsOf>[0] } }

function parsed<T>(result: Parsed<T>, layer: Layer, schema: SchemaNode): T {
  if (result.success) return result.data
  throw invalidConfig(problemsOf(result.error.issues, layer, schema))
}

function settingsOf({ graphs }: GraphData, placed: readonly PlacedNode[]): NodeSettings[] {
  const inputs = new Map(placed.map(({ node, inputTopic }) => [node, inputTopic]))
  const next = new Map<string, Edge[]>()
  for (const { from, to, max_hops: maxHops = 0 } of graphs.flatMap(({ edges = [] }) => edges)) {
    // Without a limit of its own, the edge has that of its target node.
    const edge = { to, topic: inputs.get(to) ?? '', maxHops }
    next.set(from, [...(next.get(from) ?? []), edge])
  }
  return placed.map(({ cluster, graph, node, inputTopic, data }) =>
    nodeSettings({
      ...said({
        maxHops: data.max_hops,
        concurrency: data.concurrency,
        timeoutMs: data.timeout,
        deadlineMs: data.deadline,
        maxDeliveries: data.max_deliveries,
        partitions: data.kafka_partitions,
        replicas: data.kafka_replicas,
        dlqRetentionMs: data.dlq_retention,
        maxInlineBytes: data.max_inline_bytes,
        name: data.name === '' ? undefined : data.name,
      }),
      cluster,
      graph,
      node,
      inputTopic,
      dlq: dlqOf(data.dlq_config ?? {}),
      next: next.get(node) ?? [],
    }),
  )
}

function dlqOf(data: DlqData): Partial<DlqSettings> {
  return said({
    enabled: data.enabled,
    topic: data.topic,
    maxRetries: data.max_retries,
    retryBackoffMs: data.retry_backoff,
    maxReprocessCount: data.max_reprocess_count,
    deadLetterLogicalFailures: data.dead_letter_logical_failures,
    includePayload: data.include_payload,
  })
}

/**
 * Reads the dead letter settings of a node from a proto: an unset field has its default, and 0 and
 * false are values. Throws INVALID_CONFIG.
 */
export function dlqSettingsOf(
  config: DlqConfig | undefined,
  { cluster, node }: Pick<NodePlace, 'cluster' | 'node'>,
): DlqSettings {
  const backoff = config?.retryBackoff
  const value = {
    enabled: config?.enabled,
    topic: config?.topic,
    max_retries: config?.maxRetries,
    retry_backoff: backoff && durationMs(backoff),
    max_reprocess_count: config?.maxReprocessCount,
    dead_letter_logical_failures: config?.deadLetterLogicalFailures,
    include_payload: config?.includePayload,
  }
  const layer = { value, origins: new Map<string, string>() }
  const data = parsed(dlqConfigSchema.safeParse(value), layer, dlqConfigNode)
  return nodeSettings({ cluster, node, dlq: dlqOf(data) }).dlq
}

function targetOf({ module }: NodeData): ModuleTarget {
  if (module.http !== undefined) return { http: module.http }
  if (module.grpc !== undefined) return { grpc: module.grpc }
  return { function: module.function ?? '' }
}

type Said<T> = { [Key in keyof T]?: Exclude<T[Key], undefined> }

/** Removes undefined values, which would override defaults. */
function said<T extends object>(values: T): Said<T> {
  return Object.fromEntries(
    Object.entries(values).filter(([, value]) => value !== undefined),
  ) as Said<T>
}
