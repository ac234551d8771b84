import type { Logger } from 'pino'
import { toFailure } from '../letter/failure.ts'
import type { DeadLetter } from '../letter/letter.ts'
import { escapeHidden } from '../letter/payload-view.ts'
import type { EventOf, Observer, RedriveEvent } from '../observer.ts'

/** As much of a logger as is needed: pino's, or any other that takes fields and a message. */
export type LoggerLike = Record<Level, (fields: object, message: string) => void>

type Level = 'debug' | 'info' | 'warn' | 'error'

const maxMessage = 500

/**
 * Every event as one structured line. It says which letter, and how it stands; it never holds a payload, headers or metadata, and
 * what failures say is bounded and cannot break a line.
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
        queue: shown(event.queue),
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
        by: shown(event.by),
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
        [event.kind]: shown(event.name),
        breaker: event.state,
        ...until,
      }
    }
    case 'spooling':
      return {
        level: 'error',
        message: 'store cannot be reached, letters wait in the spool',
        place: shown(event.place),
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
        file: shown(event.file),
        why: shown(event.why),
      }
    case 'alert':
      return alertLine(event)
    case 'error':
      return {
        level: 'error',
        message: 'error',
        during: shown(event.during),
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
    alert: shown(name),
    severity,
    ...(queue === undefined ? {} : { queue: shown(queue) }),
    metric,
    value,
    summary: shown(summary),
    raisedAt,
  }
}

type LetterEvent = Extract<RedriveEvent, { letter: DeadLetter }>

/** What is told of a letter's event beside the letter itself. */
function letterLine(event: LetterEvent): Line {
  const took = 'durationMs' in event ? { durationMs: Math.round(event.durationMs) } : {}
  switch (event.type) {
    case 'captured':
      return { level: 'warn', message: 'letter captured', error: failureOf(event.letter) }
    case 'duplicate':
      return { level: 'info', message: 'letter captured again', occurrences: event.occurrences }
    case 'started':
      return { level: 'debug', message: 'retry started', worker: shown(event.worker) }
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
        worker: shown(event.worker),
      }
    case 'stuck':
      return {
        level: 'warn',
        message: 'handler ignores its aborted signal',
        overdueMs: Math.round(event.overdueMs),
      }
    case 'changed': {
      const { action, entry } = event.change
      return { level: 'debug', message: 'letter changed', action, actor: shown(entry.actor) }
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
    queue: shown(letter.queue),
    state,
    category,
    fingerprint,
    retries,
    maxRetries,
    ...(reason === undefined ? {} : { reason }),
    ...(retryAt === undefined ? {} : { retryAt }),
    ...(lease === undefined ? {} : { worker: shown(lease.worker) }),
  }
}

function failureOf({ failure }: DeadLetter): string {
  return shown(`${failure.name}: ${failure.message}`)
}

/** An error of ours or a listener's, whatever it is. */
function briefly(error: unknown): string {
  const { name, message, code } = toFailure(error, '')
  return shown(code === undefined ? `${name}: ${message}` : `${name} ${code}: ${message}`)
}

function shown(text: string): string {
  const bounded = text.length > maxMessage ? `${text.slice(0, maxMessage)}…` : text
  return escapeHidden(bounded).replaceAll('\n', '\\n').replaceAll('\t', '\\t')
}
