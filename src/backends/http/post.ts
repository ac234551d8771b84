import { lookup as systemLookup } from 'node:dns'
import {
  Agent as HttpAgent,
  request as httpRequest,
  type ClientRequest,
  type IncomingMessage,
  type RequestOptions,
} from 'node:http'
import { Agent as HttpsAgent, request as httpsRequest } from 'node:https'
import { isIP, type LookupFunction } from 'node:net'
import { checkAddress } from './address.ts'

export interface PostRequest {
  headers: Readonly<Record<string, string>>
  body: Uint8Array
  signal: AbortSignal
  /** Limit of the answer. The rest is not read. */
  maxBytes: number
}

export interface Answer {
  status: number
  headers: IncomingMessage['headers']
  body: Buffer
  /** False if there was more. */
  whole: boolean
}

const maxExcerpt = 300
const maxIdleSockets = 16

/** What is wrong with a URL for requests, or undefined. Never quotes the URL. */
export function urlProblem(text: string, mayBePrivate: boolean): string | undefined {
  if (!URL.canParse(text)) return 'must be a URL, as in https://example.com/redrive'
  const url = new URL(text)
  if (url.protocol !== 'http:' && url.protocol !== 'https:') return 'must start with http or https'
  if (url.username !== '' || url.password !== '')
    return 'must not contain a user or a password: use headers with { env: NAME }'
  const host = hostOf(url)
  const refusal = isIP(host) === 0 ? undefined : checkAddress(host, mayBePrivate)
  return refusal === undefined ? undefined : `has an address that ${refusal}`
}

/** The host for a socket. A URL has already normalised its spelling. */
function hostOf(url: URL): string {
  return url.hostname.replace(/^\[(.*)\]$/, '$1')
}

/**
 * Returns a function that posts to one URL and returns any answer. Redirects are not followed. The
 * address is checked when the connection is made, so that a name cannot change its address in
 * between.
 */
export function createPoster(
  url: URL,
  mayBePrivate: boolean,
): (posted: PostRequest) => Promise<Answer> {
  const secure = url.protocol === 'https:'
  const pool = { keepAlive: true, maxFreeSockets: maxIdleSockets }
  const options: RequestOptions = {
    method: 'POST',
    agent: secure ? new HttpsAgent(pool) : new HttpAgent(pool),
    lookup: guardedLookup(mayBePrivate),
  }
  const start = secure ? httpsRequest : httpRequest
  return ({ headers, body, signal, maxBytes }) =>
    exchange(start(url, { ...options, headers, signal }), body, maxBytes)
}

/** Percent-encodes what is not plain ASCII, so that a header can carry it. */
export function plain(text: string): string {
  return text.toWellFormed().replaceAll(/[^ -~]|%/gu, (one) => encodeURIComponent(one))
}

/** A content type that a header can carry. */
export function contentTypeOf(given: string): string {
  return /^[ -~]{1,200}$/.test(given) ? given : 'application/octet-stream'
}

/** The header that continues a trace, if it is valid. */
export function traceparentOf(given = ''): { traceparent?: string } {
  const isOne = /^[0-9a-f]{2}-[0-9a-f]{32}-[0-9a-f]{16}-[0-9a-f]{2}$/.test(given)
  return isOne ? { traceparent: given } : {}
}

/** Rejects a connection if any address of a name is not allowed. */
function guardedLookup(mayBePrivate: boolean): LookupFunction {
  return (host, options, done) =>
    systemLookup(host, { ...options, all: true }, (error, addresses) => {
      if (error) return done(error, [])
      for (const { address } of addresses) {
        const refusal = checkAddress(address, mayBePrivate)
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

/** Settles in every case: a connection can also close without an answer and without an error. */
function exchange(request: ClientRequest, body: Uint8Array, maxBytes: number): Promise<Answer> {
  return new Promise((resolve, reject) => {
    const onClose = (): void =>
      reject(
        Object.assign(new Error('the other side closed the connection'), { code: 'ECONNRESET' }),
      )
    request.on('error', reject)
    request.on('close', onClose)
    request.on('response', (response) => {
      request.off('close', onClose)
      response.on('close', onClose)
      const parts: Buffer[] = []
      let length = 0
      const end = (whole: boolean): void => {
        const { statusCode: status = 0, headers } = response
        resolve({ status, headers, body: Buffer.concat(parts).subarray(0, maxBytes), whole })
      }
      response.on('error', reject)
      response.on('end', () => end(true))
      response.on('data', (part: Buffer) => {
        parts.push(part)
        length += part.length
        if (length <= maxBytes) return
        end(false)
        response.destroy()
      })
    })
    request.end(body)
  })
}

/** Converts an answer other than 2xx to an error with its status and its retry-after. */
export function toHttpError({ status, headers, body }: Answer, host: string): Error {
  const redirect = status >= 300 && status < 400
  const given = redirect
    ? 'redirects are not supported: configure the final URL'
    : brief(body.toString())
  const retryAfter = headers['retry-after']
  const text = `${host} answered ${status}${given === '' ? '' : `: ${given}`}`
  return Object.assign(new Error(text), {
    status,
    headers: retryAfter === undefined ? {} : { 'retry-after': retryAfter },
  })
}

function brief(body: string): string {
  const text = body.replaceAll(/\s+/g, ' ').trim()
  return text.length > maxExcerpt ? `${text.slice(0, maxExcerpt)}…` : text
}
