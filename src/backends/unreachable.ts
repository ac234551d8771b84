const silent = 'the host does not answer: check the network, or correct the URL'
const untrusted = "the server's certificate is not trusted here: add the authority that signed it"

/** Fixes by the error codes of sockets and of TLS. */
const advice: Readonly<Record<string, string>> = {
  ECONNREFUSED: 'nothing listens there: start the server, or correct the URL',
  ENOTFOUND: 'the host does not exist: correct the URL',
  EAI_AGAIN: 'the name of the host cannot be resolved at present',
  ETIMEDOUT: silent,
  EHOSTUNREACH: silent,
  ENETUNREACH: silent,
  CERT_HAS_EXPIRED: "the server's certificate has expired",
  ERR_TLS_CERT_ALTNAME_INVALID: "the server's certificate is for another host: correct the URL",
  DEPTH_ZERO_SELF_SIGNED_CERT: untrusted,
  SELF_SIGNED_CERT_IN_CHAIN: untrusted,
  UNABLE_TO_GET_ISSUER_CERT_LOCALLY: untrusted,
  UNABLE_TO_VERIFY_LEAF_SIGNATURE: untrusted,
  ERR_SSL_WRONG_VERSION_NUMBER: 'the server does not use TLS there: correct the URL',
}

const deepest = 5

/**
 * The fix for an unreachable server. Clients wrap the error of the socket, some of them several
 * times. Undefined for any other error.
 */
export function unreachable(error: unknown): string | undefined {
  const code = codeWithin(error, Object.keys(advice))
  return code === undefined ? undefined : advice[code]
}

/**
 * Whether TLS failed in a way that persists until the URL, the certificate or the trusted
 * authorities are corrected.
 */
export function isTlsRefusal(error: unknown): boolean {
  return codeWithin(error, tlsRefusals) !== undefined
}

const tlsRefusals = [
  ...Object.keys(advice).filter((code) => advice[code] === untrusted),
  'ERR_TLS_CERT_ALTNAME_INVALID',
  'ERR_SSL_WRONG_VERSION_NUMBER',
]

/** The first of these codes in an error or its causes. */
function codeWithin(error: unknown, codes: readonly string[], depth = 0): string | undefined {
  if (!(error instanceof Error) || depth > deepest) return undefined
  const { code, cause, errors } = error as { code?: unknown; cause?: unknown; errors?: unknown }
  if (typeof code === 'string' && codes.includes(code)) return code
  for (const inner of [cause, ...(Array.isArray(errors) ? (errors as unknown[]) : [])]) {
    const found = codeWithin(inner, codes, depth + 1)
    if (found !== undefined) return found
  }
  return undefined
}
