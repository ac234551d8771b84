import type { Failure } from '../letter/letter.ts'
import { layersOf, statusOf } from './layers.ts'

/** Codes of clients and servers for a dependency that was not reached, so nothing was done. */
const codes: ReadonlySet<string> = new Set(
  `ECONNREFUSED ENOTFOUND EAI_AGAIN EHOSTUNREACH EHOSTDOWN ENETUNREACH ENETDOWN
  UND_ERR_CONNECT_TIMEOUT CONNECT_TIMEOUT ERR_SOCKET_CONNECTION_TIMEOUT EOPENBREAKER
  UNAVAILABLE BROKER_NOT_AVAILABLE P1001 08001 57P03 LOADING CLUSTERDOWN MASTERDOWN
  STORE_UNAVAILABLE MAILBOX_UNAVAILABLE`.split(/\s+/),
)

/** Bad gateway, service unavailable, and the answers of a proxy whose server is unreachable. */
const statuses: ReadonlySet<number> = new Set([502, 503, 521, 522, 523])

/** Open breakers of the caller: the call was not made. */
const names: ReadonlySet<string> = new Set(['CircuitBreakerOpenError', 'BrokenCircuitError'])

/** Codes in the message, for errors that were wrapped without their code. */
const words =
  /\b(?:ECONNREFUSED|ENOTFOUND|EAI_AGAIN|EHOSTUNREACH|EHOSTDOWN|ENETUNREACH|ENETDOWN|connect ETIMEDOUT|14 UNAVAILABLE)\b/

const maxText = 1024

/**
 * Whether the failure shows that a dependency was not reached or is not available. Failures that
 * the work itself may have caused do not count, such as a 500, a reset connection or a read
 * timeout.
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
