import { createPoster, urlProblem, type Answer } from '../../backends/http/post.ts'
import { isLoopback } from '../../check/loopback.ts'
import { systemClock, type Clock } from '../../clock/clock.ts'
import { RedriveError } from '../../errors.ts'
import { checkTimeoutMs, toLine, type SendResult } from './target.ts'

/** Options of targets that are URLs. */
export interface HttpOptions {
  /** Begins with https. With `private`, http is allowed for this machine. */
  url: string
  /** Whether the address may be private or local. Default: false. */
  private?: boolean
  /** Maximum time for a response, at most 60 s. Default: 5 s. */
  timeoutMs?: number
  clock?: Clock
}

export interface HttpSenderOptions extends HttpOptions {
  /** Kind of target: "webhook". */
  what: string
  /** Strings that an answer must not show. */
  secrets: readonly string[]
}

const defaultTimeoutMs = 5000
/** Maximum number of bytes that are read of a response. */
const maxAnswerBytes = 4096
const maxExcerpt = 200
const maxAfterMs = 3_600_000

/** Posts one body. Never rejects. */
export type HttpSender = (
  body: string,
  headers?: Readonly<Record<string, string>>,
) => Promise<SendResult>

/**
 * Creates a sender for one URL. Redirects are not followed, the address is checked when the
 * connection is made, and of a response only the beginning is read. Throws INVALID_CONFIG without
 * the URL: for some services it is the secret.
 */
export function createHttpSender(options: HttpSenderOptions): HttpSender {
  const { what, timeoutMs = defaultTimeoutMs, clock = systemClock } = options
  const mayBePrivate = options.private ?? false
  const problem = notifyUrlProblem(options.url, mayBePrivate)
  if (problem !== undefined) throw new RedriveError('INVALID_CONFIG', `${what}: url ${problem}`)
  checkTimeoutMs(what, timeoutMs)
  const url = new URL(options.url)
  const post = createPoster(url, mayBePrivate)
  const secrets = [...options.secrets, url.pathname + url.search, url.pathname, url.search]
  return async (text, headers = {}) => {
    const body = Buffer.from(text)
    const abort = new AbortController()
    const cancel = clock.timer(timeoutMs, () => abort.abort())
    const own = { 'content-type': 'application/json', 'content-length': String(body.length) }
    const { signal } = abort
    try {
      const posted = { headers: { ...headers, ...own }, body, signal, maxBytes: maxAnswerBytes }
      return resultOf(await post(posted), clock.now(), secrets)
    } catch (error) {
      const answer = signal.aborted
        ? `no response within ${timeoutMs} ms`
        : `${url.hostname} is unreachable: ${reasonOf(error)}`
      return { sent: false, answer, again: true }
    } finally {
      cancel()
    }
  }
}

/** What is wrong with the URL of a target, or undefined. Never quotes the URL. */
export function notifyUrlProblem(text: string, mayBePrivate: boolean): string | undefined {
  const problem = urlProblem(text, mayBePrivate)
  if (problem !== undefined) return problem
  const { protocol, hostname } = new URL(text)
  if (protocol === 'https:' || (mayBePrivate && isLoopback(hostname))) return undefined
  return 'must begin with https: http is allowed only for this machine, with private: true'
}

function resultOf(answer: Answer, nowMs: number, secrets: readonly string[]): SendResult {
  const { status, headers, body } = answer
  const isRedirect = status >= 300 && status < 400
  const excerpt = isRedirect ? 'redirects are not followed' : excerptOf(body, secrets)
  const text = `answered ${status}${excerpt === '' ? '' : `: ${excerpt}`}`
  if (status >= 200 && status < 300) return { sent: true, answer: text }
  const again = status === 408 || status === 429 || status >= 500
  const afterMs = retryAfterMs(headers['retry-after'], nowMs)
  return { sent: false, answer: text, again, ...(afterMs > 0 ? { afterMs } : {}) }
}

/** A receiver may repeat what it got, so that secrets are removed. */
function excerptOf(body: Buffer, secrets: readonly string[]): string {
  const shown = secrets
    .filter((secret) => secret.length > 3)
    .toSorted((a, b) => b.length - a.length)
    .reduce((text, secret) => text.replaceAll(secret, '***'), body.toString())
  const text = toLine(shown.replaceAll(/\s+/g, ' ').trim())
  return text.length > maxExcerpt ? `${text.slice(0, maxExcerpt).toWellFormed()}…` : text
}

/** Seconds or a date. */
function retryAfterMs(header: string | undefined, nowMs: number): number {
  if (header === undefined) return 0
  const seconds = Number(header)
  const ms = Number.isNaN(seconds) ? Date.parse(header) - nowMs : seconds * 1000
  return Number.isNaN(ms) ? 0 : Math.min(maxAfterMs, Math.max(0, ms))
}

/** The code of a system error, or why an address is not allowed. */
function reasonOf(error: unknown): string {
  const { code, message } = error as { code?: unknown; message?: unknown }
  if (code === 'EACCES') return String(message)
  return typeof code === 'string' && /^[A-Z0-9_]{1,40}$/.test(code) ? code : 'unknown error'
}
