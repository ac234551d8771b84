import type { Clock } from '../../clock/clock.ts'
import type { PipelineEvent } from '../events.ts'
import type { NodeDepth } from './depth.ts'
import type { NodePlace } from '../graph/topics.ts'

/** The Content-Type of `text()`. */
export const metricsContentType = 'text/plain; version=0.0.4; charset=utf-8'

export interface PipelineMetricsOptions {
  clock: Clock
  /** Reads the depth of the dead records of each node. */
  measureDepths: () => Promise<readonly NodeDepth[]>
  /** Called when a depth could not be read. */
  onError?: (error: unknown) => void
}

type Labels = Readonly<Record<string, string>>

/** Each error type has its own series; above this many per node, the rest is `OTHER`. */
const maxErrorTypes = 50
const maxErrorTypeLength = 100

/**
 * The metrics of the alert rules in ops/prometheus, in the format of Prometheus. Counters start at
 * 0 with the process, which `rate` and `increase` expect. They count the work of this process, so
 * those of several are added. Depth and age are read from the cluster: all processes report the
 * same. Values that cannot be read are left out and counted as scrape errors: a 0 would mean that
 * all is well.
 */
export class PipelineMetrics {
  readonly #options: PipelineMetricsOptions
  readonly #seen = new Set<string>()
  readonly #errorTypes = new Map<string, Set<string>>()
  readonly #messages = new Family(
    'pipestream_dlq_messages_total',
    'counter',
    'Dead-lettered records, counted when the broker has confirmed them.',
  )
  readonly #publishFailures = new Family(
    'pipestream_dlq_publish_failures_total',
    'counter',
    'Failed writes of dead records. They are retried.',
  )
  readonly #quarantined = new Family(
    'pipestream_dlq_quarantined_total',
    'counter',
    'Records that failed again after their last allowed replay.',
  )
  readonly #records = new Family(
    'pipestream_records_total',
    'counter',
    'Records that a node has finished, by outcome.',
  )
  readonly #retries = new Family('pipestream_retries_total', 'counter', 'Retries of module calls.')
  readonly #scrapeErrors = new Family(
    'pipestream_scrape_errors_total',
    'counter',
    'Failed reads of the depth of a node. The depth is then left out.',
  )

  constructor(options: PipelineMetricsOptions) {
    this.#options = options
  }

  count(event: PipelineEvent): void {
    const node = this.#labelsOf(event)
    switch (event.type) {
      case 'routed':
        return this.#records.add({ ...node, outcome: 'routed' })
      case 'logical-failure':
        return this.#records.add({ ...node, outcome: 'logical_failure' })
      case 'retry':
        return this.#retries.add(node)
      case 'dead-lettered':
        this.#records.add({ ...node, outcome: 'dead_lettered' })
        return this.#messages.add({ ...node, error_type: this.#errorType(node, event.errorType) })
      case 'quarantined':
        this.#records.add({ ...node, outcome: 'quarantined' })
        return this.#quarantined.add(node)
      case 'publish-failed':
        return this.#publishFailures.add(node)
      case 'error':
        return
    }
  }

  async text(): Promise<string> {
    const depth = new Family(
      'pipestream_dlq_depth',
      'gauge',
      'Dead records of the node that are neither replayed nor erased.',
    )
    const age = new Family(
      'pipestream_dlq_oldest_age_seconds',
      'gauge',
      'Age of the oldest of these records. 0 when there is none.',
    )
    const { clock, measureDepths, onError } = this.#options
    for (const one of await measureDepths()) {
      const node = this.#labelsOf(one)
      if ('error' in one) {
        this.#scrapeErrors.add(node)
        onError?.(one.error)
        continue
      }
      const labels = { ...node, topic: one.topic }
      depth.add(labels, one.depth)
      age.add(labels, Math.max(0, clock.now() - (one.oldestMs ?? Infinity)) / 1000)
    }
    const counters = [this.#messages, this.#publishFailures, this.#quarantined, this.#records]
    const all = [depth, age, ...counters, this.#retries, this.#scrapeErrors]
    return all.map((family) => family.text()).join('')
  }

  /**
   * A counter that appears with its first event has not increased, as Prometheus sees it. So the
   * counters of a node start at 0 when it is first seen.
   */
  #labelsOf({ cluster, graph, node }: NodePlace): Labels {
    const labels = { cluster, graph, node_id: node }
    const key = JSON.stringify([cluster, graph, node])
    if (this.#seen.has(key)) return labels
    this.#seen.add(key)
    const plain = [this.#publishFailures, this.#quarantined, this.#retries, this.#scrapeErrors]
    for (const family of plain) family.add(labels, 0)
    for (const outcome of ['routed', 'logical_failure', 'dead_lettered', 'quarantined'])
      this.#records.add({ ...labels, outcome }, 0)
    return labels
  }

  #errorType(node: Labels, said: string): string {
    const errorType = said.slice(0, maxErrorTypeLength)
    const key = JSON.stringify(node)
    const known = this.#errorTypes.get(key) ?? new Set()
    this.#errorTypes.set(key, known)
    if (!known.has(errorType) && known.size >= maxErrorTypes) return 'OTHER'
    known.add(errorType)
    return errorType
  }
}

/** One metric with all its series. */
class Family {
  readonly #name: string
  readonly #head: string
  readonly #values = new Map<string, number>()

  constructor(name: string, type: 'counter' | 'gauge', help: string) {
    this.#name = name
    this.#head = `# HELP ${name} ${help}\n# TYPE ${name} ${type}\n`
  }

  add(labels: Labels, by = 1): void {
    const key = Object.entries(labels)
      .map(([name, value]) => `${name}="${escaped(value)}"`)
      .join(',')
    this.#values.set(key, (this.#values.get(key) ?? 0) + by)
  }

  text(): string {
    if (this.#values.size === 0) return ''
    const lines = [...this.#values].map(([labels, value]) => `${this.#name}{${labels}} ${value}\n`)
    return this.#head + lines.join('')
  }
}

const escapes: Record<string, string> = { '\\': '\\\\', '"': '\\"', '\n': '\\n' }

function escaped(value: string): string {
  return value.toWellFormed().replaceAll(/[\\"\n]/g, (character) => escapes[character]!)
}
