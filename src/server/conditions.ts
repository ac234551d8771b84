import type { IncomingHttpHeaders } from 'node:http'
import type { Endpoint } from '../api/endpoint.ts'
import { quote } from '../check/keys.ts'
import { hasCode, RedriveError } from '../errors.ts'
import { PreconditionFailed } from './problems.ts'

/** What has a version that a request can name. */
const conditional: ReadonlySet<Endpoint['bounds']> = new Set(['letter', 'view'])

/** The version of If-Match. Undefined: the request has no condition. */
export function readIfMatch(
  { method, bounds }: Endpoint,
  headers: IncomingHttpHeaders,
): number | undefined {
  const given = headers['if-match']
  if (given === undefined || given === '*') return undefined
  const [, version] = /^"(\d{1,15})"$/.exec(given) ?? []
  if (version === undefined || method === 'GET' || !conditional.has(bounds))
    throw new RedriveError(
      'INVALID_INPUT',
      `If-Match must be the ETag of a letter or of a saved view, such as "7" with its quotes, on an action on it; got ${quote(given)}`,
    )
  return Number(version)
}

/** A conflict of versions is a failed precondition if the request has one. */
export function ifMatchFailed(error: unknown, headers: IncomingHttpHeaders): unknown {
  const hasCondition = headers['if-match'] !== undefined && headers['if-match'] !== '*'
  return hasCondition && hasCode(error, 'VERSION_CONFLICT')
    ? new PreconditionFailed(error.message)
    : error
}

/** Whether If-None-Match has the ETag: the client has this version already. */
export function matchesEtag(headers: IncomingHttpHeaders, etag: string): boolean {
  const given = headers['if-none-match']
  if (given === undefined) return false
  const tags = given.split(',').map((tag) => tag.trim().replace(/^W\//, ''))
  return tags.includes('*') || tags.includes(etag)
}
