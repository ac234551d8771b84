import { validateHeaderName, validateHeaderValue } from 'node:http'
import type { Clock } from '../clock/clock.ts'
import { RedriveError } from '../errors.ts'
import type { Handler, Run } from '../redelivery/run.ts'
import { sign } from '../backends/http/signature.ts'
import {
  contentTypeOf,
  plain,
  createPoster,
  toHttpError,
  traceparentOf,
  urlProblem,
  type Answer,
} from '../backends/http/post.ts'

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
  const post = createPoster(url, target.private ?? false)
  return (run) =>
    within(run.signal, target.timeoutMs, clock, async (signal) => {
      const headers = headersOf(run, target, clock.now())
      const body = run.letter.payload.bytes
      return judged(await post({ headers, body, signal, maxBytes: maxAnswerBytes }), url.host)
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
  return {
    ...target.headers,
    'content-type': contentTypeOf(contentType),
    'content-length': String(bytes.byteLength),
    'redrive-id': plain(letter.id),
    'redrive-queue': plain(letter.queue),
    'redrive-attempt': String(attempt),
    'idempotency-key': plain(idempotencyKey),
    ...traceparentOf(letter.traceparent),
    ...(target.secret === undefined
      ? {}
      : { 'redrive-signature': sign(bytes, target.secret, nowMs) }),
  }
}

/** What an answer says about the run. */
function judged(answer: Answer, host: string): unknown {
  const { status, body, whole } = answer
  if (status >= 200 && status < 300) return whole ? failureIn(body.toString()) : undefined
  throw toHttpError(answer, host)
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
