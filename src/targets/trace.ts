import type { DeadLetter } from '../letter/letter.ts'
import type { Mailbox } from '../mailbox.ts'
import { activeTrace, traceOf, type SpanDescription, type TraceContext } from '../tracing.ts'

/** The span of a replay, which is linked to that of the capture. */
export function replaySpan(letter: DeadLetter, to?: string | Mailbox): SpanDescription {
  const { id, queue, source, payload, replays } = letter
  const named = typeof to === 'object' ? to?.name : to
  const destination = named ?? (source.kind === 'mailbox' ? source.mailbox : queue)
  return {
    name: `replay ${destination}`,
    kind: 'producer',
    attributes: {
      'messaging.system.name': 'redrive',
      'messaging.operation.name': 'replay',
      'messaging.operation.type': 'send',
      'messaging.destination.name': destination,
      'messaging.message.id': id,
      'messaging.message.body.size': payload.size,
      'redrive.replay': replays + 1,
    },
    link: traceOf(letter) ?? {},
  }
}

/**
 * The letter with headers that continue the trace of its replay, or that of its capture. A message
 * of another system gets no header that it did not have: SQS allows ten.
 */
export function carryTrace(
  letter: DeadLetter,
  isForeign: boolean,
  active?: TraceContext,
): DeadLetter {
  const trace = active ?? traceOf(letter)
  const { headers = {} } = letter
  const had = Object.keys(headers).filter((name) => /^(traceparent|tracestate)$/i.test(name))
  if (!trace || (isForeign && had.length === 0)) return letter
  const others = Object.entries(headers).filter(([name]) => !had.includes(name))
  const { traceparent, tracestate } = trace
  return {
    ...letter,
    headers: {
      ...Object.fromEntries(others),
      traceparent,
      ...(tracestate === undefined ? {} : { tracestate }),
    },
  }
}

/** Headers that continue the trace of the active span, or else that of the capture. */
export function traceHeadersOf(letter: DeadLetter): Partial<TraceContext> {
  return activeTrace() ?? traceOf(letter) ?? {}
}
