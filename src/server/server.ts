import Fastify, { type FastifyInstance, type FastifyReply, type FastifyRequest } from 'fastify'
import { actAs } from '../admin/audit/caller.ts'
import { endpointNames, endpointOf, type EndpointName } from '../api/endpoints.ts'
import type { Endpoint } from '../api/endpoint.ts'
import { openApiDocument } from '../api/openapi.ts'
import { problemType } from '../api/problem.ts'
import { RedriveError } from '../errors.ts'
import type { DeadLetter } from '../letter/letter.ts'
import type { DeadLetterQueue } from '../queue/queue.ts'
import { checkAccess, type Caller } from './caller.ts'
import { checkBounds } from './check-bounds.ts'
import { recordDenial, type DenialContext } from './denials.ts'
import { auditHandlers } from './handlers/audit.ts'
import { bulkHandlers } from './handlers/bulk.ts'
import { groupHandlers } from './handlers/groups.ts'
import type { Context, Handlers } from './handlers/handler.ts'
import { letterHandlers } from './handlers/letters.ts'
import { queueHandlers } from './handlers/queues.ts'
import { reportHandlers } from './handlers/reports.ts'
import { systemHandlers } from './handlers/system.ts'
import { tokenHandlers } from './handlers/tokens.ts'
import { readInput } from './input.ts'
import { toProblem } from './problems.ts'
import type { Tokens } from './tokens.ts'

export interface ServerOptions {
  dlq: DeadLetterQueue
  tokens: Tokens
  /** The caller of a token that is not in the store. */
  identify?: (token: string) => Caller | undefined
  version: string
  /** Reports an unexpected error. */
  onError: (error: unknown, route: string) => void
}

/** Limits of a request. A larger or slower one is rejected. */
const maxBodyBytes = 10 * 1024 * 1024
const requestTimeoutMs = 30_000
const maxParamLength = 2000

const handlers: Handlers = {
  ...letterHandlers,
  ...groupHandlers,
  ...bulkHandlers,
  ...queueHandlers,
  ...reportHandlers,
  ...tokenHandlers,
  ...auditHandlers,
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
    const problem = sendProblem(reply, error)
    if (problem.status >= 500)
      options.onError(error, `${request.method} ${request.routeOptions.url}`)
    return reply
  })
  app.setNotFoundHandler((request, reply) => {
    sendProblem(
      reply,
      new RedriveError('ROUTE_NOT_FOUND', `there is no ${request.method} ${pathOf(request)}`),
    )
    return reply
  })
  for (const name of endpointNames) addEndpoint(app, name, endpointOf(name), options)
  const document = openApiDocument(options.version)
  app.get('/api/openapi.json', () => document)
  return app
}

function addEndpoint(
  app: FastifyInstance,
  name: EndpointName,
  endpoint: Endpoint,
  options: ServerOptions,
): void {
  app.route({
    method: endpoint.method,
    url: endpoint.path.replaceAll(/\{(\w+)\}/g, ':$1'),
    handler: async (request, reply) => {
      const caller = endpoint.permission === 'public' ? undefined : await identify(request, options)
      const { params } = request as { params: { [key: string]: string } }
      const denials = { dlq: options.dlq, endpoint: name, caller, params }
      const output = await actAs({ via: 'http', ...(caller ? { actor: caller.name } : {}) }, () =>
        recordDenial(denials, () => {
          checkAccess(caller, name, endpoint)
          return call(request, denials, options)
        }),
      )
      if (isLetter(output)) reply.header('etag', `"${output.version}"`)
      return reply.code(endpoint.status ?? 200).send(output)
    },
  })
}

/** Reads the input of a request and calls the handler. */
async function call(
  request: FastifyRequest,
  denials: DenialContext,
  { dlq, tokens }: ServerOptions,
): Promise<unknown> {
  const { endpoint: name, caller, params } = denials
  const endpoint = endpointOf(name)
  const query = new URL(request.url, 'http://server').searchParams
  const input = readInput(endpoint, { params, query, body: request.body })
  const context = { dlq, tokens, caller } as Context
  if (caller) await checkBounds(denials, endpoint, input, context)
  return (handlers[name] as AnyHandler)(input, context)
}

async function identify(
  request: FastifyRequest,
  { tokens, identify: known }: ServerOptions,
): Promise<Caller | undefined> {
  const [, token] = /^Bearer ([\w-]{1,200})$/.exec(request.headers.authorization ?? '') ?? []
  if (token === undefined) return undefined
  return known?.(token) ?? tokens.identify(token)
}

function isLetter(output: unknown): output is DeadLetter {
  return (
    typeof output === 'object' && output !== null && 'fingerprint' in output && 'version' in output
  )
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

function pathOf(request: FastifyRequest): string {
  return request.url.split('?', 1)[0]!.slice(0, 200)
}
