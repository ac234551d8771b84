/** One metric of `GET /metrics`. The registry, the reference page and the tests use this table. */
export interface MetricDefinition {
  type: 'counter' | 'gauge' | 'histogram'
  help: string
  labels: readonly string[]
  buckets?: readonly number[]
  /** `store`: read at each scrape, the same in every process. `process`: of this process alone. */
  of: 'store' | 'process'
  /** The name of the same metric in events of loops (`metricsOf`) and in OpenTelemetry. */
  dotted?: string
}

/** From a millisecond to ten minutes. */
const durations = [0.001, 0.005, 0.025, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300, 600]
/** From a fifth of a millisecond to thirty seconds. */
const shortDurations = [0.0002, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 5, 30]
/** From a minute to thirty days. */
const ages = [60, 300, 900, 3600, 14_400, 43_200, 86_400, 259_200, 604_800, 2_592_000]
const batchSizes = [1, 2, 5, 10, 25, 50, 100, 250, 500, 1000]

const handled = ['dlq', 'source', 'action'] as const

export const metricDefinitions = {
  dlq_messages_sent_total: {
    type: 'counter',
    help: 'Messages and failures that were stored as dead.',
    labels: ['source', 'destination', 'error_type'],
    of: 'process',
    dotted: 'dlq.messages.sent',
  },
  dlq_messages_processed_total: {
    type: 'counter',
    help: 'Dead messages that were handled, by what was done with them.',
    labels: handled,
    of: 'process',
    dotted: 'dlq.messages.processed',
  },
  dlq_messages_replayed_total: {
    type: 'counter',
    help: 'Dead messages that were published to their source again.',
    labels: handled,
    of: 'process',
    dotted: 'dlq.messages.replayed',
  },
  dlq_messages_discarded_total: {
    type: 'counter',
    help: 'Dead messages that were removed without being processed.',
    labels: handled,
    of: 'process',
    dotted: 'dlq.messages.discarded',
  },
  dlq_queue_depth: {
    type: 'gauge',
    help: 'Dead messages that nobody has handled yet.',
    labels: ['dlq'],
    of: 'store',
    dotted: 'dlq.queue.depth',
  },
  dlq_message_age_seconds: {
    type: 'histogram',
    help: 'Age of dead messages when they were handled.',
    labels: handled,
    buckets: ages,
    of: 'process',
    dotted: 'dlq.message.age_seconds',
  },
  dlq_processing_duration_seconds: {
    type: 'histogram',
    help: 'How long handling a dead message took.',
    labels: handled,
    buckets: durations,
    of: 'process',
    dotted: 'dlq.processing.duration_ms',
  },
  redrive_letters: {
    type: 'gauge',
    help: 'Stored letters by queue and state.',
    labels: ['queue', 'state'],
    of: 'store',
  },
  redrive_oldest_letter_age_seconds: {
    type: 'gauge',
    help: 'Age of the oldest letter of each open state. Absent if there is none.',
    labels: ['state'],
    of: 'store',
  },
  redrive_actions_total: {
    type: 'counter',
    help: 'What happened to letters since the store was created, by all processes.',
    labels: ['queue', 'action'],
    of: 'store',
  },
  redrive_bulk_actions: {
    type: 'gauge',
    help: 'Bulk actions that have begun and have not ended, at most 100.',
    labels: ['action', 'state'],
    of: 'store',
  },
  redrive_bulk_letters: {
    type: 'gauge',
    help: 'Letters of these bulk actions by outcome. Pending: not acted on yet.',
    labels: ['action', 'outcome'],
    of: 'store',
  },
  redrive_alerts_raised: {
    type: 'gauge',
    help: 'Alerts of all processes that are raised now.',
    labels: ['alert', 'severity'],
    of: 'store',
  },
  redrive_paused_queues: {
    type: 'gauge',
    help: 'Queues that a person has paused.',
    labels: [],
    of: 'store',
  },
  redrive_store_up: {
    type: 'gauge',
    help: '1 if the store is reachable and can write, otherwise 0.',
    labels: [],
    of: 'store',
  },
  redrive_spool_letters: {
    type: 'gauge',
    help: 'Letters that wait in the spool of this process for the store.',
    labels: [],
    of: 'process',
  },
  redrive_spool_bytes: {
    type: 'gauge',
    help: 'Size of the letters that wait in the spool.',
    labels: [],
    of: 'process',
  },
  redrive_spool_oldest_age_seconds: {
    type: 'gauge',
    help: 'Age of the oldest letter in the spool. Absent if it is empty.',
    labels: [],
    of: 'process',
  },
  redrive_spool_files_set_aside: {
    type: 'gauge',
    help: 'Files of the spool that cannot be delivered.',
    labels: ['what'],
    of: 'process',
  },
  redrive_captures_total: {
    type: 'counter',
    help: 'Failures that this process captured. Duplicate: of a stored letter. Full: rejected.',
    labels: ['queue', 'outcome'],
    of: 'process',
  },
  redrive_runs_total: {
    type: 'counter',
    help: 'Runs of letters in this process by outcome.',
    labels: ['queue', 'outcome'],
    of: 'process',
  },
  redrive_run_duration_seconds: {
    type: 'histogram',
    help: 'How long runs of letters took.',
    labels: ['queue'],
    buckets: durations,
    of: 'process',
  },
  redrive_runs_active: {
    type: 'gauge',
    help: 'Handlers that run in this process now.',
    labels: [],
    of: 'process',
  },
  redrive_handlers_stuck_total: {
    type: 'counter',
    help: 'Handlers that timed out and ignored their signal.',
    labels: ['queue'],
    of: 'process',
  },
  redrive_breaker_state: {
    type: 'gauge',
    help: '1 for the present state of a circuit breaker. Absent until it changes.',
    labels: ['kind', 'name', 'state'],
    of: 'process',
  },
  redrive_spool_drained_total: {
    type: 'counter',
    help: 'Letters that were delivered from the spool to the store.',
    labels: [],
    of: 'process',
  },
  redrive_alerts_total: {
    type: 'counter',
    help: 'Alerts that this process reported as raised or cleared.',
    labels: ['severity', 'state'],
    of: 'process',
  },
  redrive_errors_total: {
    type: 'counter',
    help: 'Errors of Redrive itself, such as an unreachable store. The log has their text.',
    labels: [],
    of: 'process',
  },
  redrive_http_requests_total: {
    type: 'counter',
    help: 'HTTP requests by endpoint and status. The endpoint is none for an unknown route.',
    labels: ['endpoint', 'method', 'status'],
    of: 'process',
  },
  redrive_http_request_duration_seconds: {
    type: 'histogram',
    help: 'How long HTTP requests took, to the end of the response.',
    labels: ['endpoint'],
    buckets: shortDurations,
    of: 'process',
  },
  redrive_store_call_duration_seconds: {
    type: 'histogram',
    help: 'How long calls of the store took.',
    labels: ['method'],
    buckets: shortDurations,
    of: 'process',
  },
  redrive_store_call_items: {
    type: 'histogram',
    help: 'Items in one call of the store: letters, changes or ids.',
    labels: ['method'],
    buckets: batchSizes,
    of: 'process',
  },
  redrive_store_call_errors_total: {
    type: 'counter',
    help: 'Calls of the store that failed, by error code.',
    labels: ['method', 'code'],
    of: 'process',
  },
  redrive_scrape_errors_total: {
    type: 'counter',
    help: 'Scrapes that could not read the store. They leave out what is read from it.',
    labels: [],
    of: 'process',
  },
  redrive_build_info: {
    type: 'gauge',
    help: 'Always 1. The label has the version.',
    labels: ['version'],
    of: 'process',
  },
} as const satisfies { [name: string]: MetricDefinition }

export type MetricName = keyof typeof metricDefinitions

/** The names of all metrics of one type. */
export type NameOf<Type extends MetricDefinition['type']> = {
  [N in MetricName]: (typeof metricDefinitions)[N]['type'] extends Type ? N : never
}[MetricName]

/** A value for each label of a metric. */
export type LabelsOf<N extends MetricName> = {
  [L in (typeof metricDefinitions)[N]['labels'][number]]: string
}

export const metricNames = Object.keys(metricDefinitions) as MetricName[]
