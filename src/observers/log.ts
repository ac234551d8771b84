import type { Logger } from 'pino'
import { toFailure } from '../letter/failure.ts'
import type { DeadLetter } from '../letter/letter.ts'
import { escapeHidden } from '../letter/payload-view.ts'
import type { EventOf, Observer, RedriveEvent } from '../observer.ts'

/** The methods that are used of a logger: pino, or any other with fields and a message. */
export type LoggerLike = Record<Level, (fields: object, message: string) => void>

type Level = 'debug' | 'info' | 'warn' | 'error'

const maxMessage = 500

/**
 * Logs every event as one structured line with the id and state of the letter. It never logs
 * payloads, headers or metadata; failure messages are bounded and on one line.
 */
export function logObserver(logger: Logger | LoggerLike): Observer {
  const target: LoggerLike = logger
  return (event) => {
    const { level, message, ...fields } = lineOf(event)
    target[level]({ event: event.type, ...fields }, message)
  }
}

interface Line extends Record<string, unknown> {
  level: Level
  message: string
}

function lineOf(event: RedriveEvent): Line {
  switch (event.type) {
    case 'full':
      return {
        level: 'error',
        message: 'queue is full',
        queue: toLine(event.queue),
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
        by: toLine(event.by),
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
        [event.kind]: toLine(event.name),
        breaker: event.state,
        ...until,
      }
    }
    case 'spooling':
      return {
        level: 'error',
        message: 'store is unreachable, letters wait in the spool',
        place: toLine(event.place),
        error: briefly(event.error),
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
        file: toLine(event.file),
        why: toLine(event.why),
      }
    case 'alert':
      return alertLine(event)
    case 'error':
      return {
        level: 'error',
        message: 'error',
        during: toLine(event.during),
        error: briefly(event.error),
      }
    default:
      return { ...letterLine(event), ...about(event.letter) }
  }
}

function alertLine({ alert, state }: EventOf<'alert'>): Line {
  const { name, severity, queue, metric, value, summary, raisedAt } = alert
  const loud = severity === 'critical' ? 'error' : 'warn'
  return {
    level: state === 'raised' ? loud : 'info',
    message: `alert ${state}`,
    alert: toLine(name),
    severity,
    ...(queue === undefined ? {} : { queue: toLine(queue) }),
    metric,
    value,
    summary: toLine(summary),
    raisedAt,
  }
}

type LetterEvent = Extract<RedriveEvent, { letter: DeadLetter }>

/** The fields of a letter's event, without those of the letter. */
function letterLine(event: LetterEvent): Line {
  const took = 'durationMs' in event ? { durationMs: Math.round(event.durationMs) } : {}
  switch (event.type) {
    case 'captured':
      return { level: 'warn', message: 'letter captured', error: failureOf(event.letter) }
    case 'duplicate':
      return { level: 'info', message: 'letter captured again', occurrences: event.occurrences }
    case 'started':
      return { level: 'debug', message: 'retry started', worker: toLine(event.worker) }
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
        worker: toLine(event.worker),
      }
    case 'stuck':
      return {
        level: 'warn',
        message: 'handler ignores its aborted signal',
        overdueMs: Math.round(event.overdueMs),
      }
    case 'changed': {
      const { action, entry } = event.change
      return { level: 'debug', message: 'letter changed', action, actor: toLine(entry.actor) }
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
    queue: toLine(letter.queue),
    state,
    category,
    fingerprint,
    retries,
    maxRetries,
    ...(reason === undefined ? {} : { reason }),
    ...(retryAt === undefined ? {} : { retryAt }),
    ...(lease === undefined ? {} : { worker: toLine(lease.worker) }),
  }
}

function failureOf({ failure }: DeadLetter): string {
  return toLine(`${failure.name}: ${failure.message}`)
}

/** Formats any error. */
function briefly(error: unknown): string {
  const { name, message, code } = toFailure(error, '')
  return toLine(code === undefined ? `${name}: ${message}` : `${name} ${code}: ${message}`)
}

function toLine(text: string): string {
  const bounded = text.length > maxMessage ? `${text.slice(0, maxMessage)}…` : text
  return escapeHidden(bounded).replaceAll('\n', '\\n').replaceAll('\t', '\\t')
}
