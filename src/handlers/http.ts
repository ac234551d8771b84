import { lookup as systemLookup } from 'node:dns'
import {
  Agent as HttpAgent,
  request as httpRequest,
  validateHeaderName,
  validateHeaderValue,
  type ClientRequest,
  type IncomingMessage,
  type RequestOptions,
} from 'node:http'
import { Agent as HttpsAgent, request as httpsRequest } from 'node:https'
import { isIP, type LookupFunction } from 'node:net'
import type { Clock } from '../clock.ts'
import { RedriveError } from '../errors.ts'
import type { Handler, Run } from '../redelivery/run.ts'
import { sign } from '../signature.ts'
import { refusalOf } from './address.ts'

/** Where letters of a queue are posted to. It comes from the configuration alone; no letter can change any of it. */
export interface HttpTarget {
  url: string
  /** Signs every request. */
  secret?: string
  /** How long an answer may take. Unless said, as long as the run. */
  timeoutMs?: number
  headers?: Readonly<Record<string, string>>
  /** Whether the address may be private, or of this machine. */
  private?: boolean
}

/** More of an answer than this is not read. */
const maxAnswerBytes = 64 * 1024
const maxExcerpt = 300
const maxIdleSockets = 16

/** What we say ourselves, and what belongs to the connection and not to the request. */
const reserved =
  /^(redrive-.*|idempotency-key|traceparent|content-type|content-length|content-encoding|host|connection|keep-alive|transfer-encoding|te|trailer|upgrade|expect|proxy-.*)$/i

/** What is wrong with a target, if anything is, and which part of it. Never quotes the URL or a value. */
export function targetProblem(
  target: Pick<HttpTarget, 'url' | 'headers' | 'private'>,
): { path: string[]; text: string } | undefined {
  const problem = urlProblem(target.url, target.private ?? false)
  if (problem !== undefined) return { path: ['url'], text: problem }
  for (const [name, value] of Object.entries(target.headers ?? {})) {
    const path = ['headers', name]
    if (reserved.test(name)) return { path, text: 'is set by Redrive and cannot be given' }
    try {
      validateHeaderName(name)
      validateHeaderValue(name, value)
    } catch {
      return {
        path,
        text: 'is no header: its name or its value has a character that none may have',
      }
    }
  }
  return undefined
}

function urlProblem(text: string, mayBePrivate: boolean): string | undefined {
  if (!URL.canParse(text)) return 'is no URL: it must be one as in https://example.com/redrive'
  const url = new URL(text)
  if (url.protocol !== 'http:' && url.protocol !== 'https:') return 'must begin with http or https'
  if (url.username !== '' || url.password !== '')
    return 'must not hold a user or a password: use headers with { env: NAME }'
  const host = hostOf(url)
  const refusal = isIP(host) === 0 ? undefined : refusalOf(host, mayBePrivate)
  return refusal === undefined ? undefined : `has an address that ${refusal}`
}

/** A host as a socket wants it. However an address was spelt, a URL has put it into its one form. */
function hostOf(url: URL): string {
  return url.hostname.replace(/^\[(.*)\]$/, '$1')
}

/**
 * Runs letters by posting their payload, byte for byte. A 2xx means resolved, unless its JSON says `"ok": false`; everything
 * else is a failure with its status and its retry-after. Redirects are not followed. The address is looked at when the
 * connection is made, so that a name cannot point elsewhere in between. Throws INVALID_CONFIG for a target that cannot be.
 */
export function httpHandler(target: HttpTarget, clock: Clock): Handler {
  const problem = targetProblem(target)
  if (problem)
    throw new RedriveError('INVALID_CONFIG', `http.${problem.path.join('.')} ${problem.text}`)
  const url = new URL(target.url)
  const secure = url.protocol === 'https:'
  const pool = { keepAlive: true, maxFreeSockets: maxIdleSockets }
  const options: RequestOptions = {
    method: 'POST',
    agent: secure ? new HttpsAgent(pool) : new HttpAgent(pool),
    lookup: guardedLookup(target.private ?? false),
  }
  const start = secure ? httpsRequest : httpRequest
  return (run) =>
    within(run.signal, target.timeoutMs, clock, async (signal) => {
      const headers = headersOf(run, target, clock.now())
      const answer = await exchange(
        start(url, { ...options, headers, signal }),
        run.letter.payload.bytes,
      )
      return judged(answer, url.host)
    })
}

/** Runs a request until the run's signal aborts or its own time is up. */
async function within<T>(
  signal: AbortSignal,
  timeoutMs: number | undefined,
  clock: Clock,
  work: (signal: AbortSignal) => Promise<T>,
): Promise<T> {
  signal.throwIfAborted()
  if (timeoutMs === undefined) return work(signal)
  const ours = new AbortController()
  const late = new Error(`no answer within ${timeoutMs} ms (timeoutMs)`)
  late.name = 'TimeoutError'
  const cancel = clock.timer(timeoutMs, () => ours.abort(late))
  try {
    return await work(AbortSignal.any([signal, ours.signal]))
  } catch (error) {
    throw ours.signal.aborted ? late : error
  } finally {
    cancel()
  }
}

function headersOf(run: Run, target: HttpTarget, nowMs: number): Record<string, string> {
  const { letter, attempt, idempotencyKey } = run
  const { bytes, contentType } = letter.payload
  const traced = /^[0-9a-f]{2}-[0-9a-f]{32}-[0-9a-f]{16}-[0-9a-f]{2}$/.exec(
    letter.traceparent ?? '',
  )
  return {
    ...target.headers,
    'content-type': /^[ -~]{1,200}$/.test(contentType) ? contentType : 'application/octet-stream',
    'content-length': String(bytes.byteLength),
    'redrive-id': plain(letter.id),
    'redrive-queue': plain(letter.queue),
    'redrive-attempt': String(attempt),
    'idempotency-key': plain(idempotencyKey),
    ...(traced ? { traceparent: traced[0] } : {}),
    ...(target.secret === undefined
      ? {}
      : { 'redrive-signature': sign(bytes, target.secret, nowMs) }),
  }
}

/** Text that a header can carry: what is not plain ASCII is percent-encoded. */
function plain(text: string): string {
  return text.toWellFormed().replaceAll(/[^ -~]|%/gu, (one) => encodeURIComponent(one))
}

/** Refuses to connect when any address of a name is one that must not be called. */
function guardedLookup(mayBePrivate: boolean): LookupFunction {
  return (host, options, done) =>
    systemLookup(host, { ...options, all: true }, (error, addresses) => {
      if (error) return done(error, [])
      for (const { address } of addresses) {
        const refusal = refusalOf(address, mayBePrivate)
        if (refusal === undefined) continue
        const text = `the address ${address} of ${host} ${refusal}`
        return done(Object.assign(new Error(text), { code: 'EACCES' }), [])
      }
      if (options.all) return done(null, addresses)
      const [first] = addresses
      return first
        ? done(null, first.address, first.family)
        : done(new Error(`no address of ${host}`), [])
    })
}

interface Answer {
  status: number
  headers: IncomingMessage['headers']
  body: string
  whole: boolean
}

/** Settles in every case: a connection can also close without an answer and without an error. */
function exchange(request: ClientRequest, body: Uint8Array): Promise<Answer> {
  return new Promise((resolve, reject) => {
    const hungUp = (): void =>
      reject(Object.assign(new Error('the other side hung up'), { code: 'ECONNRESET' }))
    request.on('error', reject)
    request.on('close', hungUp)
    request.on('response', (response) => {
      request.off('close', hungUp)
      response.on('close', hungUp)
      const parts: Buffer[] = []
      let length = 0
      const end = (whole: boolean): void => {
        const text = Buffer.concat(parts).subarray(0, maxAnswerBytes).toString('utf8')
        const { statusCode: status = 0, headers } = response
        resolve({ status, headers, body: text, whole })
      }
      response.on('error', reject)
      response.on('end', () => end(true))
      response.on('data', (part: Buffer) => {
        parts.push(part)
        length += part.length
        if (length <= maxAnswerBytes) return
        end(false)
        response.destroy()
      })
    })
    request.end(body)
  })
}

/** What an answer says about the run. */
function judged({ status, headers, body, whole }: Answer, host: string): unknown {
  if (status >= 200 && status < 300) return whole ? failureIn(body) : undefined
  const redirect = status >= 300 && status < 400
  const said = redirect
    ? 'redirects are not supported: configure the URL that is meant'
    : brief(body)
  const retryAfter = headers['retry-after']
  throw Object.assign(new Error(`${host} answered ${status}${said === '' ? '' : `: ${said}`}`), {
    status,
    headers: retryAfter === undefined ? {} : { 'retry-after': retryAfter },
  })
}

function failureIn(body: string): { ok: false; error: unknown } | undefined {
  if (!body.trimStart().startsWith('{')) return undefined
  try {
    const said = JSON.parse(body) as { ok?: unknown; error?: unknown }
    if (said.ok !== false) return undefined
    return { ok: false, error: said.error ?? new Error('the answer says that it failed') }
  } catch {
    return undefined // Whoever answers 2xx may say what he likes.
  }
}

function brief(body: string): string {
  const text = body.replaceAll(/\s+/g, ' ').trim()
  return text.length > maxExcerpt ? `${text.slice(0, maxExcerpt)}…` : text
}
