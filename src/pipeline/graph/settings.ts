import { RedriveError } from '../../errors.ts'
import { checkTopic, dlqTopicOf, inputTopicOf, quarantineTopicOf } from './topics.ts'

/** What happens to records that a node gives up on. */
export interface DlqSettings {
  /**
   * False: such a record is retried forever, and later ones wait. No record is dropped in either
   * case.
   */
  enabled: boolean
  topic: string
  quarantineTopic: string
  /** Calls of the module after the first one. */
  maxRetries: number
  /** The delay before retry n is n times this. */
  retryBackoffMs: number
  /** After this many replays, a new failure is quarantined. */
  maxReprocessCount: number
  /** Treats success=false of a module as a failure. */
  deadLetterLogicalFailures: boolean
  /** False: dead records do not contain the document; a reference to it is preserved. */
  includePayload: boolean
}

/** Where a stream goes after a node. */
export interface Edge {
  to: string
  topic: string
  /** Maximum number of nodes that a stream has passed before this edge. 0: unlimited. */
  maxHops: number
}

/** One node of a graph, with all settings. */
export interface NodeSettings {
  cluster: string
  graph: string
  node: string
  name: string
  inputTopic: string
  dlq: DlqSettings
  next: readonly Edge[]
  /** Maximum number of nodes per stream. A stream above it is in a cycle. 0: unlimited. */
  maxHops: number
  /** Concurrent calls of the module. Records with the same key are processed in order. */
  concurrency: number
  /** Time limit of one call. */
  timeoutMs: number
  /** Time limit of a record with all its retries. */
  deadlineMs: number
  /**
   * After this many deliveries that ended with a dead process, the record is assumed to be the
   * cause.
   */
  maxDeliveries: number
  /** Partitions of new topics. */
  partitions: number
  /** Replication factor of new topics. -1: the default of the cluster. */
  replicas: number
  /** How long dead records are stored. */
  dlqRetentionMs: number
  /** A larger document is moved to the document store, if there is one. */
  maxInlineBytes: number
}

const hourMs = 3_600_000

export const nodeDefaults = {
  maxHops: 10,
  concurrency: 16,
  timeoutMs: 30_000,
  deadlineMs: 240_000,
  maxDeliveries: 5,
  partitions: 4,
  replicas: -1,
  dlqRetentionMs: 30 * 24 * hourMs,
  maxInlineBytes: 512 * 1024,
} as const satisfies Partial<NodeSettings>

const dlqDefaults = {
  enabled: true,
  maxRetries: 3,
  retryBackoffMs: 1000,
  maxReprocessCount: 3,
  deadLetterLogicalFailures: false,
  includePayload: true,
} as const satisfies Partial<DlqSettings>

/** A node without a graph: missing values have their defaults. */
export type NodeInput = Pick<NodeSettings, 'cluster' | 'node'> &
  Partial<Omit<NodeSettings, 'dlq' | 'cluster' | 'node'>> & { dlq?: Partial<DlqSettings> }

/** Adds defaults, and checks numbers. */
export function nodeSettings(input: NodeInput): NodeSettings {
  const { cluster, node, graph = 'default', dlq = {} } = input
  for (const [name, id] of Object.entries({ cluster, graph, node }))
    if (typeof id !== 'string' || id === '' || id.length > 200)
      throw invalid(`${name} must be a string of 1 to 200 characters`)
  const place = { cluster, graph, node }
  const settings: NodeSettings = {
    ...nodeDefaults,
    name: node,
    next: [],
    ...input,
    ...place,
    inputTopic: input.inputTopic === undefined ? inputTopicOf(place) : checkTopic(input.inputTopic),
    dlq: {
      ...dlqDefaults,
      ...dlq,
      topic: dlqTopicOf(place, dlq.topic),
      quarantineTopic: dlq.quarantineTopic
        ? checkTopic(dlq.quarantineTopic)
        : quarantineTopicOf(place),
    },
  }
  for (const { name, of, least } of bounds)
    if (!(of(settings) >= least))
      throw invalid(`${name} must be ${least} or more, not ${of(settings)}`)
  if ([settings.dlq.topic, settings.dlq.quarantineTopic].includes(settings.inputTopic))
    throw invalid(`${settings.inputTopic} cannot store the dead letters of the node that reads it`)
  return settings
}

const bounds: { name: string; of: (settings: NodeSettings) => number; least: number }[] = [
  { name: 'dlq.maxRetries', of: ({ dlq }) => dlq.maxRetries, least: 0 },
  { name: 'dlq.retryBackoffMs', of: ({ dlq }) => dlq.retryBackoffMs, least: 0 },
  { name: 'dlq.maxReprocessCount', of: ({ dlq }) => dlq.maxReprocessCount, least: 0 },
  { name: 'maxHops', of: ({ maxHops }) => maxHops, least: 0 },
  { name: 'concurrency', of: ({ concurrency }) => concurrency, least: 1 },
  { name: 'timeoutMs', of: ({ timeoutMs }) => timeoutMs, least: 1 },
  { name: 'deadlineMs', of: ({ deadlineMs }) => deadlineMs, least: 1 },
  { name: 'maxDeliveries', of: ({ maxDeliveries }) => maxDeliveries, least: 1 },
  { name: 'partitions', of: ({ partitions }) => partitions, least: 1 },
]

function invalid(message: string): RedriveError {
  return new RedriveError('INVALID_CONFIG', message)
}
