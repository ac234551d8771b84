import type { IncomingHttpHeaders } from 'node:http'
import type { FastifyInstance, FastifyRequest } from 'fastify'
import { linesType, type Endpoint } from '../api/endpoint.ts'
import type { Clock } from '../clock/clock.ts'
import { RedriveError } from '../errors.ts'
import { isCloudEvent, readCloudEvent } from './cloud-event.ts'
import { parseJson } from './input.ts'
import { bodyTimeoutMs } from './limits.ts'
import { withStatus } from './problems.ts'

/** Leaves lines to the handler, and reads all other bodies as bytes. */
export function readBodies(app: FastifyInstance, clock: Clock): void {
  limitReading(app, clock)
  app.addHook('preParsing', async ({ headers }) => rejectEncoding(headers))
  app.removeAllContentTypeParsers()
  app.addContentTypeParser(linesType, (_request, stream, done) => done(null, stream))
  app.addContentTypeParser('*', { parseAs: 'buffer' }, (_request, body, done) => done(null, body))
}

/** Ends the connection of a request whose body is read into memory, and is not there in time. */
function limitReading(app: FastifyInstance, clock: Clock): void {
  const timers = new WeakMap<FastifyRequest, () => void>()
  app.addHook('preParsing', async (request) => {
    const end = (): void =>
      void request.raw.destroy(new Error(`the body did not arrive within ${bodyTimeoutMs} ms`))
    const cancel = clock.timer(bodyTimeoutMs, end, { background: true })
    request.raw.once('close', cancel)
    timers.set(request, cancel)
  })
  app.addHook('preValidation', async (request) => timers.get(request)?.())
}

/** A compressed body can be a thousand times as large as it looks. */
function rejectEncoding({ 'content-encoding': encoding }: IncomingHttpHeaders): void {
  if (encoding !== undefined && encoding.trim().toLowerCase() !== 'identity')
    throw withStatus(
      415,
      `the body must not be compressed, got the content encoding ${encoding.slice(0, 100)}`,
    )
}

export function isLines(headers: IncomingHttpHeaders): boolean {
  return typeOf(headers) === linesType
}

/** The JSON of the body, or what a CloudEvent says. Undefined: the body is lines, or empty. */
export function bodyOf(endpoint: Endpoint, { headers, body }: FastifyRequest): unknown {
  if (endpoint.body === 'lines') {
    if (isLines(headers)) return undefined
    throw withStatus(415, `the content type of the body must be ${linesType}`)
  }
  const bytes = Buffer.isBuffer(body) ? body : Buffer.alloc(0)
  if (endpoint.body === 'json or event' && isCloudEvent(headers))
    return readCloudEvent(headers, bytes)
  const type = typeOf(headers)
  if (body !== undefined && type !== 'application/json' && (bytes.length > 0 || isLines(headers)))
    throw withStatus(
      415,
      `the content type of the body must be application/json, got ${type ?? 'none'}`,
    )
  return bytes.length === 0 ? undefined : parseJson(bytes, 'the body')
}

/** The lines of the body, as they come. A client that goes away is no fault of the server. */
export async function* linesOf({ body }: FastifyRequest): AsyncGenerator<Uint8Array> {
  try {
    yield* body as AsyncIterable<Uint8Array>
  } catch {
    throw new RedriveError('INVALID_INPUT', 'the client ended the request before its last line')
  }
}

function typeOf(headers: IncomingHttpHeaders): string | undefined {
  return headers['content-type']?.split(';', 1)[0]!.trim().toLowerCase()
}
