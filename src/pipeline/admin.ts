import type { Cluster } from '../backends/kafka/cluster.ts'
import { nearest } from '../check/nearest.ts'
import { RedriveError } from '../errors.ts'
import { toTimestamp, type Timestamp } from '../letter/time.ts'
import type { Graphs } from './graph/graph.ts'
import type { NodeSettings } from './graph/settings.ts'
import { checkTopic } from './graph/topics.ts'
import { deadPlaceOf, DeadRecordDepth, type DeadPlace, type NodeDepth } from './metrics/depth.ts'
import { PipelineMetrics } from './metrics/metrics.ts'
import type { ReplayOptions, ReplayReport } from './replay/options.ts'
import { replayNode } from './replay/replay.ts'

export interface PipelineAdminOptions {
  graphs: Graphs
  cluster: Cluster
}

/** A node and the number of its dead records. */
export interface NodeStatus {
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

/** Time limit of reading the dead records of all nodes. */
const maxReadMs = 30_000

/** What people do with the dead records of graphs on Kafka, without running the graphs. */
export class PipelineAdmin {
  readonly graphs: Graphs
  readonly #cluster: Cluster
  readonly #ending = new AbortController()
  readonly #dead: Depths
  readonly #quarantined: Depths
  readonly #scraped: DeadRecordDepth
  readonly #metrics: PipelineMetrics

  constructor({ graphs, cluster }: PipelineAdminOptions) {
    this.graphs = graphs
    this.#cluster = cluster
    const places = graphs.nodes.map(deadPlaceOf)
    this.#dead = new Depths(cluster, places)
    // Replay positions belong to the DLQ topic, not to the quarantine topic: query this one without
    // a cluster.
    const quarantines = graphs.nodes.map((settings) => ({
      ...deadPlaceOf(settings),
      cluster: '',
      topic: settings.dlq.quarantineTopic,
    }))
    this.#quarantined = new Depths(cluster, quarantines)
    // A scrape has less time than a person, and continues where the last one has stopped.
    this.#scraped = new DeadRecordDepth({ cluster, nodes: places })
    const { clock } = cluster
    this.#metrics = new PipelineMetrics({ clock, measureDepths: () => this.#scraped.measure() })
  }

  /** Depth and age of the dead records of each node, in the format of Prometheus. */
  metrics(): Promise<string> {
    return this.#metrics.text()
  }

  /** Returns dead records of a node, given by its id or its name, to their source topics. */
  replay(
    node: string,
    { signal, ...options }: Omit<ReplayOptions, 'cluster' | 'settings'>,
  ): Promise<ReplayReport> {
    const { target } = options
    if (target !== undefined) checkTopic(target)
    const ended = this.#ending.signal
    return replayNode({
      ...options,
      cluster: this.#cluster,
      settings: this.find(node),
      signal: signal ? AbortSignal.any([signal, ended]) : ended,
    })
  }

  /** Counts the dead records of each node. Later calls read only what is new. */
  async status(): Promise<NodeStatus[]> {
    const existing = new Set(await this.#listTopics())
    const dead = await this.#dead.read(existing)
    const quarantined = await this.#quarantined.read(existing)
    return this.graphs.nodes.map((settings) =>
      toNodeStatus(settings, dead.get(settings.node), quarantined.get(settings.node)),
    )
  }

  /** The node with this id, or the only one with this name. Throws NODE_NOT_FOUND. */
  find(wanted: string): NodeSettings {
    const { nodes } = this.graphs
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
    const shown = JSON.stringify(wanted.slice(0, 100))
    throw new RedriveError('NODE_NOT_FOUND', `unknown node ${shown}: ${hint}`)
  }

  /** Stops replays between two transactions, and closes connections. */
  async close(): Promise<void> {
    this.#ending.abort()
    await Promise.all([this.#dead.close(), this.#quarantined.close(), this.#scraped.close()])
  }

  async #listTopics(): Promise<string[]> {
    const admin = this.#cluster.admin()
    try {
      return await this.#cluster.call(() => admin.listTopics())
    } finally {
      await admin.close().catch(() => {})
    }
  }
}

/** The depths of one kind of topic of all nodes. A topic that does not exist is left out. */
class Depths {
  readonly #cluster: Cluster
  readonly #nodes: readonly DeadPlace[]
  #topics = ''
  #depth: DeadRecordDepth | undefined

  constructor(cluster: Cluster, nodes: readonly DeadPlace[]) {
    this.#cluster = cluster
    this.#nodes = nodes
  }

  async read(existing: ReadonlySet<string>): Promise<Map<string, NodeDepth>> {
    const nodes = this.#nodes.filter(({ topic }) => existing.has(topic))
    const topics = nodes.map(({ topic }) => topic).join()
    if (!this.#depth || topics !== this.#topics) {
      const before = this.#depth
      this.#topics = topics
      this.#depth = new DeadRecordDepth({ cluster: this.#cluster, nodes, longestMs: maxReadMs })
      await before?.close()
    }
    return new Map((await this.#depth.measure()).map((one) => [one.node, one]))
  }

  async close(): Promise<void> {
    await this.#depth?.close()
    this.#depth = undefined
  }
}

export function toNodeStatus(
  { graph, node, name }: Pick<NodeSettings, 'graph' | 'node' | 'name'>,
  dead: NodeDepth | undefined,
  quarantined: NodeDepth | undefined,
): NodeStatus {
  const { depth, problem } = toDepth(quarantined)
  const why = problem === undefined ? {} : { problem }
  return { graph, node, name, ...why, ...toDepth(dead), quarantined: depth }
}

/** A topic that does not exist has depth 0. */
function toDepth(
  measured: NodeDepth | undefined,
): Pick<NodeStatus, 'depth' | 'oldestAt' | 'problem'> {
  if (!measured) return { depth: 0, oldestAt: null }
  if ('error' in measured) return { depth: null, oldestAt: null, problem: measured.error.message }
  const { depth, oldestMs } = measured
  return { depth, oldestAt: oldestMs === undefined ? null : toTimestamp(oldestMs) }
}
