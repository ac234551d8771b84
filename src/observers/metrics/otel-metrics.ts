import type { Metric } from './metric.ts'

/** The part of a `Meter` of OpenTelemetry that is used. */
export interface MeterLike {
  createCounter(name: string): { add(value: number, attributes?: Metric['tags']): void }
  createGauge(name: string): { record(value: number, attributes?: Metric['tags']): void }
  createHistogram(name: string): { record(value: number, attributes?: Metric['tags']): void }
}

/**
 * Returns a function that records metrics with a meter of OpenTelemetry, under their dotted names:
 * `onEvent: (event) => record(metricsOf(event))`.
 */
export function otelMetrics(meter: MeterLike): (metrics: readonly Metric[]) => void {
  const instruments = new Map<string, (value: number, tags: Metric['tags']) => void>()
  const create = ({ name, kind }: Metric): ((value: number, tags: Metric['tags']) => void) => {
    if (kind === 'counter') {
      const counter = meter.createCounter(name)
      return (value, tags) => counter.add(value, tags)
    }
    const instrument = kind === 'gauge' ? meter.createGauge(name) : meter.createHistogram(name)
    return (value, tags) => instrument.record(value, tags)
  }
  return (metrics) => {
    for (const metric of metrics) {
      const record = instruments.get(metric.name) ?? create(metric)
      instruments.set(metric.name, record)
      record(metric.value, metric.tags)
    }
  }
}
