import type * as OpenTelemetry from '@opentelemetry/api'
import { createRequire } from 'node:module'

/** The position of a span in its trace, as W3C headers. */
export interface TraceContext {
  traceparent: string
  tracestate?: string
}

export interface SpanDescription {
  name: string
  kind: 'internal' | 'server' | 'client' | 'producer' | 'consumer'
  attributes: { [name: string]: string | number | undefined }
  /** The span that this one continues, if no span is active. Values from outside may be invalid. */
  parent?: Partial<TraceContext>
  /** A span of another trace that caused this one. */
  link?: Partial<TraceContext>
  /** True: the span begins a trace, whatever is active. */
  isRoot?: boolean
}

/** A span that has not ended. */
export interface OpenSpan extends TraceContext {
  set(name: string, value: string | number): void
  /** Marks the span as failed. `type` is a code or the name of an error, never its message. */
  fail(type: string): void
  /** Calls `work` with this span as the active one. */
  run<T>(work: () => T): T
  end(): void
}

type Api = typeof OpenTelemetry

let loaded: { api: Api | undefined } | undefined

/** The optional package. It is loaded when it is first needed. */
function apiOf(): Api | undefined {
  if (loaded) return loaded.api
  try {
    loaded = { api: createRequire(import.meta.url)('@opentelemetry/api') as Api }
  } catch {
    loaded = { api: undefined }
  }
  return loaded.api
}

/** The tracer of the application. Undefined: it has registered no OpenTelemetry SDK. */
function tracerOf(api: Api): OpenTelemetry.Tracer | undefined {
  const provider = api.trace.getTracerProvider()
  return provider instanceof api.ProxyTracerProvider
    ? provider.getDelegateTracer('redrive')
    : provider.getTracer('redrive')
}

/** Starts a span, if the application traces. Otherwise `describe` is not called. */
export function startSpan(describe: () => SpanDescription): OpenSpan | undefined {
  const api = apiOf()
  const tracer = api && tracerOf(api)
  if (!tracer) return undefined
  const { context, trace, SpanKind, SpanStatusCode, ROOT_CONTEXT } = api
  const { name, kind, attributes, parent, link, isRoot = false } = describe()
  const active = isRoot ? ROOT_CONTEXT : context.active()
  const remote = trace.getSpan(active) ? undefined : spanContextOf(api, parent)
  const within = remote ? trace.setSpanContext(active, remote) : active
  const linked = spanContextOf(api, link)
  const span = tracer.startSpan(
    name,
    {
      kind: SpanKind[kind.toUpperCase() as Uppercase<typeof kind>],
      attributes,
      ...(linked ? { links: [{ context: linked }] } : {}),
    },
    within,
  )
  const inside = trace.setSpan(within, span)
  return {
    ...traceContextOf(span.spanContext()),
    set: (key, value) => void span.setAttribute(key, value),
    fail: (type) => {
      span.setAttribute('error.type', type)
      span.setStatus({ code: SpanStatusCode.ERROR })
    },
    run: (work) => context.with(inside, work),
    end: () => span.end(),
  }
}

/** Does work in a span, if the application traces. The span ends with the work. */
export async function inSpan<T>(
  describe: () => SpanDescription,
  work: (span: OpenSpan | undefined) => T | Promise<T>,
): Promise<T> {
  const span = startSpan(describe)
  if (!span) return work(undefined)
  try {
    return await span.run(() => work(span))
  } catch (error) {
    span.fail(errorTypeOf(error))
    throw error
  } finally {
    span.end()
  }
}

/** Whether a span is active, so that another one within it has a meaning. */
export function isTracing(): boolean {
  const api = apiOf()
  return api?.trace.getActiveSpan() !== undefined
}

/** The position of the active span. */
export function activeTrace(): TraceContext | undefined {
  const api = apiOf()
  const position = api?.trace.getActiveSpan()?.spanContext()
  return api && position && api.isSpanContextValid(position) ? traceContextOf(position) : undefined
}

/** The code of an error, or else its name. Messages may contain data. */
export function errorTypeOf(error: unknown): string {
  const { code, name } = (error ?? {}) as { code?: unknown; name?: unknown }
  return typeof code === 'string' ? code : typeof name === 'string' ? name : typeof error
}

const form = /^(?!ff)[0-9a-f]{2}-((?!0{32})[0-9a-f]{32})-((?!0{16})[0-9a-f]{16})-([0-9a-f]{2})/

/** The trace id of a traceparent, if it is valid. */
export function traceIdOf(traceparent: string | undefined): string | undefined {
  return form.exec(traceparent ?? '')?.[1]
}

/**
 * The trace of a letter: its traceparent, and the tracestate of its headers. Values come from
 * outside: an invalid one counts as absent.
 */
export function traceOf({ traceparent, headers }: Traced): TraceContext | undefined {
  if (traceparent === undefined || !/^[0-9a-f-]{55}$/.test(traceparent)) return undefined
  if (traceIdOf(traceparent) === undefined) return undefined
  const tracestate = headers?.['tracestate']
  const isPlain = tracestate !== undefined && /^[ -~]{1,512}$/.test(tracestate)
  return isPlain ? { traceparent, tracestate } : { traceparent }
}

interface Traced {
  traceparent?: string
  headers?: Readonly<Record<string, string>>
}

function spanContextOf(
  api: Api,
  { traceparent, tracestate }: Partial<TraceContext> = {},
): OpenTelemetry.SpanContext | undefined {
  const [, traceId, spanId, flags] = form.exec(traceparent ?? '') ?? []
  if (traceId === undefined || spanId === undefined || flags === undefined) return undefined
  return {
    traceId,
    spanId,
    traceFlags: Number.parseInt(flags, 16),
    isRemote: true,
    ...(tracestate === undefined ? {} : { traceState: api.createTraceState(tracestate) }),
  }
}

function traceContextOf(context: OpenTelemetry.SpanContext): TraceContext {
  const { traceId, spanId, traceFlags, traceState } = context
  const tracestate = traceState?.serialize()
  return {
    traceparent: `00-${traceId}-${spanId}-${traceFlags.toString(16).padStart(2, '0')}`,
    ...(tracestate ? { tracestate } : {}),
  }
}
