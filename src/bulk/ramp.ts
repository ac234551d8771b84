import type { BulkProgress, Canary } from '../letter/bulk-action.ts'

/** The share of failures means little before so many outcomes are known. */
const minOutcomes = 50

/** How far the canary of an action has come. Stored with the action. */
export interface Ramp {
  /** Number of letters of the present step. */
  size: number
  /** Number of letters of all steps up to the present one, of which the last may be skipped. */
  allowed: number
  /** Outcomes when the present step began, and when the action was started or resumed. */
  stepFrom: Outcomes
  startFrom: Outcomes
}

interface Outcomes {
  succeeded: number
  failed: number
}

export type RampResult =
  | { kind: 'continue'; ramp: Ramp }
  /** The present step is not over: no further letters before its outcomes are known. */
  | { kind: 'wait' }
  | { kind: 'stop'; why: string }

/** The ramp of an action that starts or is resumed. */
export function startRamp({ first }: Canary, progress: BulkProgress): Ramp {
  const from = outcomesOf(progress)
  return { size: first, allowed: actedOn(progress) + first, stepFrom: from, startFrom: from }
}

/** What the outcomes so far allow: more letters of this step, the next step, or none. */
export function judgeRamp(canary: Canary, ramp: Ramp, progress: BulkProgress): RampResult {
  const now = outcomesOf(progress)
  const all = outcomesSince(ramp.startFrom, now)
  const known = all.succeeded + all.failed
  if (known >= minOutcomes && all.failed > canary.maxFailureShare * known)
    return {
      kind: 'stop',
      why: `${all.failed} of ${known} letters failed, the limit is ${percent(canary.maxFailureShare)} (maxFailureShare)`,
    }
  if (actedOn(progress) < ramp.allowed) return { kind: 'continue', ramp }
  if (progress.waiting > 0) return { kind: 'wait' }
  const step = outcomesSince(ramp.stepFrom, now)
  if (step.failed > 0 && step.succeeded === 0)
    return {
      kind: 'stop',
      why: `all ${step.failed} letters of the step of ${ramp.size} failed`,
    }
  const size = ramp.size * canary.factor
  const allowed = actedOn(progress) + size
  return { kind: 'continue', ramp: { ...ramp, size, allowed, stepFrom: now } }
}

/** Number of letters that the action has acted on. */
export function actedOn(progress: BulkProgress): number {
  return countAll(progress) - progress.pending
}

function countAll(progress: BulkProgress): number {
  return Object.values(progress).reduce((sum, count) => sum + count, 0)
}

function outcomesOf({ succeeded, indeterminate, failed }: BulkProgress): Outcomes {
  return { succeeded: succeeded + indeterminate, failed }
}

function outcomesSince(from: Outcomes, now: Outcomes): Outcomes {
  return { succeeded: now.succeeded - from.succeeded, failed: now.failed - from.failed }
}

function percent(share: number): string {
  return `${Number((share * 100).toFixed(1))} %`
}
