import type { DeadLetter } from '../letter/letter.ts'
import { toMs } from '../letter/time.ts'
import type { RedriveEvent } from '../observer.ts'
import { letterQueueName } from './destination.ts'
import type { LoopEvent } from './events.ts'

export interface Metric {
  name: string
  kind: 'counter' | 'gauge' | 'histogram'
  value: number
  tags: Record<string, string>
}

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
      return handledLetter(event.letter, 'processed', event.durationMs)
    case 'removed':
      return event.letter && isOpen(event.letter) ? handledLetter(event.letter, 'discarded') : []
    case 'changed':
      return changeMetrics(event)
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

/** Decisions on letters that have no event of their own. */
function changeMetrics({ letter, change }: Extract<RedriveEvent, { type: 'changed' }>): Metric[] {
  if (change.action === 'replay' && letter.state === 'resolved')
    return handledLetter(letter, 'replayed')
  if (change.action !== 'review') return []
  if (letter.state === 'archived') return handledLetter(letter, 'discarded')
  return letter.state === 'resolved' ? handledLetter(letter, 'processed') : []
}

/** Letters of other sources are not part of the metrics of mailboxes. */
function handledLetter(letter: DeadLetter, action: string, durationMs?: number): Metric[] {
  const { source, queue, failure, updatedAt, deadLetteredAt } = letter
  if (source.kind !== 'mailbox') return []
  return handlingMetrics({
    dlq: letterQueueName(queue),
    source: source.mailbox,
    action,
    errorType: failure.name,
    ageSeconds: Math.max(0, (toMs(updatedAt) - toMs(deadLetteredAt)) / 1000),
    ...(durationMs === undefined ? {} : { durationMs }),
  })
}

function isOpen({ state }: DeadLetter): boolean {
  return state !== 'resolved' && state !== 'archived'
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
