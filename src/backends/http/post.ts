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
import { refusalOf } from './address.ts'

export interface Posted {
  headers: Readonly<Record<string, string>>
  body: Uint8Array
  signal: AbortSignal
  /** More of an answer than this is not read. */
  maxBytes: number
}

export interface Answer {
  status: number
  headers: IncomingMessage['headers']
  body: Buffer
  /** False: there was more. */
  whole: boolean
}

const maxExcerpt = 300
const maxIdleSockets = 16

/** What is wrong with a URL that is to be posted to, if anything is. Never quotes it. */
export function urlProblem(text: string, mayBePrivate: boolean): string | undefined {
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
 * Posts to one URL, and gives whatever is answered. Redirects are not followed. The address is looked at when the connection is made, so
 * that a name cannot point elsewhere in between.
 */
export function poster(url: URL, mayBePrivate: boolean): (posted: Posted) => Promise<Answer> {
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

/** Text that a header can carry: what is not plain ASCII is percent-encoded. */
export function plain(text: string): string {
  return text.toWellFormed().replaceAll(/[^ -~]|%/gu, (one) => encodeURIComponent(one))
}

/** A content type that a header can carry. */
export function contentTypeOf(said: string): string {
  return /^[ -~]{1,200}$/.test(said) ? said : 'application/octet-stream'
}

/** The header by which a trace goes on, if this is what one looks like. */
export function traceparentOf(said = ''): { traceparent?: string } {
  const isOne = /^[0-9a-f]{2}-[0-9a-f]{32}-[0-9a-f]{16}-[0-9a-f]{2}$/.test(said)
  return isOne ? { traceparent: said } : {}
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

/** Settles in every case: a connection can also close without an answer and without an error. */
function exchange(request: ClientRequest, body: Uint8Array, maxBytes: number): Promise<Answer> {
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

/** An answer that is no 2xx, as an error with its status and its retry-after. */
export function refusedBy({ status, headers, body }: Answer, host: string): Error {
  const redirect = status >= 300 && status < 400
  const said = redirect
    ? 'redirects are not supported: configure the URL that is meant'
    : brief(body.toString())
  const retryAfter = headers['retry-after']
  const text = `${host} answered ${status}${said === '' ? '' : `: ${said}`}`
  return Object.assign(new Error(text), {
    status,
    headers: retryAfter === undefined ? {} : { 'retry-after': retryAfter },
  })
}

function brief(body: string): string {
  const text = body.replaceAll(/\s+/g, ' ').trim()
  return text.length > maxExcerpt ? `${text.slice(0, maxExcerpt)}…` : text
}
