import type { Cluster } from '../backends/kafka/cluster.ts'
import { systemClock } from '../clock/clock.ts'
import { readTextFile } from '../config/read-file.ts'
import { needing } from '../connect/store.ts'
import { RedriveError } from '../errors.ts'
import type { Graphs } from '../pipeline/graph/graph.ts'

/** Where the graphs and their Kafka are. */
export interface GraphOptions {
  /** YAML file with the graphs. */
  config: string
  /** URL of Kafka, if the graphs do not have it. */
  kafka?: string
}

/** Loads a module that needs the package of Kafka. */
export const loadWithKafka = <T>(load: () => Promise<T>): Promise<T> =>
  needing('@platformatic/kafka', load, 'command')

export async function openCluster({ config, kafka }: GraphOptions): Promise<{
  graphs: Graphs
  cluster: Cluster
}> {
  const [{ readGraphs }, { Cluster: ClusterClass }] = await loadWithKafka(() =>
    Promise.all([import('../pipeline/graph/graph.ts'), import('../backends/kafka/cluster.ts')]),
  )
  const graphs = readGraphs(readGraphFile(config), config)
  const url = kafka ?? graphs.kafka
  if (url === undefined)
    throw new RedriveError('INVALID_INPUT', `${config} has no kafka URL: give it with --kafka`)
  const settings = { url, clock: systemClock, timeoutMs: 10_000, clientId: 'redrive-cli' }
  return { graphs, cluster: new ClusterClass(settings) }
}

function readGraphFile(file: string): string {
  try {
    return readTextFile(file)
  } catch (cause) {
    const why = cause instanceof Error ? cause.message : String(cause)
    throw new RedriveError('INVALID_INPUT', `--config cannot be read: ${why}`, { cause })
  }
}

/** The depth of the dead records of all nodes, in the format of Prometheus. */
export async function openPipelineMetrics(
  options: GraphOptions,
  onError: (error: unknown) => void,
): Promise<{ text: () => Promise<string>; close: () => Promise<void> }> {
  const [{ DeadRecordDepth }, { PipelineMetrics }] = await loadWithKafka(() =>
    Promise.all([import('../pipeline/metrics/depth.ts'), import('../pipeline/metrics/metrics.ts')]),
  )
  const { graphs, cluster } = await openCluster(options)
  const nodes = graphs.nodes.map((settings) => ({
    cluster: settings.cluster,
    graph: settings.graph,
    node: settings.node,
    topic: settings.dlq.topic,
  }))
  const depth = new DeadRecordDepth({ cluster, nodes })
  const standing = (): ReturnType<typeof depth.ask> => depth.ask()
  const metrics = new PipelineMetrics({ clock: systemClock, standing, onError })
  return { text: () => metrics.text(), close: () => depth.close() }
}
