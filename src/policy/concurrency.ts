import type { ErrorCategory } from '../letter/letter.ts'
import { blamesDependency } from './breaker.ts'

/** Limits for the number of letters that run at once. */
export interface ConcurrencySettings {
  /** Upper limit. Default: none. */
  max: number
  /** Lower limit. Default: 1. */
  min: number
}

/** The present limit, and when it was last lowered. Infinity: no failure so far. */
export interface ConcurrencyState {
  limit: number
  cutAtMs: number
}

export const unlimited: ConcurrencyState = { limit: Infinity, cutAtMs: -Infinity }

export type RunEnd =
  | { type: 'succeeded' }
  | { type: 'failed'; category: ErrorCategory; startedMs: number; atMs: number }

/**
 * Adaptive concurrency: raises the limit a little with every success and halves it when a
 * dependency fails. Failures of runs that started before the last cut do not count again. A limit
 * that has grown to `enough` is lifted.
 */
export function adaptLimit(
  state: ConcurrencyState,
  end: RunEnd,
  inFlight: number,
  enough: number,
  settings: Partial<ConcurrencySettings> = {},
): ConcurrencyState {
  const { min = 1, max = Infinity } = settings
  const limit = Math.min(state.limit, max)
  if (end.type === 'succeeded') {
    if (limit === Infinity) return state
    const raised = limit + 1 / limit
    return raised >= Math.min(max, enough) ? { ...state, limit: max } : { ...state, limit: raised }
  }
  if (!blamesDependency(end.category) || end.startedMs <= state.cutAtMs) return state
  return { limit: Math.max(min, Math.min(limit, inFlight) / 2), cutAtMs: end.atMs }
}

/** Number of letters that may start now. */
export function roomFor(
  state: ConcurrencyState,
  inFlight: number,
  { max = Infinity }: Partial<ConcurrencySettings> = {},
): number {
  const limit = Math.min(state.limit, max)
  return limit === Infinity ? Infinity : Math.max(0, Math.floor(limit) - inFlight)
}
