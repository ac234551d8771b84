import { z } from 'zod'
import type { SchemaNode } from '../../check/schema-node.ts'
import { durationPattern, sizePattern } from '../../check/units.ts'
import { urlProblem } from '../../backends/http/post.ts'
import { longestMs } from '../../policy/backoff.ts'
import { isGrpcAddress } from '../modules/address.ts'
import { checkTopic } from './topics.ts'

const maxInt32 = 2 ** 31 - 1

/** The range of counts: the protos use 32 bits. */
const count = (from: number, to = maxInt32) => z.int().min(from).max(to).optional()

/**
 * A duration: a string such as 30s, or milliseconds. Strings are already converted to numbers here.
 */
const duration = (fromMs: number) => measure(z.number().min(fromMs).max(longestMs), durationPattern)

function measure<T extends z.ZodNumber>(number: T, pattern: string) {
  const { minValue: minimum, maxValue: maximum } = number
  return number
    .meta({
      anyOf: [
        { type: 'number', minimum, maximum },
        { type: 'string', pattern },
      ],
    })
    .optional()
}

/** Ids become names of queues, of groups and, escaped, of topics. */
const id = z.string().superRefine((text, context) => {
  if (!/^\P{Cc}{1,200}$/u.test(text) || !text.isWellFormed())
    context.addIssue('must be a string of 1 to 200 characters without control characters')
})

/** Empty, as in an unset proto field: the default name. */
const topic = z
  .string()
  .superRefine((text, context) => {
    try {
      if (text !== '') checkTopic(text)
    } catch (error) {
      context.addIssue((error as Error).message)
    }
  })
  .optional()

export const dlqConfigSchema = z.strictObject({
  enabled: z.boolean().optional(),
  topic,
  max_retries: count(0, 1000),
  retry_backoff: duration(0),
  max_reprocess_count: count(0, 1000),
  dead_letter_logical_failures: z.boolean().optional(),
  include_payload: z.boolean().optional(),
})

const httpAddress = z.string().superRefine((text, context) => {
  const problem = urlProblem(text, true)
  if (problem !== undefined) context.addIssue(problem)
})

const grpcAddress = z.string().superRefine((text, context) => {
  if (!isGrpcAddress(text)) context.addIssue('must be host:port, or grpcs://host:port over TLS')
})

const moduleSchema = z
  .strictObject({
    http: httpAddress.optional().meta({ format: 'uri' }),
    grpc: grpcAddress.optional(),
    function: z.string().min(1).max(200).optional(),
  })
  .superRefine((module, context) => {
    if (Object.values(module).filter((said) => said !== undefined).length !== 1)
      context.addIssue('must have one of http, grpc and function')
  })

const nodeSchema = z.strictObject({
  node_id: id,
  name: z.string().max(200).optional(),
  kafka_input_topic: topic,
  kafka_partitions: count(1, 10_000),
  kafka_replicas: z.union([z.literal(-1), z.int().min(1).max(100)]).optional(),
  module: moduleSchema,
  dlq_config: dlqConfigSchema.optional(),
  dlq_retention: duration(60_000),
  max_hops: count(0),
  concurrency: count(1, 10_000),
  timeout: duration(1),
  deadline: duration(1),
  max_deliveries: count(1, 1000),
  max_inline_bytes: measure(
    z
      .int()
      .min(0)
      .max(1024 ** 3),
    sizePattern,
  ),
})

const edgeSchema = z.strictObject({ from: id, to: id, max_hops: count(0) })

/** The graphs of one cluster, with the names of the protos. */
export const graphSchema = z.strictObject({
  cluster_id: id,
  kafka: z.string().min(1).optional().meta({ format: 'uri', writeOnly: true }),
  graphs: z
    .array(
      z.strictObject({
        graph_id: id,
        nodes: z.array(nodeSchema).min(1).max(1000),
        edges: z.array(edgeSchema).max(10_000).optional(),
      }),
    )
    .min(1)
    .max(1000),
})

export type GraphInput = z.input<typeof graphSchema>
export type GraphData = z.output<typeof graphSchema>
export type NodeData = z.output<typeof nodeSchema>
export type DlqData = z.output<typeof dlqConfigSchema>

/**
 * The valid part of a configuration: a node without a valid `node_id`, or an edge without ends, is
 * undefined.
 */
export interface ValidParts extends Pick<GraphData, 'cluster_id' | 'kafka'> {
  graphs: (ValidGraph | undefined)[]
}
interface ValidGraph {
  graph_id: string
  nodes: (ValidNode | undefined)[]
  edges?: (Edge | undefined)[] | undefined
}
export type ValidNode = Omit<NodeData, 'module'>
type Edge = z.output<typeof edgeSchema>

/**
 * The valid part of a configuration that the schema rejects, so that all problems can be reported
 * together.
 */
export function validParts(input: unknown): ValidParts {
  const { cluster_id: cluster, kafka, graphs } = fieldsOf(input)
  return {
    cluster_id: id.safeParse(cluster).data ?? '',
    ...(typeof kafka === 'string' ? { kafka } : {}),
    graphs: listOf(graphs).map((graph) => {
      const { graph_id: graphId, nodes, edges } = fieldsOf(graph)
      const name = id.safeParse(graphId).data
      if (name === undefined) return undefined
      return {
        graph_id: name,
        nodes: listOf(nodes).map((node) => validFields<ValidNode>(nodeSchema, node, 'node_id')),
        edges: listOf(edges).map((edge) => validFields<Edge>(edgeSchema, edge, 'from', 'to')),
      }
    }),
  }
}

/** The valid fields of an object, or undefined if a required one is invalid. */
function validFields<T>(schema: z.ZodObject, input: unknown, ...needed: string[]): T | undefined {
  const valid = Object.entries(fieldsOf(input)).filter(
    ([key, value]) =>
      Object.hasOwn(schema.shape, key) && schema.shape[key].safeParse(value).success,
  )
  const names = valid.map(([key]) => key)
  return needed.every((key) => names.includes(key)) ? (Object.fromEntries(valid) as T) : undefined
}

function fieldsOf(input: unknown): Record<string, unknown> {
  return typeof input === 'object' && input !== null ? (input as Record<string, unknown>) : {}
}

function listOf(input: unknown): readonly unknown[] {
  return Array.isArray(input) ? input : []
}

/** For error messages, and to find out which strings are durations. */
export const graphNode = z.toJSONSchema(graphSchema, { io: 'input' }) as SchemaNode
export const dlqConfigNode = z.toJSONSchema(dlqConfigSchema, { io: 'input' }) as SchemaNode
