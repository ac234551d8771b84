import { collectDefaultMetrics, Registry } from '@prometheus-io/client'
import { checkKeys, keysOf } from '../../check/keys.ts'
import { systemClock, type Clock } from '../../clock/clock.ts'
import type { RedriveEvent } from '../../observer.ts'
import type { StoreCall } from '../../store.ts'
import { EventCounter } from './count-event.ts'
import { metricDefinitions, metricNames, type MetricName } from './definitions.ts'
import { LabelValues } from './label-values.ts'
import type { Metric } from './metric.ts'
import { MetricSet } from './metric-set.ts'
import {
  clearReadValues,
  readHealth,
  readStoreValues,
  setHealth,
  setStoreValues,
  type ScrapedHealth,
  type ScrapedQueue,
  type StoreValues,
} from './store-values.ts'

/** The Content-Type of `text()`. */
export const metricsContentType = Registry.PROMETHEUS_CONTENT_TYPE

/** An HTTP request that was answered. */
export interface ServedRequest {
  /** The name of the endpoint. `none`: there is no such route. */
  endpoint: string
  method: string
  status: number
  durationMs: number
}

export interface MetricsOptions {
  /** True: CPU, memory, event loop and garbage collection of the process. Default: true. */
  process?: boolean
  /** The value of the label of `redrive_build_info`. */
  version?: string
  /** Called when the store could not be read. */
  onError?: (error: unknown) => void
  clock?: Clock
}

const optionKeys = keysOf<MetricsOptions>({
  process: true,
  version: true,
  onError: true,
  clock: true,
})

const nameOfDotted: ReadonlyMap<string, MetricName> = new Map(
  metricNames.flatMap((name) => {
    const definition = metricDefinitions[name]
    return 'dotted' in definition ? [[definition.dotted, name] as const] : []
  }),
)

/** More error types, or actions of a handler, than these share one series. */
const maxErrorTypes = 50
const maxActions = 20
/** Metrics of the client library that break the rules of Prometheus for names. */
const misnamed = [
  'nodejs_active_handles_total',
  'nodejs_active_requests_total',
  'nodejs_active_resources_total',
  'nodejs_eventloop_utilization_histogram',
  'nodejs_eventloop_utilization_summary',
]
/** What the name of an error class looks like. Anything else may contain data. */
const errorName = /^[\w.$-]{1,60}$/

/**
 * The metrics of a process in the format of Prometheus. Counters of the process start at 0 and come
 * from events; values of the store are read when somebody asks for them, and are the same in every
 * process. No label contains an id, a tenant or a part of a payload.
 */
export class PrometheusMetrics {
  readonly #set = new MetricSet()
  readonly #counter: EventCounter
  readonly #errorTypes = new LabelValues(maxErrorTypes)
  readonly #actions = new LabelValues(maxActions)
  readonly #depths = new Map<string, number>()
  readonly #sources: (() => string | Promise<string>)[] = []
  readonly #clock: Clock
  readonly #onError: (error: unknown) => void
  #queue: ScrapedQueue | undefined
  #reading: Promise<string> | undefined

  constructor(options: MetricsOptions = {}) {
    checkKeys('metrics options', options, optionKeys)
    const { process = true, version, onError, clock = systemClock } = options
    this.#clock = clock
    this.#counter = new EventCounter(this.#set, clock)
    this.#onError = onError ?? (() => {})
    if (version !== undefined) this.#set.set('redrive_build_info', { version }, 1)
    if (process) this.#addProcess()
  }

  /** Adds the values of the store of a queue. */
  watch(queue: ScrapedQueue): this {
    this.#queue = queue
    return this
  }

  /** Adds metrics in the format of Prometheus, such as those of a pipeline. */
  include(text: () => string | Promise<string>): this {
    this.#sources.push(text)
    return this
  }

  /** An observer for the option `observers`, or for `dlq.on('*', …)`. */
  readonly observe = (event: RedriveEvent): void => this.#counter.count(event)

  /** For the option `onStoreCall`. */
  readonly countStoreCall = ({ method, durationMs, items, code }: StoreCall): void => {
    this.#set.observe('redrive_store_call_duration_seconds', { method }, durationMs / 1000)
    if (items !== undefined) this.#set.observe('redrive_store_call_items', { method }, items)
    if (code !== undefined) this.#set.add('redrive_store_call_errors_total', { method, code })
  }

  countRequest({ endpoint, method, status, durationMs }: ServedRequest): void {
    const labels = { endpoint, method, status: String(status) }
    this.#set.add('redrive_http_requests_total', labels)
    const seconds = durationMs / 1000
    this.#set.observe('redrive_http_request_duration_seconds', { endpoint }, seconds)
  }

  /**
   * Counts the metrics of an event of a loop, in its option `onEvent`: `(event) =>
   * metrics.record(metricsOf(event))`. Metrics that are not in the table are left out.
   */
  record(metrics: readonly Metric[]): void {
    for (const metric of metrics) this.#record(metric)
  }

  /** All metrics. Calls that overlap share one read of the store. */
  text(): Promise<string> {
    this.#reading ??= this.#scrape().finally(() => (this.#reading = undefined))
    return this.#reading
  }

  #addProcess(): void {
    const { registry } = this.#set
    collectDefaultMetrics({ register: registry })
    for (const name of misnamed) registry.removeSingleMetric(name)
  }

  async #scrape(): Promise<string> {
    const read = this.#queue && (await this.#read(this.#queue))
    clearReadValues(this.#set)
    // From here to the text, nothing waits: a scrape sees all values of one read.
    if (read) {
      const { health, values } = read
      const nowMs = this.#clock.now()
      this.#set.set('redrive_store_up', {}, values && health?.ok ? 1 : 0)
      if (health) setHealth(this.#set, health, nowMs)
      const labels = { queues: this.#counter.queues, alerts: this.#counter.alerts }
      if (values) setStoreValues(this.#set, values, health, labels, nowMs)
    }
    for (const [dlq, depth] of this.#depths) this.#set.set('dlq_queue_depth', { dlq }, depth)
    const own = await this.#set.registry.metrics()
    const others = await Promise.all(this.#sources.map((source) => this.#textOf(source)))
    return [own, ...others].join('')
  }

  /** The health of the process can be read while the store cannot. */
  async #read(
    queue: ScrapedQueue,
  ): Promise<{ health: ScrapedHealth | undefined; values: StoreValues | undefined }> {
    const [health, values] = await Promise.allSettled([
      readHealth(queue, this.#clock),
      readStoreValues(queue, this.#clock),
    ])
    const failed = [values, health].find(({ status }) => status === 'rejected')
    if (failed?.status === 'rejected') this.#reportError(failed.reason)
    return {
      health: health.status === 'fulfilled' ? health.value : undefined,
      values: values.status === 'fulfilled' ? values.value : undefined,
    }
  }

  async #textOf(source: () => string | Promise<string>): Promise<string> {
    try {
      const text = await source()
      return text === '' || text.endsWith('\n') ? text : `${text}\n`
    } catch (error) {
      this.#reportError(error)
      return ''
    }
  }

  #reportError(error: unknown): void {
    this.#set.add('redrive_scrape_errors_total', {})
    this.#onError(error)
  }

  #record({ name: dotted, value, tags }: Metric): void {
    const name = nameOfDotted.get(dotted)
    if (name === undefined) return
    const source = this.#counter.sources.of(tags['source'] ?? '')
    const dlq = this.#counter.sources.of(tags['dlq'] ?? '')
    const handled = { dlq, source, action: this.#actions.of(tags['action'] ?? '') }
    switch (name) {
      case 'dlq_messages_sent_total': {
        const destination = this.#counter.sources.of(tags['destination'] ?? '')
        const error_type = this.#errorType(tags['errorType'] ?? '')
        return this.#set.add(name, { source, destination, error_type }, value)
      }
      case 'dlq_messages_processed_total':
      case 'dlq_messages_replayed_total':
      case 'dlq_messages_discarded_total':
        return this.#set.add(name, handled, value)
      case 'dlq_message_age_seconds':
        return this.#set.observe(name, handled, value)
      case 'dlq_processing_duration_seconds':
        return this.#set.observe(name, handled, value / 1000)
      case 'dlq_queue_depth':
        this.#depths.set(dlq, value)
        return
      default:
    }
  }

  #errorType(name: string): string {
    return this.#errorTypes.of(errorName.test(name) ? name : 'other')
  }
}
