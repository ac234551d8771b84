import cookie from '@fastify/cookie'
import Fastify, { type FastifyInstance, type FastifyReply, type FastifyRequest } from 'fastify'
import { endpointNames, endpointOf, type EndpointName } from '../api/endpoints.ts'
import { linesType } from '../api/endpoint.ts'
import { openApiDocument } from '../api/openapi.ts'
import { problemType } from '../api/problem.ts'
import type { Clock } from '../clock/clock.ts'
import { RedriveError } from '../errors.ts'
import type { DeadLetterQueue } from '../queue/queue.ts'
import { bodyOf, isLines, linesOf, readBodies } from './body.ts'
import type { ServerSettings } from '../config/server.ts'
import { checkAccess } from './caller.ts'
import { checkBounds } from './check-bounds.ts'
import { ifMatchFailed, matchesEtag, readIfMatch } from './conditions.ts'
import { recordDenial, type DenialContext } from './denials.ts'
import { auditHandlers } from './handlers/audit.ts'
import { bulkHandlers } from './handlers/bulk.ts'
import { captureHandlers } from './handlers/capture.ts'
import { groupHandlers } from './handlers/groups.ts'
import type { Context, Handlers, SessionActions } from './handlers/handler.ts'
import { letterHandlers } from './handlers/letters.ts'
import { queueHandlers } from './handlers/queues.ts'
import { reportHandlers } from './handlers/reports.ts'
import { sessionHandlers } from './handlers/session.ts'
import { systemHandlers } from './handlers/system.ts'
import { tokenHandlers } from './handlers/tokens.ts'
import { transferHandlers } from './handlers/transfer.ts'
import type { Idempotency } from './idempotency.ts'
import { readInput } from './input.ts'
import { maxBodyBytes, maxParamLength, maxPublicBodyBytes, requestTimeoutMs } from './limits.ts'
import { isLetterView, once, rejectKey } from './once.ts'
import { retryAfter, toProblem } from './problems.ts'
import { isPageRequest, sendPage, serveStaticFiles } from './static-files.ts'
import { sendStream, signalOf } from './stream.ts'
import type { Identity } from './sign-in/identity.ts'
import { OidcLogin } from './sign-in/oidc.ts'
import { addOidcRoutes } from './sign-in/oidc-routes.ts'
import type { OneTimeCodes } from './sign-in/one-time-codes.ts'
import { SignIn } from './sign-in/sign-in.ts'
import type { Tokens } from './tokens.ts'

export interface ServerOptions {
  dlq: DeadLetterQueue
  tokens: Tokens
  /** Keeps the responses of requests with an Idempotency-Key. */
  idempotency: Idempotency
  clock: Clock
  /** Codes that sign in a browser. */
  codes?: OneTimeCodes
  /** Who may sign in, and how. */
  settings?: ServerSettings
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
  ...sessionHandlers,
  ...systemHandlers,
}
type AnyHandler = (input: unknown, context: Context) => unknown

/** The HTTP server over the table of endpoints. It listens after `listen`. */
export function createServer(options: ServerOptions): FastifyInstance {
  const { dlq, settings = {} } = options
  const signIn = new SignIn({ ...options, store: dlq.store, settings })
  const app = Fastify({
    ...(settings.trustedProxies ? { trustProxy: settings.trustedProxies } : {}),
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
    if (isPageRequest(request)) return sendPage(reply)
    sendProblem(
      reply,
      new RedriveError('ROUTE_NOT_FOUND', `there is no ${request.method} ${pathOf(request)}`),
    )
    return reply
  })
  app.register(cookie)
  readBodies(app, options.clock)
  for (const names of endpointsByRoute()) addRoute(app, names, options, signIn)
  const { oidc, publicUrl } = settings
  if (oidc && publicUrl !== undefined) {
    const login = new OidcLogin(oidc, publicUrl, options.clock)
    addOidcRoutes(app, { ...options, signIn, oidc: login, publicUrl })
  }
  const document = openApiDocument(options.version)
  app.get('/api/openapi.json', () => document)
  serveStaticFiles(app)
  return app
}

/** Endpoints with the same method and path differ in the form of their body. */
function endpointsByRoute(): EndpointName[][] {
  return Object.values(
    Object.groupBy(endpointNames, (name) => `${endpointOf(name).method} ${endpointOf(name).path}`),
  ) as EndpointName[][]
}

function addRoute(
  app: FastifyInstance,
  names: EndpointName[],
  options: ServerOptions,
  signIn: SignIn,
): void {
  const { method, path, stream, permission } = endpointOf(names[0]!)
  const nameFor = (request: FastifyRequest): EndpointName =>
    names.find((name) => isLines(request.headers) === (endpointOf(name).body === 'lines')) ??
    names[0]!
  app.route({
    method,
    url: path.replaceAll(/\{(\w+)\}/g, ':$1'),
    // The headers of a stream are not worth reading all of it.
    exposeHeadRoute: stream === undefined,
    ...(permission === 'public' ? { bodyLimit: maxPublicBodyBytes } : {}),
    // Before the body is read, so that nobody without a right can make the server read it.
    onRequest: async (request) => {
      const name = nameFor(request)
      const endpoint = endpointOf(name)
      const { params } = request as { params: { [key: string]: string } }
      const sender: Sender = { dlq: options.dlq, endpoint: name, params }
      senders.set(request, sender)
      await recordDenial(sender, async () => {
        if (endpoint.permission === 'public') return
        sender.identity = await signIn.identify(request)
        sender.caller = sender.identity?.caller
        checkAccess(sender.caller, name, endpoint)
        if (sender.identity) signIn.limit(sender.identity, endpoint)
      })
    },
    handler: (request, reply) => {
      const sender = senders.get(request)!
      return recordDenial(sender, () => respond(sender, request, reply, options, signIn))
    },
  })
}

/** What is known about the sender of a request. */
interface Sender extends DenialContext {
  identity?: Identity | undefined
}
const senders = new WeakMap<FastifyRequest, Sender>()

async function respond(
  sender: Sender,
  request: FastifyRequest,
  reply: FastifyReply,
  options: ServerOptions,
  signIn: SignIn,
): Promise<FastifyReply> {
  const { endpoint: name, caller, identity, params } = sender
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
  const session: SessionActions = {
    signIn: (given) => signIn.open(reply, given),
    signOut: () => signIn.close(reply, identity!),
  }
  const known = { dlq, tokens, caller, identity, session, ifVersion, body, signal, onError }
  const context = known as unknown as Context
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

function sendProblem(reply: FastifyReply, error: unknown): { status: number } {
  const problem = toProblem(error)
  if (problem.status === 401) reply.header('www-authenticate', 'Bearer')
  if (problem.status === 429 || problem.status === 503)
    reply.header('retry-after', retryAfter(error))
  reply.code(problem.status).type(problemType).send(problem)
  return problem
}

function addSecurityHeaders(reply: FastifyReply): void {
  reply.headers({
    'content-security-policy':
      "default-src 'self'; frame-ancestors 'none'; base-uri 'none'; form-action 'self'",
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
