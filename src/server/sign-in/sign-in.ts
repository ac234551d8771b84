import type { FastifyReply, FastifyRequest } from 'fastify'
import type { Endpoint } from '../../api/endpoint.ts'
import type { Clock } from '../../clock/clock.ts'
import type { ServerSettings } from '../../config/server.ts'
import { RedriveError } from '../../errors.ts'
import type { Store } from '../../store.ts'
import { tooManyRequests } from '../problems.ts'
import type { Tokens } from '../tokens.ts'
import { clearCookie, readCookie, setCookie, type CookieOptions } from './cookies.ts'
import { FailedAttempts } from './failed-attempts.ts'
import type { Identity } from './identity.ts'
import { isJwt, JwtVerifier } from './jwt.ts'
import type { OneTimeCodes } from './one-time-codes.ts'
import { RateLimiter } from './rate-limiter.ts'
import { checkCsrf, checkSameOrigin } from './same-origin.ts'
import { Sessions } from './sessions.ts'

/** For people. A dashboard that calls without end must not slow others down. */
const sessionLimit = { perSecond: 200, burst: 400 }

export interface SignInOptions {
  store: Pick<Store, 'records'>
  clock: Clock
  tokens: Tokens
  codes?: OneTimeCodes | undefined
  settings: ServerSettings
}

/** What a browser signs in with. */
export type Credentials = { code: string } | { token: string }

/** Finds out who sends a request, and opens and ends sessions. */
export class SignIn {
  readonly #options: SignInOptions
  readonly #sessions: Sessions
  readonly #jwt: JwtVerifier | undefined
  readonly #failed: FailedAttempts
  readonly #limiter: RateLimiter
  readonly #cookie: CookieOptions

  constructor(options: SignInOptions) {
    const { clock, settings } = options
    const { jwt, session, publicUrl } = settings
    this.#options = options
    this.#sessions = new Sessions({ ...options, ...session })
    this.#jwt = jwt && new JwtVerifier(jwt, clock)
    this.#failed = new FailedAttempts(clock)
    this.#limiter = new RateLimiter(clock, settings.rateLimit ?? sessionLimit)
    this.#cookie = { name: 'redrive', sameSite: 'strict', publicUrl }
  }

  /**
   * Who sends a request: by its token, or by its session cookie if it has no token. Undefined:
   * nobody who is known.
   */
  async identify(request: FastifyRequest): Promise<Identity | undefined> {
    const token = bearerOf(request)
    if (token !== undefined) return this.#identifyToken(token, request)
    const identity = await this.#findSession(request, true)
    if (identity) checkCsrf(request, this.#options.settings.publicUrl)
    return identity
  }

  /**
   * Who has sent a request whose response still goes on. It is no use of the session, which would
   * otherwise never end while a page is open.
   */
  async identifyAgain(request: FastifyRequest): Promise<Identity | undefined> {
    const token = bearerOf(request)
    return token === undefined ? this.#findSession(request, false) : this.#findToken(token)
  }

  async #findSession(request: FastifyRequest, isUse: boolean): Promise<Identity | undefined> {
    const secret = readCookie(request, this.#cookie)
    return secret === undefined ? undefined : this.#sessions.find(secret, isUse)
  }

  /** Rejects a caller that sends too much. Failures are stored at any rate. */
  limit({ key, sessionId }: Identity, { permission }: Endpoint): void {
    const isLimited = this.#options.settings.rateLimit !== undefined || sessionId !== undefined
    if (!isLimited || permission === 'letter:capture') return
    const waitMs = this.#limiter.take(key)
    if (waitMs > 0)
      throw tooManyRequests('the caller sends too many requests: wait as Retry-After says', waitMs)
  }

  /** Opens a session for whoever has these credentials, and sets its cookie. */
  async open(reply: FastifyReply, given: Credentials): Promise<Identity> {
    const { request } = reply
    checkSameOrigin(request, this.#options.settings.publicUrl)
    const identity =
      'code' in given
        ? this.#identifyCode(given.code, request)
        : await this.#identifyToken(given.token, request)
    if (!identity)
      throw new RedriveError(
        'UNAUTHENTICATED',
        'code' in given
          ? 'the code is unknown, was used, or is older than 10 minutes: start the server again for a new one, or sign in with a token'
          : 'the token is not valid: check it, or create one with redrive tokens create',
      )
    return this.openFor(reply, identity)
  }

  /** Opens a session for somebody who is known, and sets its cookie. */
  async openFor(reply: FastifyReply, identity: Identity): Promise<Identity> {
    const session = await this.#sessions.create(identity)
    const ageMs = session.endsMs - this.#options.clock.now()
    setCookie(reply, this.#cookie, session.secret, ageMs)
    return session.identity
  }

  /** Ends the session of a request and removes its cookie. False: it has none. */
  async close(reply: FastifyReply, identity: Identity): Promise<boolean> {
    const hasEnded = await this.#sessions.end(identity)
    clearCookie(reply, this.#cookie)
    return hasEnded
  }

  /** Counts a failed attempt. Rejects if there were too many. */
  countFailure({ ip }: FastifyRequest): void {
    this.#failed.count(ip)
  }

  async #identifyToken(token: string, request: FastifyRequest): Promise<Identity | undefined> {
    const identity = await this.#findToken(token)
    if (!identity) this.countFailure(request)
    return identity
  }

  #findToken(token: string): Promise<Identity | undefined> {
    return this.#jwt && isJwt(token)
      ? this.#jwt.identify(token)
      : this.#options.tokens.identify(token)
  }

  #identifyCode(code: string, request: FastifyRequest): Identity | undefined {
    const caller = this.#options.codes?.use(code)
    if (!caller) this.countFailure(request)
    return caller && { caller, method: 'code', key: `code ${caller.name}` }
  }
}

function bearerOf({ headers }: FastifyRequest): string | undefined {
  return /^Bearer +(.*)$/i.exec(headers.authorization ?? '')?.[1]
}
