import type { Timestamp } from '../letter/time.ts'

/** Metrics with a threshold. */
export const countMetrics = [
  /** Used share of `maxItems`, from 0 to 1. Not evaluated without a limit. */
  'utilisation',
  /** Number of letters in this state. */
  'exhausted',
  'parked',
  'pending',
  /** Age of the oldest pending letter, in milliseconds. */
  'pending-age',
  /** Share of successful runs since the last evaluation of the rule. */
  'success-rate',
] as const
export type CountMetric = (typeof countMetrics)[number] | 'breaker-open'

/** The metrics of alert rules. */
export const alertMetrics = [
  ...countMetrics,
  /** Failures of a group that was never seen before. Each group has an alert of its own. */
  'new-group',
  /** A group that was resolved and came back. Each group has an alert of its own. */
  'regressed-group',
  /** Time without captures, of a queue that used to capture. Each queue has an alert of its own. */
  'silent',
] as const
type AlertMetric = (typeof alertMetrics)[number] | 'breaker-open'

type AlertSeverity = 'warning' | 'critical'

/** Exclusive: a value equal to the threshold raises no alert. */
export type Threshold = { above: number; below?: never } | { below: number; above?: never }

export type AlertCondition =
  | ({ metric: CountMetric } & Threshold)
  | {
      metric: 'new-group'
      /** Raised above so many failures. Default: 0. */
      above?: number
      /** Only failures within this time after the first one. Default: 1 h. */
      withinMs?: number
    }
  | { metric: 'regressed-group' }
  | {
      metric: 'silent'
      /** How long to observe a queue before it can be silent. Default: 7 days. */
      learnMs?: number
    }

/** A rule that raises an alert. */
export interface AlertRule {
  /** Name of the alert in the store. All processes on a store share the alert of a name. */
  name: string
  when: AlertCondition
  /** Limits the rule to one queue. Default: all queues together; `silent`: each queue. */
  queue?: string
  /** How long the condition must hold. Default: 0; `silent`: 1 h. */
  forMs?: number
  /** Minimum number of runs for a rate; fewer runs count next time. Default: 20. */
  minRuns?: number
  severity: AlertSeverity
  /** Advice for people. */
  hint?: string
}

/** A raised alert. Each cause has at most one, regardless of the number of letters. */
export interface Alert {
  /** The name of the rule; for groups and queues also the fingerprint or the queue. */
  name: string
  severity: AlertSeverity
  metric: AlertMetric
  /** The value when the alert was raised or cleared. */
  value: number
  above?: number
  below?: number
  queue?: string
  /** The group that the alert is about. */
  group?: string
  /** First line of the newest failure of the group. It may contain data of the payload. */
  title?: string
  /** A description for people, without data of payloads. */
  summary: string
  hint?: string
  raisedAt: Timestamp
  clearedAt?: Timestamp
  /** Set when a person acknowledged the alert. No reminders are sent until the alert clears. */
  acknowledged?: Acknowledgement
}

export interface Acknowledgement {
  by: string
  at: Timestamp
  note?: string
}

export const defaultAlertRules: readonly AlertRule[] = [
  {
    name: 'nearly-full',
    when: { metric: 'utilisation', above: 0.8 },
    severity: 'critical',
    hint: 'Archive or remove letters, or raise maxItems: at the limit, new letters are rejected.',
  },
  {
    name: 'many-exhausted',
    when: { metric: 'exhausted', above: 100 },
    severity: 'warning',
    hint: 'Check the groups: letters with the same cause can be retried together once it is fixed.',
  },
  {
    name: 'retries-fail',
    when: { metric: 'success-rate', below: 0.5 },
    severity: 'warning',
    hint: 'Most retries fail: check the latest failures, and whether a dependency is down.',
  },
  {
    name: 'group-regressed',
    when: { metric: 'regressed-group' },
    severity: 'warning',
    hint: 'A cause that was resolved is back: compare the version that fails with that of the fix.',
  },
]

/** Prefix of the names of breaker alerts. */
export const breakerPrefix = 'breaker-open:'

/** The rule of an open breaker: of a queue, a dependency or a policy. */
export function breakerRule(kind: string, name: string): AlertRule {
  const isQueue = kind === 'queue'
  return {
    name: breakerPrefix + (isQueue ? name : `${kind}:${name}`),
    when: { metric: 'breaker-open', above: 0 },
    ...(isQueue ? { queue: name } : {}),
    severity: 'warning',
    hint: 'Calls keep failing. Letters that need it wait, without using up retries, until a probe succeeds.',
  }
}
