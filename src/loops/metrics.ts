import type { RedriveEvent } from '../observer.ts'
import { handledLetterOf, letterQueueName } from '../observers/metrics/handled-letter.ts'
import type { Metric } from '../observers/metrics/metric.ts'
import type { LoopEvent } from './events.ts'

/**
 * The metrics of an event, for mailboxes and dead letter queues. Accepts events of loops, and of a
 * `DeadLetterQueue` that stores dead messages as letters. Most events have none.
 */
export function metricsOf(event: LoopEvent | RedriveEvent): Metric[] {
  switch (event.type) {
    case 'dead-lettered':
      return [
        counter('dlq.messages.sent', {
          source: event.mailbox,
          destination: event.destination,
          errorType: event.errorType,
        }),
      ]
    case 'dead-letter-handled': {
      const { mailbox: dlq, sourceMailbox: source } = event
      return handlingMetrics({ ...event, dlq, source })
    }
    case 'messages-expired':
      return [
        {
          name: 'mailbox.messages.expired',
          kind: 'counter',
          value: event.count,
          tags: { mailbox: event.mailbox },
        },
      ]
    case 'message-deferred':
      return [counter('mailbox.messages.deferred', { mailbox: event.mailbox })]
    case 'loop-breaker': {
      const { mailbox, state } = event
      return [gauge('mailbox.breaker.open', state === 'closed' ? 0 : 1, { mailbox })]
    }
    case 'depth':
      return depthMetrics(event)
    case 'resolved':
    case 'removed':
    case 'changed':
      return letterMetrics(event)
    default:
      return []
  }
}

interface Handling {
  dlq: string
  source: string
  action: string
  errorType: string
  ageSeconds: number
  /** Absent if no handler ran, because a person decided. */
  durationMs?: number
}

function handlingMetrics({
  dlq,
  source,
  action,
  errorType,
  ageSeconds,
  durationMs,
}: Handling): Metric[] {
  const tags = { dlq, source, action }
  return [
    counter('dlq.messages.processed', tags),
    ...(action === 'replayed' || action === 'discarded'
      ? [counter(`dlq.messages.${action}`, tags)]
      : []),
    ...(action === 'alerted' ? [counter('dlq.messages', { source, errorType })] : []),
    histogram('dlq.message.age_seconds', ageSeconds, tags),
    ...(durationMs === undefined
      ? []
      : [histogram('dlq.processing.duration_ms', durationMs, tags)]),
  ]
}

function depthMetrics({
  mailbox: dlq,
  depth,
  oldestAgeSeconds,
}: Extract<LoopEvent, { type: 'depth' }>): Metric[] {
  return [
    gauge('dlq.queue.depth', depth, { dlq }),
    ...(oldestAgeSeconds === undefined
      ? []
      : [gauge('dlq.queue.oldest_age_seconds', oldestAgeSeconds, { dlq })]),
  ]
}

/** Letters of other sources are not part of the metrics of mailboxes. */
function letterMetrics(event: RedriveEvent): Metric[] {
  const handled = handledLetterOf(event)
  if (!handled) return []
  const { letter, ...handling } = handled
  const { source, queue, failure } = letter
  if (source.kind !== 'mailbox') return []
  return handlingMetrics({
    ...handling,
    dlq: letterQueueName(queue),
    source: source.mailbox,
    errorType: failure.name,
  })
}

function counter(name: string, tags: Record<string, string>): Metric {
  return { name, kind: 'counter', value: 1, tags }
}

function gauge(name: string, value: number, tags: Record<string, string>): Metric {
  return { name, kind: 'gauge', value, tags }
}

function histogram(name: string, value: number, tags: Record<string, string>): Metric {
  return { name, kind: 'histogram', value, tags }
}
