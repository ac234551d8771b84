import type { ErrorCategory } from '../letter/letter.ts'
import { blamesDependency } from './breaker.ts'

/** Limits for the number of letters that run at once. */
export interface ConcurrencySettings {
  /** Upper limit. Default: none. */
  max: number
  /** Lower limit. Default: 1. */
  min: number
}

/** Without `max`, there is no upper limit. */
export const concurrencyDefaults: Pick<ConcurrencySettings, 'min'> = { min: 1 }

/** The present limit, and when it was last lowered. Infinity: no failure so far. */
export interface ConcurrencyState {
  limit: number
  cutAtMs: number
  /** After an outage: the limit doubles with each round of successes until there is none. */
  recovering?: true
}

export const unlimited: ConcurrencyState = { limit: Infinity, cutAtMs: -Infinity }

export type RunEnd =
  | { type: 'succeeded' }
  | { type: 'failed'; category: ErrorCategory; startedMs: number; atMs: number }

/**
 * The state after a breaker has closed: one run at a time at first, so that the letters that waited
 * do not all reach a dependency that has only just recovered.
 */
export function afterOutage(
  atMs: number,
  settings: Partial<ConcurrencySettings> | false = {},
): ConcurrencyState {
  const { min = concurrencyDefaults.min } = settings || {}
  return { limit: min, cutAtMs: atMs, recovering: true }
}

/**
 * Adaptive concurrency: raises the limit a little with every success and halves it when a
 * dependency fails. Failures of runs that started before the last cut do not count again. A limit
 * that has grown to `enough` is lifted. While recovering from an outage, every success raises the
 * limit by one, until a failure ends that. False: there is only the limit after an outage, which
 * failures do not change; the breaker opens again if they are many.
 */
export function adaptLimit(
  state: ConcurrencyState,
  end: RunEnd,
  inFlight: number,
  enough: number,
  settings: Partial<ConcurrencySettings> | false = {},
): ConcurrencyState {
  const { min = concurrencyDefaults.min, max = Infinity } = settings || {}
  const { cutAtMs, recovering } = state
  const limit = limitOf(state, settings)
  if (end.type === 'succeeded') {
    if (limit === Infinity) return state
    const raised = limit + (recovering ? 1 : 1 / limit)
    return raised >= Math.min(max, enough) ? { limit: max, cutAtMs } : { ...state, limit: raised }
  }
  if (settings === false) return state
  if (!blamesDependency(end.category) || end.startedMs <= cutAtMs) return state
  return { limit: Math.max(min, Math.min(limit, inFlight) / 2), cutAtMs: end.atMs }
}

/** Number of letters that may start now. */
export function roomFor(
  state: ConcurrencyState,
  inFlight: number,
  settings: Partial<ConcurrencySettings> | false = {},
): number {
  const limit = limitOf(state, settings)
  return limit === Infinity ? Infinity : Math.max(0, Math.floor(limit) - inFlight)
}

function limitOf(
  { limit, recovering }: ConcurrencyState,
  settings: Partial<ConcurrencySettings> | false,
): number {
  if (settings === false) return recovering ? limit : Infinity
  return Math.min(limit, settings.max ?? Infinity)
}
