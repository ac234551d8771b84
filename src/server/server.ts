import Fastify, { type FastifyInstance, type FastifyReply, type FastifyRequest } from 'fastify'
import { endpointNames, endpointOf, type EndpointName } from '../api/endpoints.ts'
import { responseType } from '../api/endpoint.ts'
import { openApiDocument } from '../api/openapi.ts'
import { problemType } from '../api/problem.ts'
import type { Clock } from '../clock/clock.ts'
import { RedriveError } from '../errors.ts'
import type { DeadLetterQueue } from '../queue/queue.ts'
import { bodyOf, isLines, linesOf, readBodies } from './body.ts'
import { checkAccess, isSameCaller, type Caller } from './caller.ts'
import { checkBounds } from './check-bounds.ts'
import { ifMatchFailed, matchesEtag, readIfMatch } from './conditions.ts'
import { recordDenial, type DenialContext } from './denials.ts'
import { Feed } from './feed/feed.ts'
import { auditHandlers } from './handlers/audit.ts'
import { bulkHandlers } from './handlers/bulk.ts'
import { captureHandlers } from './handlers/capture.ts'
import { eventHandlers } from './handlers/events.ts'
import { groupHandlers } from './handlers/groups.ts'
import type { Context, Handlers } from './handlers/handler.ts'
import { letterHandlers } from './handlers/letters.ts'
import { queueHandlers } from './handlers/queues.ts'
import { reportHandlers } from './handlers/reports.ts'
import { systemHandlers } from './handlers/system.ts'
import { tokenHandlers } from './handlers/tokens.ts'
import { transferHandlers } from './handlers/transfer.ts'
import { workerHandlers } from './handlers/workers.ts'
import type { Idempotency } from './idempotency.ts'
import { readInput } from './input.ts'
import {
  maxBodyBytes,
  maxParamLength,
  maxUnreadBytes,
  maxUnreadEventBytes,
  requestTimeoutMs,
} from './limits.ts'
import { isLetterView, once, rejectKey } from './once.ts'
import { toProblem } from './problems.ts'
import { sendStream, signalOf } from './stream.ts'
import type { Tokens } from './tokens.ts'

export interface ServerOptions {
  dlq: DeadLetterQueue
  tokens: Tokens
  /** Keeps the responses of requests with an Idempotency-Key. */
  idempotency: Idempotency
  clock: Clock
  /** The caller of a token that is not in the store. */
  identify?: (token: string) => Caller | undefined
  version: string
  /** Aborts when the server is about to close: it is not ready any more, and streams end. */
  stopping?: AbortSignal
  /** Reports an unexpected error. */
  onError: (error: unknown, route: string) => void
}

const handlers: Handlers = {
  ...letterHandlers,
  ...captureHandlers,
  ...transferHandlers,
  ...groupHandlers,
  ...bulkHandlers,
  ...queueHandlers,
  ...reportHandlers,
  ...tokenHandlers,
  ...auditHandlers,
  ...eventHandlers,
  ...workerHandlers,
  ...systemHandlers,
}
type AnyHandler = (input: unknown, context: Context) => unknown

/** The HTTP server over the table of endpoints. It listens after `listen`. */
export function createServer(options: ServerOptions): FastifyInstance {
  const app = Fastify({
    bodyLimit: maxBodyBytes,
    requestTimeout: requestTimeoutMs,
    routerOptions: { maxParamLength },
    forceCloseConnections: 'idle',
    frameworkErrors: (error, _request, reply) => void sendProblem(reply, error),
  })
  app.addHook('onSend', async (_request, reply) => addSecurityHeaders(reply))
  app.setErrorHandler((error, request, reply) => {
    const problem = sendProblem(reply, ifMatchFailed(error, request.headers))
    if (problem.status >= 500) options.onError(error, routeOf(request))
    return reply
  })
  app.setNotFoundHandler((request, reply) => {
    sendProblem(
      reply,
      new RedriveError('ROUTE_NOT_FOUND', `there is no ${request.method} ${pathOf(request)}`),
    )
    return reply
  })
  readBodies(app, options.clock)
  const feed = createFeed(app, options)
  for (const names of endpointsByRoute()) addRoute(app, names, { ...options, feed })
  const document = openApiDocument(options.version)
  app.get('/api/openapi.json', () => document)
  return app
}

/** The feed ends its streams before the server closes, which would wait for them. */
function createFeed(app: FastifyInstance, { dlq, clock, stopping, onError }: ServerOptions): Feed {
  const feed = new Feed({ dlq, clock, onError: (error) => onError(error, 'live feed') })
  stopping?.addEventListener('abort', () => void feed.close(), { once: true })
  app.addHook('preClose', () => feed.close())
  return feed
}

type RouteOptions = ServerOptions & { feed: Feed }

/** Endpoints with the same method and path differ in the form of their body. */
function endpointsByRoute(): EndpointName[][] {
  return Object.values(
    Object.groupBy(endpointNames, (name) => `${endpointOf(name).method} ${endpointOf(name).path}`),
  ) as EndpointName[][]
}

function addRoute(app: FastifyInstance, names: EndpointName[], options: RouteOptions): void {
  const { method, path, stream } = endpointOf(names[0]!)
  const nameFor = (request: FastifyRequest): EndpointName =>
    names.find((name) => isLines(request.headers) === (endpointOf(name).body === 'lines')) ??
    names[0]!
  app.route({
    method,
    url: path.replaceAll(/\{(\w+)\}/g, ':$1'),
    // The headers of a stream are not worth reading all of it.
    exposeHeadRoute: stream === undefined,
    // Before the body is read, so that nobody without a right can make the server read it.
    onRequest: async (request) => {
      const name = nameFor(request)
      const endpoint = endpointOf(name)
      const caller = endpoint.permission === 'public' ? undefined : await identify(request, options)
      const { params } = request as { params: { [key: string]: string } }
      const sender = { dlq: options.dlq, endpoint: name, caller, params }
      await recordDenial(sender, () => checkAccess(caller, name, endpoint))
      senders.set(request, sender)
    },
    handler: (request, reply) => {
      const sender = senders.get(request)!
      return recordDenial(sender, () => respond(sender, request, reply, options))
    },
  })
}

/** What is known about the sender of a request. */
const senders = new WeakMap<FastifyRequest, DenialContext>()

async function respond(
  sender: DenialContext,
  request: FastifyRequest,
  reply: FastifyReply,
  options: RouteOptions,
): Promise<FastifyReply> {
  const { endpoint: name, caller, params } = sender
  const endpoint = endpointOf(name)
  const { dlq, tokens, feed } = options
  const ifVersion = readIfMatch(endpoint, request.headers)
  const input = readInput(endpoint, {
    params,
    query: new URL(request.url, 'http://server').searchParams,
    body: bodyOf(endpoint, request),
  })
  const body = linesOf(request)
  const shared = { dlq, tokens, feed, caller, ifVersion, body }
  const connection = connectionOf(request, reply, sender, options)
  const context = { ...shared, ...connection } as unknown as Context
  const act = async (): Promise<unknown> => {
    if (caller) await checkBounds(sender, endpoint, input, context)
    return (handlers[name] as AnyHandler)(input, context)
  }
  if (endpoint.stream || endpoint.body === 'lines') rejectKey(request)
  if (endpoint.stream) {
    const isEvents = endpoint.stream === 'events'
    // Proxies must not collect events, and a server that stops must not wait for the next request
    // on the connection.
    if (isEvents) reply.headers({ 'x-accel-buffering': 'no', connection: 'close' })
    const chunks = (await act()) as AsyncIterable<string>
    const limit = isEvents ? maxUnreadEventBytes : maxUnreadBytes
    return sendStream(reply, responseType(endpoint), chunks, context, limit)
  }
  const { idempotency } = options
  const { status, body: output } = await once(
    { idempotency, endpoint, request, context },
    async () => ({
      status: endpoint.status ?? 200,
      body: await act(),
    }),
  )
  const etag = isLetterView(output) ? `"${output.version}"` : undefined
  if (etag !== undefined) reply.header('etag', etag)
  if (request.method === 'GET' && etag !== undefined && matchesEtag(request.headers, etag))
    return reply.code(304).send()
  if (status >= 400) reply.type(problemType)
  return reply.code(status).send(output)
}

/** What handlers get about the connection of a request. */
function connectionOf(
  request: FastifyRequest,
  reply: FastifyReply,
  { caller }: DenialContext,
  options: RouteOptions,
): Pick<
  Context,
  'lastEventId' | 'signal' | 'disconnect' | 'isStillAllowed' | 'isStopping' | 'onError'
> {
  const lastEventId = request.headers['last-event-id']
  return {
    lastEventId: typeof lastEventId === 'string' ? lastEventId : undefined,
    signal: signalOf(reply),
    disconnect: () => reply.raw.destroy(),
    isStillAllowed: async () => isSameCaller(await identify(request, options), caller),
    isStopping: options.stopping?.aborted ?? false,
    onError: (error) => options.onError(error, routeOf(request)),
  }
}

async function identify(
  request: FastifyRequest,
  { tokens, identify: known }: ServerOptions,
): Promise<Caller | undefined> {
  const [, token] = /^Bearer ([\w-]{1,200})$/.exec(request.headers.authorization ?? '') ?? []
  if (token === undefined) return undefined
  return known?.(token) ?? tokens.identify(token)
}

function sendProblem(reply: FastifyReply, error: unknown): { status: number } {
  const problem = toProblem(error)
  if (problem.status === 401) reply.header('www-authenticate', 'Bearer')
  if (problem.status === 429 || problem.status === 503) reply.header('retry-after', '1')
  reply.code(problem.status).type(problemType).send(problem)
  return problem
}

function addSecurityHeaders(reply: FastifyReply): void {
  reply.headers({
    'content-security-policy': "default-src 'self'; frame-ancestors 'none'; base-uri 'none'",
    'x-content-type-options': 'nosniff',
    'referrer-policy': 'no-referrer',
    'cache-control': reply.getHeader('cache-control') ?? 'no-store',
  })
}

function routeOf({ method, routeOptions }: FastifyRequest): string {
  return `${method} ${routeOptions.url}`
}

function pathOf(request: FastifyRequest): string {
  return request.url.split('?', 1)[0]!.slice(0, 200)
}
