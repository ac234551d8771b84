export {
  metricsContentType,
  PrometheusMetrics,
  type MetricsOptions,
  type ServedRequest,
} from './metrics.ts'
export { metricDefinitions, type MetricDefinition, type MetricName } from './definitions.ts'
export {
  startMetricsServer,
  type MetricsServer,
  type MetricsServerOptions,
} from './metrics-server.ts'
export { otelMetrics, type MeterLike } from './otel-metrics.ts'
export type { Metric } from './metric.ts'
