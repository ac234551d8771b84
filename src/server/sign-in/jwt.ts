import { createRemoteJWKSet, errors, jwtVerify, type JWTVerifyGetKey } from 'jose'
import { z } from 'zod'
import type { Clock } from '../../clock/clock.ts'
import { signatureAlgorithms } from '../../config/server-schema.ts'
import type { JwtSettings } from '../../config/server.ts'
import { RedriveError } from '../../errors.ts'
import { callerFromClaims, type Claims } from './claims.ts'
import type { Identity } from './identity.ts'

const defaultToleranceMs = 5000
const timeoutMs = 5000
const maxDocumentBytes = 1024 * 1024

const discoveryDocument = z.object({ issuer: z.string(), jwks_uri: z.url() })

/** Whether a bearer token has the form of a JWT. */
export function isJwt(token: string): boolean {
  return /^[\w-]+\.[\w-]+\.[\w-]+$/.test(token)
}

/** Verifies the JWTs of one issuer with its public keys, which are fetched and cached. */
export class JwtVerifier {
  readonly #settings: JwtSettings
  readonly #clock: Clock
  /** The keys, or the discovery of their address. A discovery that failed is not kept. */
  #keys: Promise<JWTVerifyGetKey> | undefined

  constructor(settings: JwtSettings, clock: Clock) {
    this.#settings = settings
    this.#clock = clock
  }

  /**
   * Who has a JWT. Undefined: it is not valid. Rejects if it gives no role, and if the keys of the
   * issuer cannot be fetched.
   */
  async identify(token: string): Promise<Identity | undefined> {
    const claims = await this.#verify(token)
    if (!claims) return undefined
    const caller = callerFromClaims(claims, this.#settings, 'sub')
    const expiresMs = Number(claims['exp']) * 1000
    return { caller, method: 'jwt', key: `jwt ${caller.name}`, expiresMs }
  }

  async #verify(token: string): Promise<Claims | undefined> {
    const { issuer, audience, algorithms, clockToleranceMs } = this.#settings
    const keys = await this.#loadKeys()
    try {
      const { payload } = await jwtVerify(token, keys, {
        issuer,
        audience,
        algorithms: [...(algorithms ?? signatureAlgorithms)],
        clockTolerance: (clockToleranceMs ?? defaultToleranceMs) / 1000,
        currentDate: new Date(this.#clock.now()),
        // Without an end, a token that was stolen would be valid for ever.
        requiredClaims: ['exp'],
      })
      return payload
    } catch (error) {
      if (isInvalid(error)) return undefined
      throw unavailable(issuer, error)
    }
  }

  #loadKeys(): Promise<JWTVerifyGetKey> {
    this.#keys ??= this.#findKeys().catch((error: unknown) => {
      this.#keys = undefined
      throw unavailable(this.#settings.issuer, error)
    })
    return this.#keys
  }

  async #findKeys(): Promise<JWTVerifyGetKey> {
    const { issuer, jwksUrl } = this.#settings
    const url = new URL(jwksUrl ?? (await discoverKeys(issuer)))
    return createRemoteJWKSet(url, { timeoutDuration: timeoutMs })
  }
}

/** Whether the token is at fault. Other errors are about fetching the keys. */
function isInvalid(error: unknown): boolean {
  return (
    error instanceof errors.JOSEError &&
    error.code !== 'ERR_JOSE_GENERIC' &&
    !(error instanceof errors.JWKSTimeout) &&
    !(error instanceof errors.JWKSInvalid)
  )
}

async function discoverKeys(issuer: string): Promise<string> {
  const url = `${issuer.replace(/\/$/, '')}/.well-known/openid-configuration`
  const response = await fetch(url, { redirect: 'error', signal: AbortSignal.timeout(timeoutMs) })
  if (response.status !== 200) throw new Error(`${url} answered with status ${response.status}`)
  const text = await response.text()
  if (text.length > maxDocumentBytes) throw new Error(`${url} is too large`)
  const { issuer: found, jwks_uri: keys } = discoveryDocument.parse(JSON.parse(text))
  if (found !== issuer) throw new Error(`${url} is about the issuer ${found.slice(0, 200)}`)
  const isDowngrade = url.startsWith('https:') && !keys.startsWith('https:')
  if (isDowngrade) throw new Error(`${url} has keys at an address without https`)
  return keys
}

/** The reason is in the log of the server only: it has addresses of the network. */
export function unavailable(issuer: string, cause: unknown): RedriveError {
  return new RedriveError(
    'IDENTITY_PROVIDER_UNAVAILABLE',
    `the identity provider ${issuer} cannot be reached, or its answer is wrong: try again, and see the log of the server`,
    { cause },
  )
}
