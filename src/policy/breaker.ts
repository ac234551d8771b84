import type { DeadLetter, ErrorCategory } from '../letter/letter.ts'
import type { Judged } from '../letter/moves.ts'
import { toMs } from '../letter/time.ts'
import { longestRetryAfterMs } from './backoff.ts'
import { isUnreached } from './unreached.ts'

/**
 * Closed: letters run; `recent` has the last outcome of each of the last few letters. Open: nothing runs before
 * `untilMs`. Half-open: a few letters are tried to see whether it works again.
 */
export type BreakerState =
  | { kind: 'closed'; recent: readonly Recent[] }
  | ({ kind: 'open'; untilMs: number } & Down)
  | ({ kind: 'half-open'; probing: readonly string[]; succeeded: number } & Down)

/** How often it opened since it was last closed. */
interface Down {
  openings: number
}

interface Recent {
  letterId: string
  failed: boolean
}

/** What happened to a letter, and when. `ended`: given back or parked without having run. */
export type BreakerEvent =
  | { type: 'started' | 'succeeded' | 'ended'; letterId: string; atMs: number }
  | {
      type: 'failed'
      letterId: string
      atMs: number
      category: ErrorCategory
      /** What the other side asked to wait: a breaker that opens stays so for at least as long, within a day. */
      retryAfterMs?: number
    }

export interface BreakerSettings {
  /** Different letters that fail in a row before the breaker opens. 10 unless said. */
  failures: number
  /** Or, of the last twice as many letters, the share that failed. 0.8 unless said. */
  share: number
  /** How long it stays open the first time. 30 s unless said. */
  openMs: number
  /** Each time that a probe fails it stays open twice as long as before, up to this. 5 min unless said. */
  maxOpenMs: number
  /** Letters that may be tried at the same time while it is half-open. 1 unless said. */
  probes: number
  /** Probes that have to succeed before it closes. 1 unless said. */
  successes: number
  /** For so long after a letter was first deferred, a run that an outage made fail is not counted. Default: a day. */
  patienceMs: number
}

const defaults: BreakerSettings = {
  failures: 10,
  share: 0.8,
  openMs: 30_000,
  maxOpenMs: 5 * 60_000,
  probes: 1,
  successes: 1,
  patienceMs: 86_400_000,
}

/** Where every breaker starts. */
export const closedBreaker: BreakerState = { kind: 'closed', recent: [] }

/** Failures that say something about the letter, not about what the letter needs. */
const ownFault: ReadonlySet<ErrorCategory> = new Set<ErrorCategory>([
  'permanent',
  'validation',
  'permission',
])

/** Whether such a failure may be the fault of what the letter needs. */
export function blamesDependency(category: ErrorCategory): boolean {
  return !ownFault.has(category)
}

/**
 * The next state. Different letters are counted, not failures, so that one poisonous letter cannot stop a queue; and
 * a failure that is the letter's own fault neither counts nor clears. Results of letters that were started before
 * the breaker opened change nothing after it did.
 */
export function breaker(
  state: BreakerState,
  event: BreakerEvent,
  settings: Partial<BreakerSettings> = {},
): BreakerState {
  const limits = { ...defaults, ...settings }
  if (state.kind === 'closed') return whileClosed(state, event, limits)
  if (state.kind === 'half-open') return whileHalfOpen(state, event, limits)
  if (event.type !== 'started' || event.atMs < state.untilMs) return state
  const { openings } = state
  return { kind: 'half-open', probing: [event.letterId], succeeded: 0, openings }
}

/** How many letters may start now: all, none, or the probes that are left. */
export function admits(
  state: BreakerState,
  nowMs: number,
  settings: Partial<BreakerSettings> = {},
): number {
  const { probes } = { ...defaults, ...settings }
  if (state.kind === 'closed') return Infinity
  if (state.kind === 'open') return nowMs < state.untilMs ? 0 : probes
  return Math.max(0, probes - state.probing.length)
}

/** How a run failed. Partial: some of the work was done. */
type FailedRun = Pick<Judged, 'failure' | 'category'> & { isPartial: boolean }

/**
 * Whether a failed run is not counted: an outage made it fail. Either the failure says that what the letter needs was not reached,
 * and no part of the work was done, or the breaker knows that it is down. The patience is measured per letter, by its own timestamps: it holds over restarts and for
 * several processes, and every letter ends one day.
 */
export function forgives(
  state: BreakerState,
  letter: Pick<DeadLetter, 'deferredSince'>,
  { failure, category, isPartial }: FailedRun,
  now: number,
  settings: Partial<BreakerSettings> = {},
): boolean {
  const { patienceMs } = { ...defaults, ...settings }
  const deferredMs = letter.deferredSince === undefined ? 0 : now - toMs(letter.deferredSince)
  if (!blamesDependency(category) || deferredMs >= patienceMs) return false
  return state.kind !== 'closed' || (!isPartial && isUnreached(failure))
}

/**
 * How long to defer a letter that failed while the breaker knows of an outage. At least until the breaker tries again; and each time
 * twice as long as the letter waited before, so that it is not always the same few that are tried.
 */
export function deferMs(
  waitMs: number,
  waitedMs: number,
  settings: Partial<BreakerSettings> = {},
): number {
  const most = 12 * longestOpenMs({ ...defaults, ...settings })
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
  const recent = [...others, { letterId, failed: type === 'failed' }].slice(-2 * limits.failures)
  if (recent.every((one) => !one.failed)) return closedBreaker
  if (type === 'failed' && isSystemic(recent, limits)) return open(event, { openings: 0 }, limits)
  return { kind: 'closed', recent }
}

/** Either all of the last `failures` letters failed, or most of twice as many. */
function isSystemic(recent: readonly Recent[], { failures, share }: BreakerSettings): boolean {
  const row = recent.slice(-failures)
  if (row.length === failures && row.every((one) => one.failed)) return true
  const failed = recent.filter((one) => one.failed).length
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
