import type { DeadLetter } from '../letter/letter.ts'
import type { SpanDescription, TraceContext } from '../tracing.ts'

const attributes = {
  'messaging.system.name': 'redrive',
  'messaging.operation.name': 'capture',
  'messaging.operation.type': 'send',
}

/** The span of a capture: within the work that failed, or after the traceparent of its message. */
export function captureSpan({ id, queue, payload, ...letter }: DeadLetter): SpanDescription {
  const { traceparent, headers } = letter
  const tracestate = headers?.['tracestate']
  return {
    name: `capture ${queue}`,
    kind: 'producer',
    attributes: {
      ...attributes,
      'messaging.destination.name': queue,
      'messaging.message.id': id,
      'messaging.message.body.size': payload.size,
    },
    parent: {
      ...(traceparent === undefined ? {} : { traceparent }),
      ...(tracestate === undefined ? {} : { tracestate }),
    },
  }
}

/** The span of many captures in one write. */
export function chunkSpan(letters: readonly DeadLetter[]): SpanDescription {
  const [queue, ...others] = new Set(letters.map((letter) => letter.queue))
  const isOneQueue = queue !== undefined && others.length === 0
  return {
    name: isOneQueue ? `capture ${queue}` : 'capture',
    kind: 'producer',
    attributes: {
      ...attributes,
      'messaging.destination.name': isOneQueue ? queue : undefined,
      'messaging.batch.message_count': letters.length,
    },
  }
}

/** Stores the position of the span in a letter, so that its runs and replays can link to it. */
export function joinTrace(letter: DeadLetter, { traceparent, tracestate }: TraceContext): void {
  letter.traceparent = traceparent
  if (tracestate !== undefined) letter.headers = { ...letter.headers, tracestate }
}
