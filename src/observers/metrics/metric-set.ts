import { Counter, Gauge, Histogram, Registry } from '@prometheus-io/client'
import {
  metricDefinitions,
  metricNames,
  type LabelsOf,
  type MetricDefinition,
  type MetricName,
  type NameOf,
} from './definitions.ts'

type AnyMetric = Counter<string> | Gauge<string> | Histogram<string>

/** All metrics of the table, with their values. */
export class MetricSet {
  readonly registry = new Registry()
  readonly #metrics: ReadonlyMap<MetricName, AnyMetric>

  constructor() {
    this.#metrics = new Map(metricNames.map((name) => [name, this.#create(name)]))
  }

  add<N extends NameOf<'counter'>>(name: N, labels: LabelsOf<N>, by = 1): void {
    ;(this.#metrics.get(name) as Counter<string>).inc(labels, by)
  }

  set<N extends NameOf<'gauge'>>(name: N, labels: LabelsOf<N>, value: number): void {
    ;(this.#metrics.get(name) as Gauge<string>).set(labels, value)
  }

  observe<N extends NameOf<'histogram'>>(name: N, labels: LabelsOf<N>, value: number): void {
    ;(this.#metrics.get(name) as Histogram<string>).observe(labels, value)
  }

  /** Removes all series of a metric. A metric without labels has none until it is set again. */
  clear(name: MetricName): void {
    const metric = this.#metrics.get(name)!
    metric.reset()
    if (metricDefinitions[name].labels.length === 0) metric.remove({})
  }

  #create(name: MetricName): AnyMetric {
    const { type, help, labels, buckets }: MetricDefinition = metricDefinitions[name]
    const config = { name, help, labelNames: [...labels], registers: [this.registry] }
    if (type === 'counter') return new Counter(config)
    if (type === 'gauge') return new Gauge(config)
    return new Histogram({ ...config, ...(buckets ? { buckets: [...buckets] } : {}) })
  }
}
