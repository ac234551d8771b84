import { toMs } from '../letter/time.ts'
import type { BulkLimits, BulkProgress } from '../letter/bulk-action.ts'
import { actedOn, judgeRamp, startRamp, type Ramp } from './ramp.ts'
import { msUntilOpen } from './time-window.ts'

export interface StepInput {
  limits: BulkLimits
  progress: BulkProgress
  /** Absent: the action starts or is resumed. */
  ramp?: Ramp | undefined
  nowMs: number
  /** Letters that the rate limit allows now. */
  tokens: number
}

/** What an action does next. */
export type Step =
  | { kind: 'act'; letters: number; ramp?: Ramp }
  /** Nothing for `ms`, or until an outcome is known. */
  | { kind: 'wait'; ms: number }
  | { kind: 'stop'; why: string }
  | { kind: 'finish' }

/** The next step of an action that runs. The only place that decides this. */
export function decideStep({ limits, progress, ramp, nowMs, tokens }: StepInput): Step {
  const { concurrency, startAt, window, canary } = limits
  const { pending, waiting } = progress
  if (pending === 0) return waiting === 0 ? { kind: 'finish' } : { kind: 'wait', ms: Infinity }
  const opensInMs = Math.max(
    startAt === undefined ? 0 : toMs(startAt) - nowMs,
    window ? msUntilOpen(window, nowMs) : 0,
  )
  let allowed = Math.min(pending, concurrency - waiting)
  let nextRamp: Ramp | undefined
  if (canary) {
    const judged = judgeRamp(canary, ramp ?? startRamp(canary, progress), progress)
    if (judged.kind === 'stop') return judged
    if (judged.kind === 'wait') return { kind: 'wait', ms: Infinity }
    nextRamp = judged.ramp
    allowed = Math.min(allowed, nextRamp.allowed - actedOn(progress))
  }
  if (allowed <= 0) return { kind: 'wait', ms: Infinity }
  if (opensInMs > 0) return { kind: 'wait', ms: opensInMs }
  const letters = Math.min(allowed, Math.floor(tokens))
  if (letters <= 0)
    return { kind: 'wait', ms: Math.ceil((1000 * (1 - tokens)) / (limits.rate ?? 1000)) }
  return { kind: 'act', letters, ...(nextRamp ? { ramp: nextRamp } : {}) }
}
