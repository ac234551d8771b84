import type { GroupStatus } from '../letter/group.ts'
import type { Alert, AlertRule } from './alert-rule.ts'
import type { Silence } from './silence.ts'

/** Runs since the store was created. */
export interface Runs {
  resolved: number
  failed: number
}

export interface QueueMeasures extends Runs {
  exhausted: number
  parked: number
  pending: number
  /** Failures that were captured since the store was created. */
  captured: number
  /** Age of the oldest pending letter. Absent: not measured, or no such letter. */
  pendingAgeMs?: number
}

export interface GroupMeasures {
  status: GroupStatus
  /** The group was never seen before, and its alert was not raised yet. */
  isNew: boolean
  /** Some of its letters are neither resolved nor archived. */
  hasOpenLetters: boolean
  failures: number
  firstMs: number
  queues: readonly string[]
  /** Name of the newest error. */
  errorName: string
  title: string
}

export interface Measures {
  /** Absent without a limit. */
  utilisation?: number
  all: QueueMeasures
  queues: ReadonlyMap<string, QueueMeasures>
  /** Whether a known breaker is open, by the name of its rule. */
  breakers?: ReadonlyMap<string, boolean>
  /** New and regressed groups, and those that have an alert, by fingerprint. */
  groups?: ReadonlyMap<string, GroupMeasures>
  /** Time between two evaluations. Default: 1 min. */
  everyMs?: number
}

/** State of a rule between evaluations. Empty: no problem. */
export interface RuleState {
  /** Start of the condition. */
  sinceMs?: number
  /** Present while the alert is raised. */
  alert?: Alert
  /** Runs that have been evaluated. */
  judged?: Runs
  /** Captures over time, for the metric `silent`. */
  silence?: Silence
  /** The alert of a new group was raised and cleared: the group is not new any more. */
  done?: true
}

/** A rule for one cause: of rules about groups or queues, there is one for each of them. */
export interface Check extends AlertRule {
  group?: string
  /** Name of the rule, if it has many checks. */
  rule?: string
}

/** What a check measured. */
export interface Measured {
  value: number
  crossed: boolean
  /** State that is kept between evaluations. */
  state?: Pick<RuleState, 'judged' | 'silence'>
  /** The group, unless it is not known any more. */
  group?: GroupMeasures
  /** For `silent`: the silence from which the alert is raised. */
  limitMs?: number
}
