import type { Failure } from '../letter/letter.ts'
import { layersOf, statusOf } from './layers.ts'

/** Codes of clients and servers which say that nothing was done, because what was called is away. */
const codes: ReadonlySet<string> = new Set(
  `ECONNREFUSED ENOTFOUND EAI_AGAIN EHOSTUNREACH EHOSTDOWN ENETUNREACH ENETDOWN
  UND_ERR_CONNECT_TIMEOUT CONNECT_TIMEOUT ERR_SOCKET_CONNECTION_TIMEOUT EOPENBREAKER
  UNAVAILABLE BROKER_NOT_AVAILABLE P1001 08001 57P03 LOADING CLUSTERDOWN MASTERDOWN
  STORE_UNAVAILABLE MAILBOX_UNAVAILABLE`.split(/\s+/),
)

/** Bad gateway, service unavailable, and what a proxy answers when the server behind it is down or unreachable. */
const statuses: ReadonlySet<number> = new Set([502, 503, 521, 522, 523])

/** Breakers of the caller: the call was not made. */
const names: ReadonlySet<string> = new Set(['CircuitBreakerOpenError', 'BrokenCircuitError'])

/** The same in words, where an error was wrapped and its code lost. */
const words =
  /\b(?:ECONNREFUSED|ENOTFOUND|EAI_AGAIN|EHOSTUNREACH|EHOSTDOWN|ENETUNREACH|ENETDOWN|connect ETIMEDOUT|14 UNAVAILABLE)\b/

const maxText = 1024

/**
 * Whether the failure says that what the work needs was not reached, or is not available at all. A failure that the
 * work itself may have caused, such as a 500, a reset connection or a timeout of an answer, does not.
 */
export function isUnreached(failure: Failure): boolean {
  return layersOf(failure).some(
    (layer) =>
      codes.has(layer.code ?? '') ||
      statuses.has(statusOf(layer) ?? 0) ||
      names.has(layer.name) ||
      words.test(layer.message.slice(0, maxText)),
  )
}
