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
  urlProblem,
  type Answer,
} from '../backends/http/post.ts'
import { traceHeadersOf } from './trace.ts'

/** The HTTP target of a queue. It comes from the configuration alone; letters cannot change it. */
export interface HttpTarget {
  url: string
  /** Signs every request. */
  secret?: string
  /** Maximum time for a response. Default: the time limit of the run. */
  timeoutMs?: number
  headers?: Readonly<Record<string, string>>
  /** Whether the address may be private or local. Default: false. */
  private?: boolean
}

/** Maximum number of bytes that are read of a response. */
const maxAnswerBytes = 64 * 1024

/** Headers that Redrive sets, and headers of the connection. */
const reserved =
  /^(redrive-.*|idempotency-key|traceparent|tracestate|content-type|content-length|content-encoding|host|connection|keep-alive|transfer-encoding|te|trailer|upgrade|expect|proxy-.*)$/i

/**
 * The problem of a target and the key it is about; undefined if it is valid. Never quotes the URL
 * or a value.
 */
export function targetProblem(
  target: Pick<HttpTarget, 'url' | 'headers' | 'private'>,
): { path: string[]; text: string } | undefined {
  const problem = urlProblem(target.url, target.private ?? false)
  if (problem !== undefined) return { path: ['url'], text: problem }
  for (const [name, value] of Object.entries(target.headers ?? {})) {
    const path = ['headers', name]
    if (reserved.test(name)) return { path, text: 'is set by Redrive: remove it' }
    try {
      validateHeaderName(name)
      validateHeaderValue(name, value)
    } catch {
      return {
        path,
        text: 'is not a valid header: its name or value has a forbidden character',
      }
    }
  }
  return undefined
}

/**
 * Runs letters by posting their payload unchanged. A 2xx response means resolved, unless its JSON
 * has `"ok": false`; other responses are failures with their status and retry-after. Redirects are
 * not followed. The address is checked when the connection is made, so that DNS cannot change it in
 * between. Throws INVALID_CONFIG for an invalid target.
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

/** Runs a request until the signal of the run aborts or the timeout expires. */
async function within<T>(
  signal: AbortSignal,
  timeoutMs: number | undefined,
  clock: Clock,
  work: (signal: AbortSignal) => Promise<T>,
): Promise<T> {
  signal.throwIfAborted()
  if (timeoutMs === undefined) return work(signal)
  const ours = new AbortController()
  const late = new Error(`no response within ${timeoutMs} ms (timeoutMs)`)
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
    ...traceHeadersOf(letter),
    ...(target.secret === undefined
      ? {}
      : { 'redrive-signature': sign(bytes, target.secret, nowMs) }),
  }
}

/** The result of the run by the response. */
function judged(answer: Answer, host: string): unknown {
  const { status, body, whole } = answer
  if (status >= 200 && status < 300) return whole ? failureIn(body.toString()) : undefined
  throw toHttpError(answer, host)
}

function failureIn(body: string): { ok: false; error: unknown } | undefined {
  if (!body.trimStart().startsWith('{')) return undefined
  try {
    const result = JSON.parse(body) as { ok?: unknown; error?: unknown }
    if (result.ok !== false) return undefined
    return { ok: false, error: result.error ?? new Error('the response has "ok": false') }
  } catch {
    return undefined // Whoever answers 2xx may say what he likes.
  }
}
