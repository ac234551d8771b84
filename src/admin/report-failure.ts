import type { DeadLetter } from '../letter/letter.ts'
import type { Change, Mover } from '../letter/moves.ts'
import { changeAfterFailure } from '../policy/after-run.ts'
import { understand } from '../policy/judge.ts'
import type { Clock } from '../clock/clock.ts'
import type { ObserverHub } from '../observer.ts'
import type { Customs } from '../policy/backoff.ts'
import type { Rule } from '../policy/classify.ts'
import type { FingerprintRule } from '../policy/fingerprint-rules.ts'
import type { Redaction } from '../policy/redaction/redaction.ts'
import type { RetryLimits } from '../policy/retry-limits.ts'

export interface FailureOptions {
  clock: Clock
  hub: ObserverHub
  classifierRules: readonly Rule[]
  fingerprints?: readonly FingerprintRule[]
  backoffs: Customs
  /** What is hidden of the letters of a queue. Default: nothing. */
  redactionFor?: (queue: string) => Redaction | undefined
  /** Retry limits of a queue. */
  limitsFor: (queue: string) => RetryLimits
}

/** The change after a failed run that happened elsewhere. It counts like a run of a handler. */
export function reportFailure(
  options: FailureOptions,
  letter: DeadLetter,
  by: Mover,
  error: unknown,
): Change {
  const { clock, hub, classifierRules, fingerprints, backoffs, limitsFor } = options
  const { queue } = letter
  const report = (during: string, problem: string): void =>
    hub.emit({ type: 'error', during: `${during} ${queue}`, error: problem })
  const onProblem = (problem: string): void => report('classifying', problem)
  const { judged, template } = understand(
    error,
    queue,
    by.at,
    classifierRules,
    onProblem,
    undefined,
    fingerprints,
    options.redactionFor?.(queue),
  )
  // No claim has counted this run, unless a worker has claimed the letter.
  const retries = letter.state === 'pending' ? letter.retries + 1 : letter.retries
  const { change, problem } = changeAfterFailure({
    letter: { ...letter, retries },
    by,
    judged,
    limits: limitsFor(queue),
    random: () => clock.random(),
    customs: backoffs,
    policyOverride: template?.backoff,
  })
  if (problem) report('backoff of', problem)
  return change
}
