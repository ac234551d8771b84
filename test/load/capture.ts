import { pause } from '../crash/child.ts'
import type { HttpClient, HttpRequest } from './http-client.ts'
import type { Ledger } from './ledger.ts'

/** The server that clients talk to now. It is another one after a restart. */
export interface Target {
  client: HttpClient
}

export interface CaptureOptions {
  target: Target
  ledger: Ledger
  /** Unique for each failure. */
  key: string
  /**
   * True: the request has the key as its Idempotency-Key, and is sent again until it is
   * acknowledged. False: it is sent once.
   */
  isKeyed: boolean
  /** Ends the repetitions. */
  isOver: () => boolean
}

/** Failures with the same cause are one group. */
const causes = 'abcdefghijklmnopqrst'
const retryMs = 20
/** Responses that say: send it again later. */
const retryable = new Set([409, 429, 503])

/** Captures one failure. What the server answers is in the ledger. */
export async function capture(options: CaptureOptions): Promise<void> {
  const { target, ledger, key, isKeyed, isOver } = options
  const request = captureRequest(key, isKeyed)
  for (;;) {
    const response = await target.client.send(request).catch(toCode)
    // A refused connection has sent nothing.
    if (typeof response === 'string') {
      if (response !== 'ECONNREFUSED') ledger.unanswered.add(key)
    } else {
      const { status, headers, body } = response
      ledger.count(status)
      if (status === 201) {
        ledger.unanswered.delete(key)
        return ledger.acknowledge(key, (JSON.parse(body) as { id: string }).id)
      }
      if ((status === 429 || status === 503) && headers['retry-after'] === undefined)
        ledger.problems.push(`capture answered ${status} without Retry-After: ${body}`)
      if (!retryable.has(status)) ledger.problems.push(`capture answered ${status}: ${body}`)
    }
    await pause(retryMs)
    if (!isKeyed || isOver()) return
  }
}

function toCode(error: unknown): string {
  return String((error as { code?: unknown }).code)
}

export function captureRequest(key: string, isKeyed: boolean): HttpRequest {
  const cause = causes[Buffer.from(key).reduce((sum, byte) => sum + byte, 0) % causes.length]!
  const body = JSON.stringify({
    queue: `queue-${cause}`,
    json: { key, note: 'x'.repeat(500) },
    metadata: { key },
    error: {
      name: 'Error',
      message: `the gateway ${cause}x refused the call`,
      code: 'ECONNREFUSED',
    },
  })
  const headers = isKeyed ? { headers: { 'idempotency-key': key } } : {}
  return { method: 'POST', path: '/api/capture', body, ...headers }
}
