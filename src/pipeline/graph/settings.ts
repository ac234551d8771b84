import { RedriveError } from '../../errors.ts'
import { checkTopic, dlqTopicOf, inputTopicOf, quarantineTopicOf } from './topics.ts'

/** What becomes of records that a node gives up. */
export interface DlqSettings {
  /** False: such a record is tried again for ever, and those behind it wait. Nothing is dropped either way. */
  enabled: boolean
  topic: string
  quarantineTopic: string
  /** Calls of the module after the first. */
  maxRetries: number
  /** The pause before retry n is n times this. */
  retryBackoffMs: number
  /** Replayed so often, it is quarantined when it fails once more. */
  maxReprocessCount: number
  /** A module that says success=false is a failure like others. */
  deadLetterLogicalFailures: boolean
  /** False: the document is left out of dead records; a reference to it stays. */
  includePayload: boolean
}

/** Where a stream goes when a node is done with it. */
export interface Edge {
  to: string
  topic: string
  /** Nodes that a stream may have had before it takes this way. 0: any number. */
  maxHops: number
}

/** One node of a graph, everything said. */
export interface NodeSettings {
  cluster: string
  graph: string
  node: string
  name: string
  inputTopic: string
  dlq: DlqSettings
  next: readonly Edge[]
  /** Nodes that a stream may have at all. One that had as many before goes round in circles. 0: any number. */
  maxHops: number
  /** Calls of the module at once. Records with one key go one after the other. */
  concurrency: number
  /** How long one call may take. */
  timeoutMs: number
  /** How long a record may take with all its retries. */
  deadlineMs: number
  /** Deliveries that ended with the process: at this many, the record is taken for what ends it. */
  maxDeliveries: number
  /** Of topics that are created. */
  partitions: number
  /** Copies of topics that are created. -1: as many as the cluster has it. */
  replicas: number
  /** How long dead records are kept. */
  dlqRetentionMs: number
  /** A document larger than this goes into the document store, if there is one. */
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

/** A node by hand: what is not said has its default. */
export type NodeInput = Pick<NodeSettings, 'cluster' | 'node'> &
  Partial<Omit<NodeSettings, 'dlq' | 'cluster' | 'node'>> & { dlq?: Partial<DlqSettings> }

/** All that is said, and defaults for the rest. Numbers are checked. */
export function nodeSettings(input: NodeInput): NodeSettings {
  const { cluster, node, graph = 'default', dlq = {} } = input
  for (const [name, id] of Object.entries({ cluster, graph, node }))
    if (typeof id !== 'string' || id === '' || id.length > 200)
      throw invalid(`${name} must be a name of 1 to 200 characters`)
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
    throw invalid(`${settings.inputTopic} cannot hold the dead letters of the node that reads it`)
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
