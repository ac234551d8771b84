import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { responseType, type Endpoint } from '../api/endpoint.ts'
import { endpointOf, type EndpointName } from '../api/endpoints.ts'
import { problemType, type Problem } from '../api/problem.ts'
import { bodyOf, isLines, linesOf } from './body.ts'
import { checkAccess, isSameCaller } from './caller.ts'
import { checkBounds } from './check-bounds.ts'
import { matchesEtag, readIfMatch } from './conditions.ts'
import { recordDenial, type DenialContext } from './denials.ts'
import type { Context, SessionActions } from './handlers/handler.ts'
import { handlers } from './handlers/handlers.ts'
import { readInput } from './input.ts'
import { maxPublicBodyBytes, maxUnreadBytes, maxUnreadEventBytes } from './limits.ts'
import { hasVersion, once, rejectKey } from './once.ts'
import type { Parts } from './parts.ts'
import { inRequest } from './request-tracking.ts'
import type { Identity } from './sign-in/identity.ts'
import { sendStream, signalOf } from './stream.ts'
import { viewerOf } from './viewer.ts'

type AnyHandler = (input: unknown, context: Context) => unknown

/** Adds the route of some endpoints, which differ in the form of their body. */
export function addRoute(app: FastifyInstance, names: EndpointName[], parts: Parts): void {
  const { signIn } = parts
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
      const sender: Sender = { dlq: parts.options.dlq, endpoint: name, params }
      senders.set(request, sender)
      await recordDenial(sender, async () => {
        if (endpoint.permission === 'public') return
        sender.identity = await signIn.identify(request)
        if (sender.identity) sender.caller = viewerOf(sender.identity.caller, parts.options.dlq)
        checkAccess(sender.caller, name, endpoint)
        if (sender.identity) signIn.limit(sender.identity, endpoint)
      })
    },
    handler: (request, reply) => {
      const sender = senders.get(request)!
      return inRequest(request, () =>
        recordDenial(sender, () => respond(sender, request, reply, parts)),
      )
    },
  })
}

/** What is known about the sender of a request. */
interface Sender extends DenialContext {
  identity?: Identity | undefined
}
const senders = new WeakMap<FastifyRequest, Sender>()

/** Undefined: the request is not for an endpoint. */
export function senderOf(request: FastifyRequest): Sender | undefined {
  return senders.get(request)
}

async function respond(
  sender: Sender,
  request: FastifyRequest,
  reply: FastifyReply,
  parts: Parts,
): Promise<FastifyReply> {
  const { endpoint: name, caller, params } = sender
  const endpoint = endpointOf(name)
  const input = readInput(endpoint, {
    params,
    query: new URL(request.url, 'http://server').searchParams,
    body: bodyOf(endpoint, request),
  })
  const context = contextOf(request, reply, sender, parts)
  const act = async (): Promise<unknown> => {
    if (caller) await checkBounds(sender, endpoint, input, context)
    return (handlers[name] as AnyHandler)(input, context)
  }
  if (endpoint.stream || endpoint.body === 'lines') rejectKey(request)
  if (endpoint.stream)
    return respondWithStream(endpoint, reply, (await act()) as AsyncIterable<string>, context)
  if (endpoint.text) return reply.type(endpoint.text).send(await act())
  const { idempotency } = parts.options
  const { status, body: output } = await once(
    { idempotency, endpoint, request, context },
    async () => ({
      status: endpoint.status ?? 200,
      body: await act(),
    }),
  )
  const etag = hasVersion(output) ? `"${output.version}"` : undefined
  if (etag !== undefined) reply.header('etag', etag)
  if (request.method === 'GET' && etag !== undefined && matchesEtag(request.headers, etag))
    return reply.code(304).send()
  if (status < 400) return reply.code(status).send(output)
  const problem = { ...(output as Problem), requestId: request.id }
  return reply.code(status).type(problemType).send(problem)
}

function respondWithStream(
  endpoint: Endpoint,
  reply: FastifyReply,
  chunks: AsyncIterable<string>,
  context: Context,
): Promise<FastifyReply> {
  const isEvents = endpoint.stream === 'events'
  // Proxies must not collect events, and a server that stops must not wait for the next request on
  // the connection.
  if (isEvents) reply.headers({ 'x-accel-buffering': 'no', connection: 'close' })
  const limit = isEvents ? maxUnreadEventBytes : maxUnreadBytes
  return sendStream(reply, responseType(endpoint), chunks, context, limit)
}

/** What the handler of a request gets. `checkBounds` adds what the input is about. */
function contextOf(
  request: FastifyRequest,
  reply: FastifyReply,
  { endpoint, caller, identity }: Sender,
  { options, signIn, shared }: Parts,
): Context {
  const lastEventId = request.headers['last-event-id']
  const session: SessionActions = {
    hasProvider: options.settings?.oidc !== undefined,
    signIn: (given) => signIn.open(reply, given),
    signOut: () => signIn.close(reply, identity!),
  }
  const context = {
    ...shared,
    caller,
    identity,
    session,
    ifVersion: readIfMatch(endpointOf(endpoint), request.headers),
    body: linesOf(request),
    lastEventId: typeof lastEventId === 'string' ? lastEventId : undefined,
    signal: signalOf(reply),
    disconnect: () => reply.raw.destroy(),
    isStillAllowed: async () => isSameCaller((await signIn.identifyAgain(request))?.caller, caller),
    isStopping: options.stopping?.aborted ?? false,
    onError: (error: unknown) => options.onError(error, routeOf(request), request.id),
  }
  return context as unknown as Context
}

export function routeOf({ method, routeOptions }: FastifyRequest): string {
  return `${method} ${routeOptions.url}`
}
