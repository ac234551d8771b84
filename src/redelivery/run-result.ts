import type { FailedResult } from '../letter/result.ts'
import type { Unfit } from '../policy/decide.ts'
import type { Understood } from '../policy/judge.ts'

/** The result of running a claimed letter. */
export type RunResult =
  | { kind: 'resolved' }
  /** With `deferMs` an outage caused the failure: not counted, and the next run waits so long. */
  | ({ kind: 'failed'; report: FailedResult; deferMs?: number } & Understood)
  /** The letter must not run, for example because it has expired. */
  | ({ kind: 'unfit' } & Unfit)
  /** Not run, or ended by us: the run is not counted. */
  | { kind: 'released'; report?: FailedResult }

export type FailedRunResult = Extract<RunResult, { kind: 'failed' }>
