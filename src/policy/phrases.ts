import type { ErrorCategory } from '../letter/letter.ts'
import { judgement, type Judgement } from './judgement.ts'

interface Group {
  category: ErrorCategory
  severity?: Judgement['severity']
  recoverability?: Judgement['recoverability']
  phrases: string
}

/**
 * Phrases in messages and class names, strongest first: if a message contains several, the earlier
 * group wins. Phrases that lead to a retry may be broad; those that lead to parking must be narrow,
 * because an extra retry costs less than a letter that waits for a person without need.
 */
const groups: Group[] = [
  {
    category: 'permanent',
    severity: 'critical',
    phrases: 'file is not a database, database disk image is malformed',
  },
  {
    category: 'permanent',
    severity: 'high',
    recoverability: 'recoverable',
    phrases: `certificate has expired, certificate expired, expired certificate, certificate is not yet valid,
      self signed certificate, unable to verify the first certificate, unable to get local issuer certificate,
      certificate verify failed, certificate revoked`,
  },
  {
    category: 'rate-limit',
    phrases: `rate limit, rate limits, rate limited, rate limiting, rate exceeded, ratelimit, ratelimited,
      too many requests, request limit exceeded, throughput exceeded, throttle, throttled, throttling,
      slow down, quota per minute, requests per minute, requests per second`,
  },
  {
    category: 'resource',
    recoverability: 'recoverable',
    phrases: `quota exceeded, exceeded quota, exceeded your quota, exceeded your current quota,
      insufficient quota, quota exhausted, disk quota, out of memory, not enough memory,
      cannot allocate memory, credit balance is too low, array buffer allocation failed, no space left, not enough space, disk full,
      disk is full, database or disk is full, storage full, too many open files, too many connections,
      too many clients, remaining connection slots, resource exhausted, resources exhausted,
      pool exhausted, oom`,
  },
  {
    category: 'timeout',
    phrases: `timeout, timeouts, timed out, timedout, time out, deadline exceeded, took too long, etimedout,
      esockettimedout, gateway time out, exceeded time limit`,
  },
  {
    category: 'transient',
    phrases: `deadlock, deadlocked, lock wait, database is locked, table is locked, database table is locked,
      could not serialize access, serialization failure, write conflict, transaction conflict,
      transaction aborted, try again, retry later, please retry, must be retried, retryable, temporarily,
      temporary failure, temporary error, temporary problem, transient, busy, concurrent update,
      concurrent modification, optimistic lock, not ready yet, is starting up, is restarting,
      transactionconflict, capacity exceeded`,
  },
  {
    category: 'network',
    phrases: `connection refused, connection reset, connection closed, connection lost, connection terminated,
      connection aborted, connection error, connection failed, connection failure, connection issue,
      connection problem, connection dropped, connection ended, connection is closed, connect failed,
      lost connection, client is closed, client was closed, client closed, stream isn t writeable,
      stream has been aborted, channel closed, max retries per request,
      failed to connect, could not connect, cannot connect, unable to connect, not connected, disconnected,
      socket hang up, socket closed, socket error, other side closed, broken pipe, network error,
      network failure, network issue, network problem, network unreachable, network is unreachable,
      network is down, network down, network request failed, connectivity, fetch failed, failed to fetch,
      fetch error, premature close, no route to host, host unreachable, host is unreachable, host not found,
      name resolution, name or service not known, getaddrinfo, dns error, dns lookup, dns resolution,
      ssl error, tls error, ssl handshake, tls handshake, handshake failed, handshake failure`,
  },
  {
    category: 'permission',
    recoverability: 'recoverable',
    phrases: `unauthorized, unauthorised, unauthenticated, authentication failed, authentication required,
      authentication error, requires authentication, invalid credentials, bad credentials,
      missing credentials, could not load credentials, wrong password, incorrect password, invalid password,
      invalid api key, incorrect api key, api key not valid, api key expired, invalid token, expired token,
      token expired, token has expired, token revoked, invalid signature, invalid auth, invalid grant,
      invalid login, login incorrect, login was refused, access refused`,
  },
  {
    category: 'permission',
    phrases: `permission denied, permissions denied, access denied, access is denied, access forbidden,
      forbidden, not authorized, not authorised, not permitted, not allowed to, authorization error,
      authorization failed, permission error, permissions error, insufficient permission,
      insufficient permissions, insufficient privilege, insufficient privileges, insufficient scope,
      missing scope`,
  },
  {
    category: 'dependency',
    phrases: `internal server error, internal error, bad gateway, service unavailable, unavailable, server error,
      upstream error, upstream connect, overloaded, over capacity, under maintenance, invalid response,
      unexpected response, bad response, empty response, circuit breaker, breaker is open, circuit open, broken circuit,
      no healthy upstream, server closed`,
  },
  {
    category: 'permanent',
    severity: 'high',
    recoverability: 'recoverable',
    phrases: `environment variable, environment variables, missing config, missing configuration,
      config missing, configuration missing, invalid config, invalid configuration, config error,
      configuration error, region is missing`,
  },
  {
    category: 'validation',
    phrases: `invalid, malformed, validation failed, validation error, validation errors, failed validation,
      schema error, zod error, parse error, parsing error, syntax error, bad request, unprocessable,
      is required, are required, missing required, must be, must not be, must have, not a valid,
      is not valid, is not an integer, unexpected token, unexpected end of json, cannot parse, could not parse,
      failed to parse, constraint violation, constraint failed, constraint error, unique constraint,
      foreign key constraint, duplicate key, duplicate entry, violates, payload too large,
      entity too large, unsupported media type, serialization error`,
  },
  {
    category: 'permanent',
    recoverability: 'recoverable',
    phrases: `not found, no such file, no such key, no such bucket, no such table, no such column,
      does not exist, doesn t exist, no longer exists, already exists, not implemented, unimplemented,
      not supported, unsupported, precondition failed, conditional check failed, policy violation,
      unknown operation, unknown command, is not a function, is not defined, cannot read properties,
      cannot find module, cannot find package, maximum call stack, redirect count exceeded,
      too many redirects`,
  },
]

interface Phrase {
  words: string[]
  rank: number
  judgement: Judgement
  text: string
}

/** A phrase of the table that was found. */
export type Hit = Pick<Phrase, 'judgement' | 'text' | 'rank'>

const byFirstWord = new Map<string, Phrase[]>()

for (const [rank, { category, severity, recoverability, phrases }] of groups.entries())
  for (const phrase of phrases.split(',')) {
    const words = phrase.trim().split(/\s+/)
    const same = byFirstWord.get(words[0]!) ?? []
    const entry = { words, rank, text: words.join(' ') }
    same.push({ ...entry, judgement: judgement(category, severity, recoverability) })
    byFirstWord.set(words[0]!, same)
  }

/**
 * The strongest phrase among these lower-case words. Looks up whole words, so there is no pattern
 * that a hostile message could make slow, and "workspace" never counts as "space".
 */
export function strongest(words: readonly string[]): Hit | undefined {
  let best: Phrase | undefined
  for (let start = 0; start < words.length; start++) {
    const candidates = byFirstWord.get(words[start]!)
    if (!candidates) continue
    for (const phrase of candidates)
      if ((!best || phrase.rank < best.rank) && startsAt(words, start, phrase.words)) best = phrase
  }
  return best
}

function startsAt(words: readonly string[], start: number, phrase: readonly string[]): boolean {
  for (let index = 1; index < phrase.length; index++)
    if (words[start + index] !== phrase[index]) return false
  return true
}
