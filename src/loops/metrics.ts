import type { LoopEvent } from './events.ts'

export interface Metric {
  name: string
  kind: 'counter' | 'gauge' | 'histogram'
  value: number
  tags: Record<string, string>
}

/** What an event adds to the metrics of dead letter queues. Nothing, for most. */
export function metricsOf(event: LoopEvent): Metric[] {
  switch (event.type) {
    case 'dead-lettered':
      return [
        counter('sent', {
          source: event.mailbox,
          destination: event.destination,
          errorType: event.errorType,
        }),
      ]
    case 'dead-letter-handled': {
      const tags = { dlq: event.mailbox, source: event.sourceMailbox, action: event.action }
      const { action, ageSeconds, durationMs } = event
      return [
        counter('processed', tags),
        ...(action === 'replayed' || action === 'discarded' ? [counter(action, tags)] : []),
        { name: 'dlq.message.age_seconds', kind: 'histogram', value: ageSeconds, tags },
        { name: 'dlq.processing.duration_ms', kind: 'histogram', value: durationMs, tags },
      ]
    }
    case 'depth':
      return [
        {
          name: 'dlq.queue.depth',
          kind: 'gauge',
          value: event.depth,
          tags: { dlq: event.mailbox },
        },
      ]
    default:
      return []
  }
}

function counter(what: string, tags: Record<string, string>): Metric {
  return { name: `dlq.messages.${what}`, kind: 'counter', value: 1, tags }
}
