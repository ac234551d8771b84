import type { Logger } from 'pino'
import { RedriveError } from '../errors.ts'
import { toFailure } from '../letter/failure.ts'
import type { DeadLetter } from '../letter/letter.ts'
import { escapeHidden } from '../letter/payload-view.ts'
import type { EventOf, Observer, RedriveEvent } from '../observer.ts'
import { traceIdOf } from '../tracing.ts'

type Level = 'debug' | 'info' | 'warn' | 'error'

/** The part of a logger that is used: pino's, or any other that takes fields and a message. */
export type LoggerLike = Record<Level, (fields: object, message: string) => void>

/** One structured line: its level, its message, and fields of any name. */
export interface LogLine extends Record<string, unknown> {
  level: Level
  message: string
}

const levels: readonly Level[] = ['debug', 'info', 'warn', 'error']
const maxLogString = 500

/** Returns a listener that writes every event as one structured line. `caller` is for errors. */
export function logWith<E extends { type: string }>(
  caller: string,
  logger: LoggerLike,
  lineOf: (event: E) => LogLine,
): (event: E) => void {
  for (const level of levels)
    if (typeof (logger as Partial<LoggerLike> | undefined)?.[level] !== 'function')
      throw new RedriveError(
        'INVALID_CONFIG',
        `${caller} needs a logger with the method ${level}, such as pino()`,
      )
  return (event) => {
    const { level, message, ...fields } = lineOf(event)
    logger[level]({ event: event.type, ...fields }, message)
  }
}

/** The string with its length bounded, without characters that could break a line. */
export function toLogString(text: string): string {
  const bounded = text.length > maxLogString ? `${text.slice(0, maxLogString)}…` : text
  return escapeHidden(bounded).replaceAll('\n', '\\n').replaceAll('\t', '\\t')
}

/**
 * Writes every event as one structured line with the letter and its state. A line never contains a
 * payload, headers or metadata; messages of failures are bounded and cannot break a line.
 */
export function logObserver(logger: Logger | LoggerLike): Observer {
  const write = logWith<RedriveEvent>('logObserver', logger, lineOf)
  return Object.assign(write, { leavesProcess: true })
}

/** A request that was answered. */
export interface LoggedRequest {
  requestId: string
  method: string
  /** The path with the names of its keys, such as `/api/letters/{id}`. */
  route: string
  status: number
  durationMs: number
  caller?: string
  traceparent?: string
}

/** Routes that probes and scrapes call every few seconds. */
const frequentRoutes: ReadonlySet<string> = new Set(['/livez', '/readyz', '/metrics'])

/**
 * Returns a function that writes every request as one structured line. A line never contains a
 * query, a body or a header, except for the id of the request and of its trace.
 */
export function logRequests(logger: Logger | LoggerLike): (request: LoggedRequest) => void {
  const write = logWith<LoggedRequest & { type: 'request' }>('logRequests', logger, requestLine)
  return (request) => write({ ...request, type: 'request' })
}

function requestLine(request: LoggedRequest): LogLine {
  const { requestId, method, route, status, durationMs, caller, traceparent } = request
  const isQuiet = frequentRoutes.has(route) && status < 400
  return {
    level: status >= 500 ? 'error' : isQuiet ? 'debug' : 'info',
    message: 'request',
    requestId,
    method,
    route,
    status,
    durationMs: Math.round(durationMs * 10) / 10,
    ...(caller === undefined ? {} : { caller: toLogString(caller) }),
    ...traceOf(traceparent),
  }
}

function traceOf(traceparent: string | undefined): { traceId?: string } {
  const traceId = traceIdOf(traceparent)
  return traceId === undefined ? {} : { traceId }
}

function lineOf(event: RedriveEvent): LogLine {
  switch (event.type) {
    case 'full':
      return {
        level: 'error',
        message: 'queue is full',
        queue: toLogString(event.queue),
        maxItems: event.maxItems,
      }
    case 'evicted':
      return { level: 'warn', message: 'resolved letters evicted', count: event.count }
    case 'removed': {
      const which = event.letter ? about(event.letter) : {}
      return {
        level: 'info',
        message: 'letters removed',
        count: event.count,
        by: toLogString(event.by),
        ...which,
      }
    }
    case 'swept': {
      const { archived, removed, parked } = event
      return { level: 'info', message: 'swept', archived, removed, parked }
    }
    case 'breaker': {
      const level = event.state === 'open' ? 'warn' : 'info'
      const until = event.until === undefined ? {} : { until: event.until }
      return {
        level,
        message: `breaker is ${event.state}`,
        [event.kind]: toLogString(event.name),
        breaker: event.state,
        ...until,
      }
    }
    case 'spooling':
      return {
        level: 'error',
        message: 'store is unreachable, letters wait in the spool',
        place: toLogString(event.place),
        error: toErrorString(event.error),
      }
    case 'drained': {
      const { count, duplicates } = event
      return { level: 'warn', message: 'spool drained', count, duplicates }
    }
    case 'set-aside':
      return {
        level: 'error',
        message: 'set aside from the spool',
        what: event.what,
        file: toLogString(event.file),
        why: toLogString(event.why),
      }
    case 'alert':
      return alertLine(event)
    case 'bulk':
      return bulkLine(event)
    case 'queue-paused':
    case 'queue-resumed':
      return queueLine(event)
    case 'group':
      return groupLine(event)
    case 'error':
      return {
        level: 'error',
        message: 'error',
        during: toLogString(event.during),
        error: toErrorString(event.error),
      }
    default:
      return { ...letterLine(event), ...about(event.letter) }
  }
}

function bulkLine({ action: bulk }: EventOf<'bulk'>): LogLine {
  const { id, action, state, progress, stopReason } = bulk
  return {
    level: state === 'stopped' ? 'warn' : 'info',
    message: `bulk ${action} is ${state}`,
    bulk: id,
    ...progress,
    ...(stopReason === undefined ? {} : { stopReason: toLogString(stopReason) }),
  }
}

function groupLine({ change, from, to, fingerprint, title, by, note }: EventOf<'group'>): LogLine {
  return {
    level: change === 'regress' ? 'warn' : 'info',
    message: from === to ? `group: ${change}` : `group is ${to}`,
    group: toLogString(fingerprint),
    title: toLogString(title),
    by: toLogString(by),
    ...(note === undefined ? {} : { note: toLogString(note) }),
  }
}

function alertLine({ alert, state }: EventOf<'alert'>): LogLine {
  const { name, severity, queue, metric, value, summary, raisedAt } = alert
  const loud = severity === 'critical' ? 'error' : 'warn'
  return {
    level: state === 'raised' ? loud : 'info',
    message: `alert ${state}`,
    alert: toLogString(name),
    severity,
    ...(queue === undefined ? {} : { queue: toLogString(queue) }),
    metric,
    value,
    summary: toLogString(summary),
    raisedAt,
  }
}

function queueLine(event: EventOf<'queue-paused' | 'queue-resumed'>): LogLine {
  const isPaused = event.type === 'queue-paused'
  return {
    level: isPaused ? 'warn' : 'info',
    message: isPaused ? 'queue paused' : 'queue resumed',
    queue: toLogString(event.queue),
    by: toLogString(event.by),
    ...(isPaused ? { reason: toLogString(event.reason) } : {}),
  }
}

type LetterEvent = Extract<RedriveEvent, { letter: DeadLetter }>

/** The fields of an event of a letter, without those of the letter itself. */
function letterLine(event: LetterEvent): LogLine {
  const took = 'durationMs' in event ? { durationMs: Math.round(event.durationMs) } : {}
  switch (event.type) {
    case 'captured':
      return { level: 'warn', message: 'letter captured', error: failureOf(event.letter) }
    case 'duplicate':
      return { level: 'info', message: 'letter captured again', occurrences: event.occurrences }
    case 'started':
      return { level: 'debug', message: 'retry started', worker: toLogString(event.worker) }
    case 'resolved':
      return { level: 'info', message: 'letter resolved', ...took }
    case 'rescheduled':
      return {
        level: 'info',
        message: 'retry failed, letter rescheduled',
        error: failureOf(event.letter),
        ...took,
      }
    case 'exhausted':
      return {
        level: 'error',
        message: 'retries exhausted',
        error: failureOf(event.letter),
        ...took,
      }
    case 'parked':
      return { level: 'warn', message: 'letter parked', error: failureOf(event.letter), ...took }
    case 'replayed':
      return { level: 'info', message: 'letter replayed', replays: event.letter.replays }
    case 'released':
      return { level: 'debug', message: 'letter released' }
    case 'lease-lost':
      return {
        level: 'warn',
        message: 'lease lost, result not counted',
        worker: toLogString(event.worker),
      }
    case 'stuck':
      return {
        level: 'warn',
        message: 'handler ignores its aborted signal',
        overdueMs: Math.round(event.overdueMs),
      }
    case 'changed': {
      const { action, entry } = event.change
      return { level: 'debug', message: 'letter changed', action, actor: toLogString(entry.actor) }
    }
  }
}

function about(letter: DeadLetter): Record<string, unknown> {
  const {
    id: letterId,
    state,
    category,
    fingerprint,
    retries,
    maxRetries,
    reason,
    retryAt,
    lease,
  } = letter
  return {
    letterId,
    queue: toLogString(letter.queue),
    state,
    category,
    fingerprint,
    retries,
    maxRetries,
    ...(reason === undefined ? {} : { reason }),
    ...(retryAt === undefined ? {} : { retryAt }),
    ...(lease === undefined ? {} : { worker: toLogString(lease.worker) }),
    ...traceOf(letter.traceparent),
  }
}

function failureOf({ failure }: DeadLetter): string {
  return toLogString(`${failure.name}: ${failure.message}`)
}

/** Name, code and message of whatever was thrown. */
function toErrorString(error: unknown): string {
  const { name, message, code } = toFailure(error, '')
  return toLogString(code === undefined ? `${name}: ${message}` : `${name} ${code}: ${message}`)
}
