import Fastify, { type FastifyInstance, type FastifyReply, type FastifyRequest } from 'fastify'
import { endpointNames, endpointOf, type EndpointName } from '../api/endpoints.ts'
import { linesType } from '../api/endpoint.ts'
import { openApiDocument } from '../api/openapi.ts'
import { problemType } from '../api/problem.ts'
import type { Clock } from '../clock/clock.ts'
import { RedriveError } from '../errors.ts'
import type { DeadLetterQueue } from '../queue/queue.ts'
import { bodyOf, isLines, linesOf, readBodies } from './body.ts'
import { checkAccess, type Caller } from './caller.ts'
import { checkBounds } from './check-bounds.ts'
import { ifMatchFailed, matchesEtag, readIfMatch } from './conditions.ts'
import { recordDenial, type DenialContext } from './denials.ts'
import { auditHandlers } from './handlers/audit.ts'
import { bulkHandlers } from './handlers/bulk.ts'
import { captureHandlers } from './handlers/capture.ts'
import { erasureHandlers } from './handlers/erasures.ts'
import { groupHandlers } from './handlers/groups.ts'
import type { Context, Handlers } from './handlers/handler.ts'
import { letterHandlers } from './handlers/letters.ts'
import { queueHandlers } from './handlers/queues.ts'
import { reportHandlers } from './handlers/reports.ts'
import { systemHandlers } from './handlers/system.ts'
import { tokenHandlers } from './handlers/tokens.ts'
import { transferHandlers } from './handlers/transfer.ts'
import type { Idempotency } from './idempotency.ts'
import { readInput } from './input.ts'
import { maxBodyBytes, maxParamLength, requestTimeoutMs } from './limits.ts'
import { isLetterView, once, rejectKey } from './once.ts'
import { toProblem } from './problems.ts'
import { sendStream, signalOf } from './stream.ts'
import type { Tokens } from './tokens.ts'
import { viewerOf } from './viewer.ts'

export interface ServerOptions {
  dlq: DeadLetterQueue
  tokens: Tokens
  /** Keeps the responses of requests with an Idempotency-Key. */
  idempotency: Idempotency
  clock: Clock
  /** The caller of a token that is not in the store. */
  identify?: (token: string) => Caller | undefined
  version: string
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
  ...erasureHandlers,
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
  for (const names of endpointsByRoute()) addRoute(app, names, options)
  const document = openApiDocument(options.version)
  app.get('/api/openapi.json', () => document)
  return app
}

/** Endpoints with the same method and path differ in the form of their body. */
function endpointsByRoute(): EndpointName[][] {
  return Object.values(
    Object.groupBy(endpointNames, (name) => `${endpointOf(name).method} ${endpointOf(name).path}`),
  ) as EndpointName[][]
}

function addRoute(app: FastifyInstance, names: EndpointName[], options: ServerOptions): void {
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
      const known = endpoint.permission === 'public' ? undefined : await identify(request, options)
      const caller = known && viewerOf(known, options.dlq)
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
  options: ServerOptions,
): Promise<FastifyReply> {
  const { endpoint: name, caller, params } = sender
  const endpoint = endpointOf(name)
  const { dlq, tokens } = options
  const onError = (error: unknown): void => options.onError(error, routeOf(request))
  const signal = signalOf(reply)
  const ifVersion = readIfMatch(endpoint, request.headers)
  const input = readInput(endpoint, {
    params,
    query: new URL(request.url, 'http://server').searchParams,
    body: bodyOf(endpoint, request),
  })
  const body = linesOf(request)
  const context = { dlq, tokens, caller, ifVersion, body, signal, onError } as unknown as Context
  const act = async (): Promise<unknown> => {
    if (caller) await checkBounds(sender, endpoint, input, context)
    return (handlers[name] as AnyHandler)(input, context)
  }
  if (endpoint.stream || endpoint.body === 'lines') rejectKey(request)
  if (endpoint.stream) {
    return sendStream(reply, linesType, (await act()) as AsyncIterable<string>, context)
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
