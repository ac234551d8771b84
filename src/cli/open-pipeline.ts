import { systemClock } from '../clock/clock.ts'
import { readTextFile } from '../config/read-file.ts'
import { needing } from '../connect/store.ts'
import { RedriveError } from '../errors.ts'
import type { PipelineAdmin } from '../pipeline/admin.ts'

export interface GraphSource {
  /** The option that names the file, for messages. */
  option: string
  /** YAML file with the graphs. */
  file: string
  /** URL of Kafka, if the graphs do not have it. */
  kafka?: string | undefined
}

export const loadWithKafka = <T>(load: () => Promise<T>): Promise<T> =>
  needing('@platformatic/kafka', load, 'command')

/** Reads graphs and prepares the connection to Kafka. Connects with the first use. */
export async function openPipeline({ option, file, kafka }: GraphSource): Promise<PipelineAdmin> {
  const [{ readGraphs }, { Cluster }, { PipelineAdmin: Admin }] = await loadWithKafka(() =>
    Promise.all([
      import('../pipeline/graph/graph.ts'),
      import('../backends/kafka/cluster.ts'),
      import('../pipeline/admin.ts'),
    ]),
  )
  const graphs = readGraphs(readGraphFile(option, file), file)
  const url = kafka ?? graphs.kafka
  if (url === undefined)
    throw new RedriveError('INVALID_INPUT', `${file} has no kafka URL: give it with --kafka`)
  const settings = { url, clock: systemClock, timeoutMs: 10_000, clientId: 'redrive-cli' }
  return new Admin({ graphs, cluster: new Cluster(settings) })
}

function readGraphFile(option: string, file: string): string {
  try {
    return readTextFile(file)
  } catch (cause) {
    const why = cause instanceof Error ? cause.message : String(cause)
    throw new RedriveError('INVALID_INPUT', `${option} cannot be read: ${why}`, { cause })
  }
}
