/** A value of a metric: see `metricsOf`. */
export interface Metric {
  name: string
  kind: 'counter' | 'gauge' | 'histogram'
  value: number
  tags: Record<string, string>
}
