import type { DeadLetter } from '../letter/letter.ts'
import {
  errorTypeOf,
  inSpan,
  traceOf,
  type SpanDescription,
  type TraceContext,
} from '../tracing.ts'

const attributes = {
  'messaging.system.name': 'redrive',
  'messaging.operation.name': 'capture',
  'messaging.operation.type': 'send',
}

/** The span of a capture: within the work that failed, or after the traceparent of its message. */
export function captureSpan({ id, queue, payload, ...letter }: DeadLetter): SpanDescription {
  return {
    name: `capture ${queue}`,
    kind: 'producer',
    attributes: {
      ...attributes,
      'messaging.destination.name': queue,
      'messaging.message.id': id,
      'messaging.message.body.size': payload.size,
    },
    parent: traceOf(letter) ?? {},
  }
}

/** The span of many captures in one write. */
function chunkSpan(letters: readonly DeadLetter[]): SpanDescription {
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

/**
 * Stores letters in one span, which fails if one of them cannot be stored. Letters with a trace of
 * their own stay in it.
 */
export function inChunkSpan(
  letters: readonly DeadLetter[],
  store: () => Promise<PromiseSettledResult<DeadLetter>[]>,
): Promise<PromiseSettledResult<DeadLetter>[]> {
  return inSpan(
    () => chunkSpan(letters),
    async (span) => {
      if (!span) return store()
      for (const letter of letters) if (letter.traceparent === undefined) joinTrace(letter, span)
      const outcomes = await store()
      const failed = outcomes.find((one) => one.status === 'rejected')
      if (failed) span.fail(errorTypeOf(failed.reason))
      return outcomes
    },
  )
}
