import type { IncomingMessage } from 'node:http'
import type { FastifyInstance, FastifyRequest } from 'fastify'
import type { Clock } from '../clock/clock.ts'
import type { ServedRequest } from '../observers/metrics/metrics.ts'
import { startSpan, type OpenSpan } from '../tracing.ts'

/** A request that was answered, as logs and metrics see it. It has no part of the request. */
export interface TrackedRequest extends ServedRequest {
  requestId: string
  /** The path of the endpoint, with the names of its keys: `/api/letters/{id}`. */
  route: string
  /** Name of the caller, if there is one. */
  caller?: string
  /** Id of the trace that the request belongs to, if the server traces. */
  traceparent?: string
}

export interface TrackingOptions {
  clock: Clock
  /** What is known about the sender of a request. */
  senderOf: (
    request: FastifyRequest,
  ) => { endpoint: string; caller?: { name: string } | undefined } | undefined
  onAnswer: (request: TrackedRequest) => void
}

interface Begun {
  startedMs: number
  span: OpenSpan | undefined
}

const begun = new WeakMap<FastifyRequest, Begun>()
const givenId = /^[\w.:-]{1,100}$/

/** The id of a request: the `x-request-id` of a proxy, or a new one. */
export function requestIdOf(clock: Clock): (request: IncomingMessage) => string {
  return ({ headers }) => {
    const given = headers['x-request-id']
    return typeof given === 'string' && givenId.test(given) ? given : clock.id()
  }
}

/** Reports every request when it was answered. A request continues the trace of its traceparent. */
export function trackRequests(app: FastifyInstance, options: TrackingOptions): void {
  const { clock } = options
  app.addHook('onRequest', async (request) => {
    begun.set(request, { startedMs: clock.mono(), span: startSpan(() => describe(request)) })
  })
  app.addHook('onSend', async (request, reply) => {
    reply.header('x-request-id', request.id)
  })
  app.addHook('onResponse', async (request, reply) => {
    const { startedMs = clock.mono(), span } = begun.get(request) ?? {}
    const sender = options.senderOf(request)
    const { statusCode: status } = reply
    if (span) {
      span.set('http.response.status_code', status)
      if (status >= 500) span.fail(String(status))
      span.end()
    }
    options.onAnswer({
      requestId: request.id,
      endpoint: sender?.endpoint ?? (request.is404 ? 'none' : 'other'),
      method: request.method,
      route: routeOf(request),
      status,
      durationMs: clock.mono() - startedMs,
      ...(sender?.caller ? { caller: sender.caller.name } : {}),
      ...(span ? { traceparent: span.traceparent } : {}),
    })
  })
}

/** Does work for a request within its span. */
export function inRequest<T>(request: FastifyRequest, work: () => T): T {
  const span = begun.get(request)?.span
  return span ? span.run(work) : work()
}

function describe(request: FastifyRequest): ReturnType<Parameters<typeof startSpan>[0]> {
  const { method, headers } = request
  const route = routeOf(request)
  const { traceparent, tracestate } = headers
  return {
    name: request.is404 ? method : `${method} ${route}`,
    kind: 'server',
    attributes: {
      'http.request.method': method,
      'http.route': request.is404 ? undefined : route,
      'url.scheme': 'http',
    },
    parent: {
      ...(typeof traceparent === 'string' ? { traceparent } : {}),
      ...(typeof tracestate === 'string' ? { tracestate } : {}),
    },
  }
}

function routeOf({ routeOptions, is404 }: FastifyRequest): string {
  if (is404) return 'none'
  return (routeOptions.url ?? '').replaceAll(/:(\w+)/g, '{$1}')
}
