import type { BaseOptions } from '@platformatic/kafka'
import { queueOf, type PipelineKeeper } from './dead/capture.ts'
import { systemClock, type Clock } from '../clock/clock.ts'
import { RedriveError } from '../errors.ts'
import { Cluster } from '../backends/kafka/cluster.ts'
import { nearest } from '../check/nearest.ts'
import type { Handler } from '../redelivery/run.ts'
import type { Tap } from '../taps/tap.ts'
import { pipelineDeadLetters } from './dead/letters.ts'
import type { DocumentStore } from './documents/documents.ts'
import { erase, type ErasureKey, type ErasureReport } from './erase.ts'
import type { PipelineEvent } from './events.ts'
import type { Graphs, ModuleTarget } from './graph/graph.ts'
import { PipelineMetrics } from './metrics/metrics.ts'
import type { Module } from './modules/module.ts'
import { grpcModule } from './modules/grpc.ts'
import { httpModule } from './modules/http.ts'
import { PipelineNode } from './node.ts'
import { replayHandler, type ReplayHandler } from './replay/handler.ts'
import { replayNode } from './replay/replay.ts'
import type { ReplayOptions, ReplayReport } from './replay/options.ts'
import type { NodeSettings } from './graph/settings.ts'
import { deadPlaceOf, DeadRecordDepth } from './metrics/depth.ts'
import { createTopics } from './graph/topic-setup.ts'

export interface PipelineOptions {
  /** The connection to Kafka, if the graphs have none. */
  url?: string
  /** Modules that are functions, by their names in the graphs. */
  functions?: Readonly<Record<string, Module>>
  /** The nodes that run in this process. Default: all. */
  nodes?: readonly string[]
  /** Stores documents that are too large for records. */
  documents?: DocumentStore
  /** Sends results and commits offsets in one transaction. */
  transactional?: boolean
  onEvent?: (event: PipelineEvent) => void
  clock?: Clock
  /** Further options of the connection: certificates, another authentication. */
  connection?: Partial<BaseOptions>
  /**
   * A process that is silent for this long is removed from the group, and others continue. Default:
   * 10 seconds.
   */
  sessionMs?: number
}

/** The part of a `DeadLetterQueue` that dead records need. */
export interface LetterQueue {
  pipelineLetters(): PipelineKeeper
  handle(queue: string, handler: Handler): void
}

/** Running graphs: their nodes, dead records and metrics. */
export class Pipeline {
  readonly graphs: Graphs
  readonly nodes: readonly PipelineNode[]
  readonly #options: PipelineOptions & { url: string; clock: Clock }
  readonly #cluster: Cluster
  readonly #depths: DeadRecordDepth
  readonly #metrics: PipelineMetrics
  readonly #modules: readonly Module[]
  #dlq: LetterQueue | undefined

  /** Prepares the modules, and checks that each node has one. Nothing runs before `start()`. */
  static async open(graphs: Graphs, options: PipelineOptions = {}): Promise<Pipeline> {
    const { url = graphs.kafka, clock = systemClock, nodes: named } = options
    if (url === undefined)
      throw new RedriveError(
        'INVALID_CONFIG',
        'the graphs have no kafka section: pass the option url',
      )
    const all = graphs.nodes.map(({ node }) => node)
    for (const name of named ?? []) if (!all.includes(name)) throw unknownNode(name, all)
    const ours = graphs.nodes.filter(({ node }) => named?.includes(node) ?? true)
    const modules = new Map<string, Module>()
    for (const settings of ours)
      modules.set(settings.node, await moduleFor(settings, graphs, options, clock))
    return new Pipeline(graphs, ours, modules, { ...options, url, clock })
  }

  private constructor(
    graphs: Graphs,
    ours: readonly NodeSettings[],
    modules: ReadonlyMap<string, Module>,
    options: PipelineOptions & { url: string; clock: Clock },
  ) {
    this.graphs = graphs
    this.#options = options
    this.#modules = [...modules.values()]
    const { url, clock, connection, onEvent } = options
    const reaching = { url, clock, timeoutMs: 10_000, clientId: 'redrive-pipeline' }
    const cluster = (this.#cluster = new Cluster(
      connection ? { ...reaching, connection } : reaching,
    ))
    const depths = (this.#depths = new DeadRecordDepth({ cluster, nodes: ours.map(deadPlaceOf) }))
    this.#metrics = new PipelineMetrics({ clock, measureDepths: () => depths.measure() })
    const { documents, transactional = false, sessionMs = 10_000 } = options
    this.nodes = ours.map(
      (node) =>
        new PipelineNode({
          url,
          clock,
          node,
          module: modules.get(node.node)!,
          transactional,
          sessionMs,
          ...(documents ? { documents } : {}),
          ...(connection ? { connection } : {}),
          onEvent: (event) => {
            this.#metrics.count(event)
            onEvent?.(event)
          },
        }),
    )
  }

  /**
   * Creates missing topics, including those of nodes that run elsewhere, and starts the nodes. May
   * be called twice.
   */
  async start(): Promise<void> {
    const { onEvent } = this.#options
    const { cluster } = this.graphs
    for (const error of await createTopics(this.#cluster, this.graphs.nodes))
      onEvent?.({ type: 'error', cluster, graph: '', node: '', error })
    await Promise.all(this.nodes.map((node) => node.start()))
  }

  /**
   * Accepts no more records, waits for running calls, and closes all connections. May be called
   * twice.
   */
  async stop(options: { drainMs?: number } = {}): Promise<void> {
    await Promise.all(this.nodes.map((node) => node.stop(options)))
    await this.#depths.close()
    for (const module of this.#modules) if ('close' in module) (module as { close(): void }).close()
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.stop()
  }

  /** Returns dead records of a node to their source. */
  replay(
    node: string,
    options: Omit<ReplayOptions, 'cluster' | 'settings'> = {},
  ): Promise<ReplayReport> {
    return replayNode({ ...options, cluster: this.#cluster, settings: this.#settingsOf(node) })
  }

  /** Metrics for Prometheus: serve them as `metricsContentType`. */
  metrics(): Promise<string> {
    return this.#metrics.text()
  }

  /**
   * Imports dead records as letters, in queues with the names of their nodes, and lets a retry
   * return them to their source.
   */
  deadLetters(dlq: LetterQueue): Pick<Tap, 'start' | 'stop'> {
    this.#dlq = dlq
    const { url, clock, connection, sessionMs = 10_000, onEvent } = this.#options
    const { cluster, nodes } = this.graphs
    const handlers = nodes.map((settings): [NodeSettings, ReplayHandler] => [
      settings,
      replayHandler({ cluster: this.#cluster, settings }),
    ])
    for (const [{ node }, handler] of handlers) dlq.handle(queueOf(node), handler)
    const tap = pipelineDeadLetters({
      url,
      cluster,
      nodes,
      clock,
      sessionMs,
      keeper: dlq.pipelineLetters(),
      ...(connection ? { connection } : {}),
      onError: (error) => onEvent?.({ type: 'error', cluster, graph: '', node: '', error }),
    })
    return {
      start: () => tap.start(),
      stop: async () => {
        await tap.stop()
        await Promise.all(handlers.map(([, handler]) => handler.close()))
      },
    }
  }

  /**
   * Erases dead records by their data subject: in topics, as letters of `dlq`, and as documents.
   * Default of `dlq`: the one of `deadLetters()`. Without one, no letters are erased, and no record
   * is written.
   */
  erase(
    key: ErasureKey,
    { dlq = this.#dlq, ...who }: { by: string; reason: string; dlq?: LetterQueue },
  ): Promise<ErasureReport> {
    const { documents } = this.#options
    return erase({
      cluster: this.#cluster,
      nodes: this.graphs.nodes,
      key,
      ...who,
      ...(dlq ? { store: dlq.pipelineLetters().store } : {}),
      ...(documents ? { documents } : {}),
    })
  }

  #settingsOf(node: string): NodeSettings {
    const found = this.graphs.nodes.find((settings) => settings.node === node)
    if (found) return found
    throw unknownNode(
      node,
      this.graphs.nodes.map((settings) => settings.node),
    )
  }
}

async function moduleFor(
  { node, timeoutMs }: NodeSettings,
  { modules }: Graphs,
  { functions = {} }: PipelineOptions,
  clock: Clock,
): Promise<Module> {
  const target: ModuleTarget = modules.get(node) ?? { function: node }
  if ('http' in target) return httpModule({ url: target.http })
  if ('grpc' in target) return grpcModule({ address: target.grpc, timeoutMs, clock })
  const known = Object.hasOwn(functions, target.function) ? functions[target.function] : undefined
  if (known) return known
  throw new RedriveError(
    'INVALID_CONFIG',
    `node ${node} calls the function ${target.function}, which does not exist: pass it in functions`,
  )
}

function unknownNode(name: string, all: readonly string[]): RedriveError {
  const near = nearest(name, all)
  const hint = near === undefined ? `known: ${all.join(', ')}` : `did you mean ${near}?`
  return new RedriveError('INVALID_INPUT', `unknown node ${name}: ${hint}`)
}
