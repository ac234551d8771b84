import cookie from '@fastify/cookie'
import Fastify, { type FastifyInstance, type FastifyReply, type FastifyRequest } from 'fastify'
import { endpointNames, endpointOf, type EndpointName } from '../api/endpoints.ts'
import { problemType, type Problem } from '../api/problem.ts'
import { RedriveError } from '../errors.ts'
import { limitRequests } from './admission.ts'
import { readBodies } from './body.ts'
import { ifMatchFailed } from './conditions.ts'
import { answerInvalidHttp, endUnreadBodies } from './connections.ts'
import { contentSecurityPolicy, Dashboard } from './dashboard.ts'
import { serveDocumentation } from './documentation.ts'
import {
  defaultMaxRequests,
  headersTimeoutMs,
  maxBodyBytes,
  maxParamLength,
  requestTimeoutMs,
  timeoutCheckMs,
} from './limits.ts'
import { createParts, type Parts, type ServerOptions } from './parts.ts'
import { retryAfter, toProblem } from './problems.ts'
import { addReference } from './reference/routes.ts'
import { requestIdOf, trackRequests } from './request-tracking.ts'
import { addRoute, routeOf, senderOf } from './route.ts'
import { addOidcRoutes } from './sign-in/oidc-routes.ts'
import { OidcLogin } from './sign-in/oidc.ts'

/** The HTTP server over the table of endpoints. It listens after `listen`. */
export function createServer(options: ServerOptions): FastifyInstance {
  const { settings = {} } = options
  const app = Fastify({
    ...(settings.trustedProxies ? { trustProxy: settings.trustedProxies } : {}),
    genReqId: requestIdOf(options.clock),
    bodyLimit: maxBodyBytes,
    requestTimeout: requestTimeoutMs,
    http: { headersTimeout: headersTimeoutMs, connectionsCheckingInterval: timeoutCheckMs },
    clientErrorHandler: answerInvalidHttp,
    routerOptions: { maxParamLength },
    forceCloseConnections: 'idle',
    // limitRequests rejects them with a problem.
    return503OnClosing: false,
    frameworkErrors: (error, _request, reply) => void sendProblem(reply, error),
  })
  const parts = createParts(options)
  const dashboard = new Dashboard()
  app.addHook('onSend', async (_request, reply) => addSecurityHeaders(reply))
  trackRequests(app, {
    clock: options.clock,
    senderOf,
    onAnswer: (request) => {
      parts.shared.metrics.countRequest(request)
      options.onAnswer?.(request)
    },
  })
  limitRequests(app, settings.maxRequests ?? defaultMaxRequests)
  app.setErrorHandler((error, request, reply) => {
    const problem = sendProblem(reply, ifMatchFailed(error, request.headers))
    if (problem.status >= 500 && !isRefusal(problem))
      options.onError(error, routeOf(request), request.id)
    return reply
  })
  // Before the body is read, so that nobody without a token can make the server read it.
  app.addHook('onRequest', async (request) => {
    if (request.is404 && !dashboard.has(request)) throw routeNotFound(request)
  })
  app.setNotFoundHandler((request, reply) => {
    if (dashboard.has(request)) return dashboard.send(reply)
    throw routeNotFound(request)
  })
  app.register(cookie)
  endUnreadBodies(app, options.clock)
  readBodies(app, options.clock)
  startAndStop(app, parts)
  for (const names of endpointsByRoute()) addRoute(app, names, parts)
  const { oidc, publicUrl } = settings
  if (oidc && publicUrl !== undefined) {
    const login = new OidcLogin(oidc, publicUrl, options.clock)
    addOidcRoutes(app, { ...options, signIn: parts.signIn, oidc: login, publicUrl })
  }
  addReference(app, options.version)
  if (options.pages !== false) {
    dashboard.addRoutes(app)
    serveDocumentation(app)
  }
  return app
}

function startAndStop(app: FastifyInstance, { options, shared: { series, feed } }: Parts): void {
  app.addHook('onListen', async () => series.start())
  app.addHook('onClose', () => series.stop())
  // The feed ends its streams before the server closes, which would wait for them.
  options.stopping?.addEventListener('abort', () => void feed.close(), { once: true })
  app.addHook('preClose', () => feed.close())
}

/** Endpoints with the same method and path differ in the form of their body. */
function endpointsByRoute(): EndpointName[][] {
  return Object.values(
    Object.groupBy(endpointNames, (name) => `${endpointOf(name).method} ${endpointOf(name).path}`),
  ) as EndpointName[][]
}

function sendProblem(reply: FastifyReply, error: unknown): Problem {
  const { id: requestId } = reply.request
  const problem = { ...toProblem(error), requestId }
  // The hook that adds the header does not see errors of the framework.
  reply.header('x-request-id', requestId)
  if (problem.status === 401) reply.header('www-authenticate', 'Bearer')
  if (problem.status === 429 || problem.status === 503)
    reply.header('retry-after', retryAfter(error))
  reply.code(problem.status).type(problemType).send(problem)
  return problem
}

/** A request that was not begun. There may be many, and none is an error of the server. */
function isRefusal({ code }: Problem): boolean {
  return code === 'SERVER_BUSY' || code === 'SERVER_STOPPING'
}

const ownContentOnly = contentSecurityPolicy()

function addSecurityHeaders(reply: FastifyReply): void {
  reply.headers({
    'content-security-policy': reply.getHeader('content-security-policy') ?? ownContentOnly,
    'x-content-type-options': 'nosniff',
    'referrer-policy': 'no-referrer',
    'cache-control': reply.getHeader('cache-control') ?? 'no-store',
  })
}

function routeNotFound(request: FastifyRequest): RedriveError {
  return new RedriveError('ROUTE_NOT_FOUND', `there is no ${request.method} ${pathOf(request)}`)
}

function pathOf(request: FastifyRequest): string {
  return request.url.split('?', 1)[0]!.slice(0, 200)
}
