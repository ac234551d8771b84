/** Rate limit: a token bucket that fills at a steady rate. Each run takes one token. */
export interface Budget {
  /** Average number of runs per second. May be below 1. */
  perSecond: number
  /** Maximum burst after a quiet time. Default: the runs of one second, and at least 1. */
  burst?: number
}

export interface BucketState {
  tokens: number
  atMs: number
}

/** Starts with one token, so that a process that keeps restarting does not burst each time. */
export function newBucket(atMs: number): BucketState {
  return { tokens: 1, atMs }
}

/** The bucket with the tokens of the time since `atMs` added. */
function refill(state: BucketState, budget: Budget, nowMs: number): BucketState {
  const passedMs = Math.max(0, nowMs - state.atMs)
  const tokens = Math.min(burstOf(budget), state.tokens + (passedMs * budget.perSecond) / 1000)
  return { tokens, atMs: Math.max(nowMs, state.atMs) }
}

/** Takes one token. The number of tokens may become negative when the share of a worker shrinks. */
export function spend(state: BucketState, budget: Budget, nowMs: number): BucketState {
  const { tokens, atMs } = refill(state, budget, nowMs)
  return { tokens: tokens - 1, atMs }
}

/** Number of runs that may start now. */
export function availableRuns(state: BucketState, budget: Budget, nowMs: number): number {
  return Math.max(0, Math.floor(refill(state, budget, nowMs).tokens + rounding))
}

/** Time until the next run may start, or the runs of a tenth of a second if those are more. */
export function refillMs(state: BucketState, budget: Budget, nowMs: number): number {
  const wanted = Math.min(burstOf(budget), Math.max(1, budget.perSecond / 10))
  const missing = wanted - refill(state, budget, nowMs).tokens
  return Math.max(0, Math.ceil((missing * 1000) / budget.perSecond))
}

/** The part of one worker of a budget that several workers share. */
export function shareOf(budget: Budget, workers: number): Budget {
  if (workers <= 1) return budget
  const perSecond = budget.perSecond / workers
  return { perSecond, burst: Math.max(1, burstOf(budget) / workers) }
}

/** Tolerance for rounding errors when tokens are fractions. */
const rounding = 1e-9

function burstOf({ perSecond, burst }: Budget): number {
  return burst ?? Math.max(1, perSecond)
}
