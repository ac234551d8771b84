import { hasCode, RedriveError, type ErrorCode } from '../../errors.ts'
import type { Address } from './address.ts'

/** What the server says is wrong, as it stands in its answers. */
export interface Fault {
  type?: string
  reason?: string
  caused_by?: Fault
  /** Of a search: what was wrong on the shards, of which the fault itself says no more than that. */
  root_cause?: Fault[]
}

/** The parts of the client's errors that we look at. */
interface ClientError {
  name?: string
  message?: string
  statusCode?: number
  body?: { error?: Fault | string }
}

/** Too many requests, or nobody there to serve them just now. */
const later = new Set([429, 502, 503, 504])

export const isLaterStatus = (status: number): boolean => later.has(status)

export function isLater(error: unknown): boolean {
  const { statusCode } = error as ClientError
  return statusCode !== undefined && later.has(statusCode)
}

/** The request may have been carried out or not. */
export function isConnection(error: unknown): boolean {
  const { name } = error as ClientError
  return name === 'ConnectionError' || name === 'NoLivingConnectionsError'
}

const advice: Record<number, [code: ErrorCode, advice: string]> = {
  400: ['INVALID_INPUT', 'the server refused the request as it stands'],
  401: ['STORE_UNAVAILABLE', 'the user or the password is wrong: correct the URL'],
  403: ['STORE_UNAVAILABLE', 'this is not allowed: check the rights of the user'],
  404: [
    'STORE_UNAVAILABLE',
    'an index is not there: it was removed while in use, open the store again',
  ],
  413: ['TOO_LARGE', 'the server takes no request of this size: raise http.max_content_length'],
  429: ['STORE_UNAVAILABLE', 'the server was too busy, also after several tries: try again later'],
}

/** An index that takes no writes, most often because a disk is nearly full. */
const blocked =
  'the index is read-only: free some disk space, then clear index.blocks.read_only_allow_delete'

/** It is what was to be kept, and not the server. */
export function isRefusal(error: unknown): error is RedriveError {
  return hasCode(error, 'TOO_LARGE', 'INVALID_INPUT')
}

/** Turns whatever the client threw into an error of ours. The one place that knows its errors. */
export function toRedriveError(error: unknown, { node }: Address): RedriveError {
  if (error instanceof RedriveError) return error
  const { name, message, statusCode, body } = error as ClientError
  if (statusCode !== undefined) return faultOf(statusCode, body?.error, node)
  // Its errors keep the words of the socket and not its code.
  const what =
    name === 'TimeoutError'
      ? 'the server did not answer in time'
      : 'the server cannot be reached: start it, or correct the URL'
  const told = clean(message ?? String(error))
  const cause: Refusal | undefined = tlsRefusal.test(told) ? { tls: true } : undefined
  const text = `opensearch ${node}: ${what} (${told})`
  return new RedriveError('STORE_UNAVAILABLE', text, cause && { cause })
}

/** What a status and the words that came with it mean. */
export function faultOf(
  status: number,
  fault: Fault | string | undefined,
  node: string,
): RedriveError {
  const { type = '', reason = '' } = typeof fault === 'object' ? deepest(fault) : { reason: fault }
  const told = clean(
    [type, reason]
      .filter((part) => part !== '')
      .join(': ')
      .slice(0, 300),
  )
  if (type === 'cluster_block_exception')
    return unavailable(`opensearch ${node}: ${blocked} (${told})`)
  if (type === 'index_closed_exception')
    return unavailable(`opensearch ${node}: an index is closed: open it again (${told})`)
  const found = type === 'index_not_found_exception' ? 404 : status
  const [code, what] = advice[found] ?? ['STORE_UNAVAILABLE', 'the server failed']
  return new RedriveError(code, `opensearch ${node}: ${what} (${told || `status ${status}`})`, {
    cause: { status } satisfies Refusal,
  })
}

/** What led to an error of ours. The client's own error would show passwords. */
interface Refusal {
  /** What the server answered with. */
  status?: number
  /** The certificate is not one for this URL, is not trusted here, or there is no TLS at all. */
  tls?: boolean
}

/** What a socket says when TLS is refused. The client loses its code. */
const tlsRefusal =
  /self-signed certificate|unable to verify the first certificate|unable to get (local )?issuer|altnames|wrong version number/i

/** The server lets this user do nothing, or is not the one that the URL means, and trying again does not help. */
export function isUnwelcome(cause: unknown): boolean {
  const { status, tls } = (cause ?? {}) as Refusal
  return status === 401 || status === 403 || tls === true
}

function deepest(fault: Fault): Fault {
  const cause = fault.caused_by ?? fault.root_cause?.[0]
  return cause?.reason ? deepest(cause) : fault
}

/** No user and no password, wherever a text may have got them from. */
function clean(text: string): string {
  return text.replaceAll(/:\/\/[^@/\s]*@/g, '://…@')
}

function unavailable(message: string): RedriveError {
  return new RedriveError('STORE_UNAVAILABLE', message)
}
