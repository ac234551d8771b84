/** How much a destination may be asked: a bucket that fills at a steady rate, and a run takes one token. */
export interface Budget {
  /** Runs a second, in the long run. May be below 1. */
  perSecond: number
  /** Runs that may come at once after a quiet time. A second's worth, and at least 1, unless said. */
  burst?: number
}

export interface BucketState {
  tokens: number
  atMs: number
}

/** A bucket starts nearly empty, so that a process that restarts again and again does not spend a burst each time. */
export function freshBucket(atMs: number): BucketState {
  return { tokens: 1, atMs }
}

/** The bucket as it stands at this moment. */
function refilled(state: BucketState, budget: Budget, nowMs: number): BucketState {
  const passedMs = Math.max(0, nowMs - state.atMs)
  const tokens = Math.min(burstOf(budget), state.tokens + (passedMs * budget.perSecond) / 1000)
  return { tokens, atMs: Math.max(nowMs, state.atMs) }
}

/** Takes one token; a bucket can run into debt when what was counted on has been spent elsewhere. */
export function spend(state: BucketState, budget: Budget, nowMs: number): BucketState {
  const { tokens, atMs } = refilled(state, budget, nowMs)
  return { tokens: tokens - 1, atMs }
}

/** Runs that may start now. */
export function affordable(state: BucketState, budget: Budget, nowMs: number): number {
  return Math.max(0, Math.floor(refilled(state, budget, nowMs).tokens + rounding))
}

/** How long until it is worth looking again: for the next run, or a tenth of a second's worth of them. */
export function refillMs(state: BucketState, budget: Budget, nowMs: number): number {
  const wanted = Math.min(burstOf(budget), Math.max(1, budget.perSecond / 10))
  const missing = wanted - refilled(state, budget, nowMs).tokens
  return Math.max(0, Math.ceil((missing * 1000) / budget.perSecond))
}

/** One worker's part of a budget that several share. */
export function shareOf(budget: Budget, workers: number): Budget {
  if (workers <= 1) return budget
  const perSecond = budget.perSecond / workers
  return { perSecond, burst: Math.max(1, burstOf(budget) / workers) }
}

/** What is lost to rounding when tokens come in thirds of one. */
const rounding = 1e-9

function burstOf({ perSecond, burst }: Budget): number {
  return burst ?? Math.max(1, perSecond)
}
