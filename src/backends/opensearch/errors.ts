import { hasCode, RedriveError, type ErrorCode } from '../../errors.ts'
import type { Address } from './address.ts'

/** An error in a response of the server. */
export interface Fault {
  type?: string
  reason?: string
  caused_by?: Fault
  /** The errors of the shards of a search; the fault itself has no details. */
  root_cause?: Fault[]
}

/** The fields of client errors that are used. */
interface ClientError {
  name?: string
  message?: string
  statusCode?: number
  body?: { error?: Fault | string }
}

/** Too many requests, or a temporarily unavailable server. */
const temporaryStatuses = new Set([429, 502, 503, 504])

export const isTemporaryStatus = (status: number): boolean => temporaryStatuses.has(status)

export function isTemporary(error: unknown): boolean {
  const { statusCode } = error as ClientError
  return statusCode !== undefined && isTemporaryStatus(statusCode)
}

/** Whether the connection failed, so that it is unknown if the request was executed. */
export function isConnectionError(error: unknown): boolean {
  const { name } = error as ClientError
  return name === 'ConnectionError' || name === 'NoLivingConnectionsError'
}

const adviceByStatus: Record<number, [code: ErrorCode, advice: string]> = {
  400: ['INVALID_INPUT', 'the server rejected the request: correct the value in the reason'],
  401: ['STORE_UNAVAILABLE', 'the user or the password is wrong: correct the URL'],
  403: ['STORE_UNAVAILABLE', 'permission denied: check the permissions of the user'],
  404: [
    'STORE_UNAVAILABLE',
    'an index does not exist: it was deleted while in use, open the store again',
  ],
  413: [
    'TOO_LARGE',
    'the request exceeds the size limit of the server: raise http.max_content_length',
  ],
  429: [
    'STORE_UNAVAILABLE',
    'the server was too busy, even after several attempts: try again later',
  ],
}

/** An index is read-only most often because a disk is nearly full. */
const readOnlyAdvice =
  'the index is read-only: free some disk space, then clear index.blocks.read_only_allow_delete'

/** Whether the server rejected the letter itself. Other errors concern the server. */
export function isRejection(error: unknown): error is RedriveError {
  return hasCode(error, 'TOO_LARGE', 'INVALID_INPUT')
}

/** Translates an error of the client. No other function reads errors of the client. */
export function toRedriveError(error: unknown, { node }: Address): RedriveError {
  if (error instanceof RedriveError) return error
  const { name, message, statusCode, body } = error as ClientError
  if (statusCode !== undefined) return faultOf(statusCode, body?.error, node)
  // Errors of the client contain the message of the socket, but not its code.
  const advice =
    name === 'TimeoutError'
      ? 'the server did not answer in time: check its load, or raise client.requestTimeout'
      : 'the server cannot be reached: start it, or correct the URL'
  const detail = removeCredentials(message ?? String(error))
  const cause: RefusalCause | undefined = tlsFailure.test(detail) ? { tls: true } : undefined
  const text = `opensearch ${node}: ${advice} (${detail})`
  return new RedriveError('STORE_UNAVAILABLE', text, cause && { cause })
}

/** Translates the status and the error of a response. */
export function faultOf(
  status: number,
  fault: Fault | string | undefined,
  node: string,
): RedriveError {
  const { type = '', reason = '' } =
    typeof fault === 'object' ? rootCauseOf(fault) : { reason: fault }
  const detail = removeCredentials(
    [type, reason]
      .filter((part) => part !== '')
      .join(': ')
      .slice(0, 300),
  )
  if (type === 'cluster_block_exception')
    return unavailable(`opensearch ${node}: ${readOnlyAdvice} (${detail})`)
  if (type === 'index_closed_exception')
    return unavailable(`opensearch ${node}: an index is closed: open it again (${detail})`)
  const effectiveStatus = type === 'index_not_found_exception' ? 404 : status
  const [code, advice] = adviceByStatus[effectiveStatus] ?? [
    'STORE_UNAVAILABLE',
    'the server failed: check its log',
  ]
  return new RedriveError(code, `opensearch ${node}: ${advice} (${detail || `status ${status}`})`, {
    cause: { status } satisfies RefusalCause,
  })
}

/** The cause of a translated error. The error of the client itself could reveal passwords. */
interface RefusalCause {
  /** The status of the response. */
  status?: number
  /** The certificate is for another host or not trusted, or the server does not use TLS. */
  tls?: boolean
}

/** Messages of sockets for TLS failures. The client drops the error code. */
const tlsFailure =
  /self-signed certificate|unable to verify the first certificate|unable to get (local )?issuer|altnames|wrong version number/i

/**
 * Whether the server rejects this user, or is not the one of the URL, so that a retry does not
 * help.
 */
export function isRefusal(cause: unknown): boolean {
  const { status, tls } = (cause ?? {}) as RefusalCause
  return status === 401 || status === 403 || tls === true
}

function rootCauseOf(fault: Fault): Fault {
  const cause = fault.caused_by ?? fault.root_cause?.[0]
  return cause?.reason ? rootCauseOf(cause) : fault
}

/** Removes users and passwords from URLs in an error message. */
function removeCredentials(text: string): string {
  return text.replaceAll(/:\/\/[^@/\s]*@/g, '://…@')
}

function unavailable(message: string): RedriveError {
  return new RedriveError('STORE_UNAVAILABLE', message)
}
