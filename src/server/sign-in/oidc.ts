import { hkdfSync } from 'node:crypto'
import { EncryptJWT, jwtDecrypt } from 'jose'
import * as client from 'openid-client'
import type { Clock } from '../../clock/clock.ts'
import type { OidcSettings } from '../../config/server.ts'
import { RedriveError } from '../../errors.ts'
import type { Caller } from '../caller.ts'
import { isSame } from '../tokens.ts'
import { callerFromClaims, claimOf, type Claims } from './claims.ts'
import { unavailable } from './jwt.ts'

export const callbackPath = '/login/oidc/callback'
/** How long somebody may take to sign in at the provider. */
export const loginMs = 10 * 60_000
const timeoutSeconds = 5
const defaultScopes = ['profile', 'email']

/** What the callback must bring, or know. */
interface LoginState {
  state: string
  nonce: string
  verifier: string
}

/** A login that has begun. */
export interface BegunLogin {
  /** Where the provider asks who it is. */
  url: URL
  /** What the browser must bring back, besides what the provider says. */
  cookie: string
}

/**
 * Sign-in at an OpenID Connect provider: authorization code flow with PKCE, state and nonce. The
 * state of a login is in an encrypted cookie of the browser that has begun it: no other browser can
 * end it, any server can, and nobody can fill the store with logins.
 */
export class OidcLogin {
  readonly #settings: OidcSettings
  readonly #redirectUrl: string
  readonly #clock: Clock
  readonly #key: Uint8Array
  /** What the provider says about itself. A discovery that failed is not kept. */
  #provider: Promise<client.Configuration> | undefined

  constructor(settings: OidcSettings, publicUrl: string, clock: Clock) {
    this.#settings = settings
    this.#redirectUrl = new URL(callbackPath, publicUrl).href
    this.#clock = clock
    this.#key = new Uint8Array(
      hkdfSync('sha256', settings.clientSecret, settings.clientId, 'redrive oidc login', 32),
    )
  }

  async begin(): Promise<BegunLogin> {
    const provider = await this.#discover()
    const verifier = client.randomPKCECodeVerifier()
    const login = { state: client.randomState(), nonce: client.randomNonce(), verifier }
    const scopes = new Set(['openid', ...(this.#settings.scopes ?? defaultScopes)])
    const url = client.buildAuthorizationUrl(provider, {
      redirect_uri: this.#redirectUrl,
      scope: [...scopes].join(' '),
      state: login.state,
      nonce: login.nonce,
      code_challenge: await client.calculatePKCECodeChallenge(verifier),
      code_challenge_method: 'S256',
    })
    return { url, cookie: await this.#encrypt(login) }
  }

  /**
   * Who has signed in, by the query of the callback and the cookie of `begin`. Rejects everything
   * that does not belong together.
   */
  async finish(query: string, cookie: string | undefined): Promise<Caller> {
    const login = cookie === undefined ? undefined : await this.#decrypt(cookie)
    const given = new URLSearchParams(query).get('state') ?? ''
    if (!login || !isSame(given, login.state))
      throw unauthenticated(
        'this browser has not begun the sign-in, or more than 10 minutes ago: sign in again',
      )
    const provider = await this.#discover()
    const claims = await this.#fetchClaims(provider, query, login)
    checkEmail(claims, this.#settings.emailDomains)
    const nameClaim = claims['email_verified'] === true ? 'email' : 'sub'
    return callerFromClaims(claims, this.#settings, nameClaim)
  }

  async #fetchClaims(
    provider: client.Configuration,
    query: string,
    { state, nonce, verifier }: LoginState,
  ): Promise<Claims> {
    const url = new URL(this.#redirectUrl)
    url.search = query
    try {
      const tokens = await client.authorizationCodeGrant(provider, url, {
        expectedState: state,
        expectedNonce: nonce,
        pkceCodeVerifier: verifier,
        idTokenExpected: true,
      })
      const claims = { ...tokens.claims() }
      const { role = 'role' } = this.#settings.claims ?? {}
      const { userinfo_endpoint: hasMore } = provider.serverMetadata()
      if (hasMore === undefined || claimOf(claims, role) !== undefined) return claims
      // Many providers put most claims there, and not in the token.
      const more = await client.fetchUserInfo(provider, tokens.access_token, String(claims.sub))
      return { ...more, ...claims }
    } catch (error) {
      throw this.#errorOf(error)
    }
  }

  /** Errors of the sign-in are those of the user, and the others are those of the provider. */
  #errorOf(error: unknown): RedriveError {
    if (error instanceof client.AuthorizationResponseError)
      return unauthenticated(
        `the identity provider has refused the sign-in (${shorten(error.error)}): sign in again`,
        error,
      )
    if (error instanceof client.ResponseBodyError && error.error === 'invalid_grant')
      return unauthenticated(
        'the identity provider does not accept the code of the sign-in, which is valid once and for a short time: sign in again',
        error,
      )
    const { code } = Object(error) as { code?: unknown }
    if (typeof code === 'string' && invalidAnswers.has(code))
      return unauthenticated(
        'the answer of the identity provider does not belong to this sign-in: sign in again',
        error,
      )
    return unavailable(this.#settings.issuer, error)
  }

  #discover(): Promise<client.Configuration> {
    const { issuer, clientId, clientSecret } = this.#settings
    const url = new URL(issuer)
    const isPlain = url.protocol === 'http:'
    this.#provider ??= client
      .discovery(url, clientId, clientSecret, undefined, {
        timeout: timeoutSeconds,
        execute: [
          client.enableNonRepudiationChecks,
          // The configuration allows http on a loopback address only.
          ...(isPlain ? [client.allowInsecureRequests] : []),
        ],
      })
      .catch((error: unknown) => {
        this.#provider = undefined
        throw unavailable(issuer, error)
      })
    return this.#provider
  }

  #encrypt(login: LoginState): Promise<string> {
    return new EncryptJWT({ ...login })
      .setProtectedHeader({ alg: 'dir', enc: 'A256GCM' })
      .setExpirationTime(Math.floor((this.#clock.now() + loginMs) / 1000))
      .encrypt(this.#key)
  }

  async #decrypt(cookie: string): Promise<LoginState | undefined> {
    try {
      const { payload } = await jwtDecrypt<LoginState>(cookie, this.#key, {
        currentDate: new Date(this.#clock.now()),
        keyManagementAlgorithms: ['dir'],
        contentEncryptionAlgorithms: ['A256GCM'],
      })
      return payload
    } catch {
      return undefined
    }
  }
}

/** Codes of openid-client for an ID token or a response that fails its checks. */
const invalidAnswers: ReadonlySet<string> = new Set([
  'OAUTH_INVALID_RESPONSE',
  'OAUTH_JWT_CLAIM_COMPARISON_FAILED',
  'OAUTH_JWT_TIMESTAMP_CHECK_FAILED',
  'OAUTH_KEY_SELECTION_FAILED',
])

/** Only an address that the provider has verified belongs to its user. */
function checkEmail(claims: Claims, domains: readonly string[] | undefined): void {
  if (!domains) return
  const { email, email_verified: isVerified } = claims
  const domain = typeof email === 'string' ? email.slice(email.lastIndexOf('@') + 1) : ''
  if (isVerified === true && domains.includes(domain.toLowerCase())) return
  throw new RedriveError(
    'FORBIDDEN',
    `only people with a verified email address of ${domains.join(', ')} may sign in`,
  )
}

function unauthenticated(message: string, cause?: unknown): RedriveError {
  return new RedriveError('UNAUTHENTICATED', message, { cause })
}

function shorten(text: string): string {
  return text.replaceAll(/[^\w .-]/g, '').slice(0, 100)
}
