import type { FastifyInstance, FastifyRequest } from 'fastify'
import { RedriveError } from '../errors.ts'
import { isLines } from './body.ts'
import { maxBodyBytes, maxBytesInFlight } from './limits.ts'

/**
 * Routes without this limit. Probes must be answered even when nothing else is. Streams of events
 * stay open for hours, and have a limit of their own.
 */
const unlimited = new Set(['/livez', '/readyz', '/api/events'])

/**
 * Rejects requests that would wait for many others, so that clients learn at once that they have to
 * come back, and the memory of the server stays bounded. Rejects all while the server stops.
 */
export function limitRequests(app: FastifyInstance, maxRequests: number): void {
  let requests = 0
  let bytes = 0
  let isStopping = false
  app.addHook('preClose', async () => {
    isStopping = true
  })
  app.addHook('onRequest', async (request, reply) => {
    if (unlimited.has(request.routeOptions.url ?? '')) return
    if (isStopping)
      throw new RedriveError('SERVER_STOPPING', 'the server is stopping: use another one')
    if (requests >= maxRequests) throw busy(`the server has ${requests} requests in flight`)
    const size = sizeOf(request)
    if (bytes + size > maxBytesInFlight)
      throw busy(`the server has bodies of ${bytes} bytes in flight`)
    requests += 1
    bytes += size
    reply.raw.once('close', () => {
      requests -= 1
      bytes -= size
    })
  })
}

/** Bytes of the body that may be in memory. Without a length, and for lines, as many as allowed. */
function sizeOf({ headers }: FastifyRequest): number {
  const length = headers['content-length']
  if (isLines(headers) || headers['transfer-encoding'] !== undefined) return maxBodyBytes
  return Math.min(Number(length ?? 0), maxBodyBytes)
}

function busy(why: string): RedriveError {
  return new RedriveError('SERVER_BUSY', `${why}: send the request again later`)
}
