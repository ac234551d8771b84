import type { ErrorCategory } from '../letter/letter.ts'

/**
 * Closed: letters run; `failed` are the different letters that failed in a row, with no success between them.
 * Open: nothing runs before `untilMs`. Half-open: a few letters are tried to see whether it works again.
 */
export type BreakerState =
  | { kind: 'closed'; failed: readonly string[] }
  | { kind: 'open'; untilMs: number }
  | { kind: 'half-open'; probing: readonly string[]; succeeded: number }

/** What happened to a letter of the queue, and when. `ended`: given back or parked without having run. */
export type BreakerEvent =
  | { type: 'started' | 'succeeded' | 'ended'; letterId: string; atMs: number }
  | { type: 'failed'; letterId: string; atMs: number; category: ErrorCategory }

export interface BreakerSettings {
  /** Different letters that fail in a row before the breaker opens. 10 unless said. */
  failures: number
  /** How long it stays open. 30 s unless said. */
  openMs: number
  /** Letters that may be tried at the same time while it is half-open. 1 unless said. */
  probes: number
  /** Probes that have to succeed before it closes. 1 unless said. */
  successes: number
}

const defaults: BreakerSettings = { failures: 10, openMs: 30_000, probes: 1, successes: 1 }

/** Where every breaker starts. */
export const closedBreaker: BreakerState = { kind: 'closed', failed: [] }

/** Failures that say something about the letter, not about what the letter needs. */
const ownFault: ReadonlySet<ErrorCategory> = new Set<ErrorCategory>([
  'permanent',
  'validation',
  'permission',
])

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
  return { kind: 'half-open', probing: [event.letterId], succeeded: 0 }
}

/** How many letters of the queue may start now: all, none, or the probes that are left. */
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

type In<Kind extends BreakerState['kind']> = Extract<BreakerState, { kind: Kind }>

function whileClosed(
  state: In<'closed'>,
  event: BreakerEvent,
  { failures, openMs }: BreakerSettings,
): BreakerState {
  if (event.type === 'succeeded') return state.failed.length === 0 ? state : closedBreaker
  if (event.type !== 'failed' || ownFault.has(event.category)) return state
  if (state.failed.includes(event.letterId)) return state
  const failed = [...state.failed, event.letterId]
  return failed.length < failures ? { kind: 'closed', failed } : open(event.atMs, openMs)
}

function whileHalfOpen(
  state: In<'half-open'>,
  event: BreakerEvent,
  { openMs, successes }: BreakerSettings,
): BreakerState {
  const isProbe = state.probing.includes(event.letterId)
  if (event.type === 'started')
    return isProbe ? state : { ...state, probing: [...state.probing, event.letterId] }
  if (!isProbe) return state
  const probing = state.probing.filter((id) => id !== event.letterId)
  if (event.type === 'failed' && !ownFault.has(event.category)) return open(event.atMs, openMs)
  if (event.type !== 'succeeded') return { ...state, probing }
  const succeeded = state.succeeded + 1
  return succeeded >= successes ? closedBreaker : { ...state, probing, succeeded }
}

function open(atMs: number, openMs: number): BreakerState {
  return { kind: 'open', untilMs: atMs + openMs }
}
