import type { DeadLetter, ErrorCategory } from '../letter/letter.ts'
import type { Judged } from '../letter/moves.ts'
import { toMs } from '../letter/time.ts'
import { longestRetryAfterMs } from './backoff.ts'
import { isUnreached } from './unreached.ts'

/**
 * Closed: letters run; `recent` has the last outcome of each of the most recent letters. Open:
 * nothing runs before `untilMs`. Half-open: a few letters run as probes.
 */
export type BreakerState =
  | { kind: 'closed'; recent: readonly Recent[] }
  | ({ kind: 'open'; untilMs: number } & Down)
  | ({ kind: 'half-open'; probing: readonly string[]; succeeded: number } & Down)

/** Number of times the breaker opened since it was last closed. */
interface Down {
  openings: number
}

interface Recent {
  letterId: string
  failed: boolean
  cause?: string | undefined
}

/** An event of a letter. `ended`: released or parked without a result of its handler. */
export type BreakerEvent =
  | { type: 'started' | 'succeeded' | 'ended'; letterId: string; atMs: number }
  | {
      type: 'failed'
      letterId: string
      atMs: number
      category: ErrorCategory
      /** If given, only failures of one cause open the breaker. Default: any failures. */
      cause?: string
      /**
       * The delay that the other side asked for: a breaker stays open at least so long, at most a
       * day.
       */
      retryAfterMs?: number
    }

export interface BreakerSettings {
  /** Number of different letters in a row that fail before the breaker opens. Default: 10. */
  failures: number
  /** Or: the share of the last twice as many letters that failed. Default: 0.8. */
  share: number
  /** Time that the breaker stays open at first. Default: 30 s. */
  openMs: number
  /** The time doubles with each failed probe, up to this maximum. Default: 5 min. */
  maxOpenMs: number
  /** Probes that may run at once while the breaker is half-open. Default: 1. */
  probes: number
  /** Probes that must succeed before the breaker closes. Default: 1. */
  successes: number
  /**
   * Time after the first deferral of a letter during which outages cost no retry. Default: a day.
   */
  patienceMs: number
}

export const breakerDefaults: BreakerSettings = {
  failures: 10,
  share: 0.8,
  openMs: 30_000,
  maxOpenMs: 5 * 60_000,
  probes: 1,
  successes: 1,
  patienceMs: 86_400_000,
}

/** The initial state. */
export const closedBreaker: BreakerState = { kind: 'closed', recent: [] }

/** Categories of failures that the letter itself causes, not its dependency. */
const ownFault: ReadonlySet<ErrorCategory> = new Set<ErrorCategory>([
  'permanent',
  'validation',
  'permission',
])

/** Whether a failure of this category may be caused by the dependency. */
export function blamesDependency(category: ErrorCategory): boolean {
  return !ownFault.has(category)
}

/**
 * The next state. Counts different letters rather than failures, so that one poison letter cannot
 * stop a queue. A failure that the letter itself causes neither counts nor resets. Results of
 * letters that started before the breaker opened do not change an open breaker.
 */
export function stepBreaker(
  state: BreakerState,
  event: BreakerEvent,
  settings: Partial<BreakerSettings> = {},
): BreakerState {
  const limits = { ...breakerDefaults, ...settings }
  if (state.kind === 'closed') return whileClosed(state, event, limits)
  if (state.kind === 'half-open') return whileHalfOpen(state, event, limits)
  if (event.type !== 'started' || event.atMs < state.untilMs) return state
  const { openings } = state
  return { kind: 'half-open', probing: [event.letterId], succeeded: 0, openings }
}

/** Number of letters that may start now: any, none, or the remaining probes. */
export function admits(
  state: BreakerState,
  nowMs: number,
  settings: Partial<BreakerSettings> = {},
): number {
  const { probes } = { ...breakerDefaults, ...settings }
  if (state.kind === 'closed') return Infinity
  if (state.kind === 'open') return nowMs < state.untilMs ? 0 : probes
  return Math.max(0, probes - state.probing.length)
}

/** A failed run. Partial: some of the work was done. */
type FailedRun = Pick<Judged, 'failure' | 'category'> & { isPartial: boolean }

/**
 * Whether a failed run is not counted because an outage caused the failure: either the dependency
 * was not reached and no part of the work was done, or the breaker is not closed. `patienceMs`
 * limits this per letter, by timestamps of the letter, so that it holds across restarts and
 * processes and every letter ends eventually.
 */
export function forgives(
  state: BreakerState,
  letter: Pick<DeadLetter, 'deferredSince'>,
  { failure, category, isPartial }: FailedRun,
  now: number,
  settings: Partial<BreakerSettings> = {},
): boolean {
  const { patienceMs } = { ...breakerDefaults, ...settings }
  const deferredMs = letter.deferredSince === undefined ? 0 : now - toMs(letter.deferredSince)
  if (!blamesDependency(category) || deferredMs >= patienceMs) return false
  return state.kind !== 'closed' || (!isPartial && isUnreached(failure))
}

/**
 * Minimum delay of a letter that failed while the breaker is not closed: until the next probe, and
 * twice the previous delay, so that the probes are not always the same few letters.
 */
export function deferMs(
  waitMs: number,
  waitedMs: number,
  settings: Partial<BreakerSettings> = {},
): number {
  const most = 12 * longestOpenMs({ ...breakerDefaults, ...settings })
  return Math.max(waitMs, Math.min(2 * waitedMs, most))
}

type In<Kind extends BreakerState['kind']> = Extract<BreakerState, { kind: Kind }>

function whileClosed(
  state: In<'closed'>,
  event: BreakerEvent,
  limits: BreakerSettings,
): BreakerState {
  const { type, letterId } = event
  if (type === 'started' || type === 'ended') return state
  if (type === 'failed' && !blamesDependency(event.category)) return state
  const others = state.recent.filter((one) => one.letterId !== letterId)
  const last =
    type === 'failed' ? { letterId, failed: true, cause: event.cause } : { letterId, failed: false }
  const recent = [...others, last].slice(-2 * limits.failures)
  if (recent.every((one) => !one.failed)) return closedBreaker
  if (type === 'failed' && isSystemic(recent, event.cause, limits))
    return open(event, { openings: 0 }, limits)
  return { kind: 'closed', recent }
}

/**
 * Whether all of the last `failures` letters failed with this cause, or the given share of twice as
 * many.
 */
function isSystemic(
  recent: readonly Recent[],
  cause: string | undefined,
  { failures, share }: BreakerSettings,
): boolean {
  const hasFailed = (one: Recent): boolean => one.failed && one.cause === cause
  const row = recent.slice(-failures)
  if (row.length === failures && row.every(hasFailed)) return true
  const failed = recent.filter(hasFailed).length
  return recent.length === 2 * failures && failed >= share * recent.length
}

function whileHalfOpen(
  state: In<'half-open'>,
  event: BreakerEvent,
  limits: BreakerSettings,
): BreakerState {
  const isProbe = state.probing.includes(event.letterId)
  if (event.type === 'started')
    return isProbe ? state : { ...state, probing: [...state.probing, event.letterId] }
  if (!isProbe) return state
  const probing = state.probing.filter((id) => id !== event.letterId)
  if (event.type === 'failed' && blamesDependency(event.category)) return open(event, state, limits)
  if (event.type !== 'succeeded') return { ...state, probing }
  const succeeded = state.succeeded + 1
  return succeeded >= limits.successes ? closedBreaker : { ...state, probing, succeeded }
}

function open(
  { atMs, retryAfterMs = 0 }: { atMs: number; retryAfterMs?: number },
  { openings }: Down,
  limits: BreakerSettings,
): BreakerState {
  const forMs = Math.min(limits.openMs * 2 ** openings, longestOpenMs(limits))
  const untilMs = atMs + Math.max(forMs, Math.min(retryAfterMs, longestRetryAfterMs))
  return { kind: 'open', untilMs, openings: openings + 1 }
}

function longestOpenMs({ openMs, maxOpenMs }: BreakerSettings): number {
  return Math.max(openMs, maxOpenMs)
}
