import type { FastifyRequest } from 'fastify'
import { csrfHeader } from '../../api/endpoint.ts'
import { RedriveError } from '../../errors.ts'

/**
 * Rejects a request that another site may have made a browser send. Such a request has the session
 * cookie of its user, but it cannot have this header: a browser asks the server first whether it
 * may send the header, and the server never allows it.
 */
export function checkCsrf(request: FastifyRequest, publicUrl: string | undefined): void {
  if (request.method === 'GET' || request.method === 'HEAD') return
  if (request.headers[csrfHeader] !== '1')
    throw new RedriveError(
      'FORBIDDEN',
      `a request with a session cookie needs the header ${csrfHeader}: 1, so that other sites cannot send it`,
    )
  checkSameOrigin(request, publicUrl)
}

/** Rejects a request that a browser sends for a page of another site. */
export function checkSameOrigin(request: FastifyRequest, publicUrl: string | undefined): void {
  const { origin, 'sec-fetch-site': site } = request.headers
  const allowed = [`${request.protocol}://${request.host}`, publicUrl?.replace(/\/$/, '')]
  if (origin !== undefined && !allowed.includes(origin))
    throw new RedriveError(
      'FORBIDDEN',
      `the request comes from a page of ${origin.slice(0, 200)}, which is another site: behind a reverse proxy, set server.publicUrl`,
    )
  if (site !== undefined && site !== 'same-origin' && site !== 'none')
    throw new RedriveError('FORBIDDEN', 'the request comes from a page of another site')
}
