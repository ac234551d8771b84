import type { ErrorCategory } from '../letter/letter.ts'
import { blamesDependency } from './breaker.ts'

/** How many letters run against one destination at the same time. */
export interface ConcurrencySettings {
  /** Never more than this. No limit of its own unless said. */
  max: number
  /** Never fewer than this. 1 unless said. */
  min: number
}

/**
 * The limit that has been found to work, and when it was last lowered. Infinity: no failure has given reason for one.
 */
export interface ConcurrencyState {
  limit: number
  cutAtMs: number
}

export const unlimited: ConcurrencyState = { limit: Infinity, cutAtMs: -Infinity }

export type RunEnd =
  | { type: 'succeeded' }
  | { type: 'failed'; category: ErrorCategory; startedMs: number; atMs: number }

/**
 * Raises the limit a little with every success and halves it when what the letters need fails: the destination finds
 * its own pace. A wave of failures that began together counts as one. A limit that has grown to `enough` is none.
 */
export function adapted(
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

/** How many more may start. */
export function roomFor(
  state: ConcurrencyState,
  inFlight: number,
  { max = Infinity }: Partial<ConcurrencySettings> = {},
): number {
  const limit = Math.min(state.limit, max)
  return limit === Infinity ? Infinity : Math.max(0, Math.floor(limit) - inFlight)
}
