const silent = 'the host does not answer: look at the network, or correct the URL'
const untrusted = "the server's certificate is not trusted here: give the authority that signed it"

/** Why a server cannot be talked to, by the codes of sockets and of TLS, and what to do. */
const advice: Readonly<Record<string, string>> = {
  ECONNREFUSED: 'nothing listens there: start the server, or correct the URL',
  ENOTFOUND: 'there is no such host: correct the URL',
  EAI_AGAIN: 'the name of the host cannot be looked up now',
  ETIMEDOUT: silent,
  EHOSTUNREACH: silent,
  ENETUNREACH: silent,
  CERT_HAS_EXPIRED: "the server's certificate has expired",
  ERR_TLS_CERT_ALTNAME_INVALID: "the server's certificate is for another host: correct the URL",
  DEPTH_ZERO_SELF_SIGNED_CERT: untrusted,
  SELF_SIGNED_CERT_IN_CHAIN: untrusted,
  UNABLE_TO_GET_ISSUER_CERT_LOCALLY: untrusted,
  UNABLE_TO_VERIFY_LEAF_SIGNATURE: untrusted,
  ERR_SSL_WRONG_VERSION_NUMBER: 'the server speaks no TLS there: correct the URL',
}

const deepest = 5

/** What to do about a server that cannot be reached. Clients wrap what the socket said, some of them several times. Undefined: it is something else. */
export function unreachable(error: unknown): string | undefined {
  const code = codeWithin(error, Object.keys(advice))
  return code === undefined ? undefined : advice[code]
}

/** TLS fails in a way that stays until the URL, the certificate or who is trusted here is corrected. */
export function isTlsRefusal(error: unknown): boolean {
  return codeWithin(error, tlsRefusals) !== undefined
}

const tlsRefusals = [
  ...Object.keys(advice).filter((code) => advice[code] === untrusted),
  'ERR_TLS_CERT_ALTNAME_INVALID',
  'ERR_SSL_WRONG_VERSION_NUMBER',
]

/** The first of these codes that an error, or what led to it, has. */
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
