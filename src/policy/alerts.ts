import { toTimestamp, type Timestamp } from '../letter/time.ts'

/** The metrics of alert rules. */
export const alertMetrics = [
  /** Used share of `maxItems`, from 0 to 1. Not evaluated without a limit. */
  'utilisation',
  /** Number of letters in this state. */
  'exhausted',
  'parked',
  'pending',
  /** Share of successful runs since the last evaluation of the rule. */
  'success-rate',
] as const
type AlertMetric = (typeof alertMetrics)[number] | 'breaker-open'

type AlertSeverity = 'warning' | 'critical'

/** Exclusive: a value equal to the threshold raises no alert. */
type Threshold = { above: number; below?: never } | { below: number; above?: never }

/** A rule that raises an alert. */
export interface AlertRule {
  /** Name of the alert in the store. All processes on a store share the alert of a name. */
  name: string
  when: { metric: AlertMetric } & Threshold
  /** Limits the rule to one queue. Default: all queues together. */
  queue?: string
  /** How long the condition must hold. Default: 0. */
  forMs?: number
  /** Minimum number of runs for a rate; fewer runs count next time. Default: 20. */
  minRuns?: number
  severity: AlertSeverity
  /** Advice for people. */
  hint?: string
}

/** A raised alert. Each rule has at most one, regardless of the number of letters. */
export interface Alert {
  name: string
  severity: AlertSeverity
  metric: AlertMetric
  /** The value when the alert was raised or cleared. */
  value: number
  above?: number
  below?: number
  queue?: string
  /** A description for people. */
  summary: string
  hint?: string
  raisedAt: Timestamp
  clearedAt?: Timestamp
}

/** Runs since the store was created. */
interface Runs {
  resolved: number
  failed: number
}

export interface QueueMeasures extends Runs {
  exhausted: number
  parked: number
  pending: number
}

export interface Measures {
  /** Absent without a limit. */
  utilisation?: number
  all: QueueMeasures
  queues: ReadonlyMap<string, QueueMeasures>
  /** Whether a known breaker is open, by the name of its rule. */
  breakers?: ReadonlyMap<string, boolean>
}

/** State of a rule between evaluations. Empty: no problem. */
export interface Standing {
  /** Start of the condition. */
  sinceMs?: number
  /** Present while the alert is raised. */
  alert?: Alert
  /** Runs that have been evaluated. */
  judged?: Runs
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

export interface Evaluation {
  standing: Map<string, Standing>
  raised: Alert[]
  cleared: Alert[]
}

/**
 * Evaluates the rules. A rule raises its alert when its condition has held for `forMs` and clears
 * it when the condition no longer holds. A rule that cannot be measured keeps its state.
 */
export function evaluate(
  rules: readonly AlertRule[],
  measures: Measures,
  standing: ReadonlyMap<string, Standing>,
  atMs: number,
): Evaluation {
  const evaluation: Evaluation = { standing: new Map(standing), raised: [], cleared: [] }
  for (const rule of rules) {
    const before = standing.get(rule.name) ?? {}
    const seen = measure(rule, measures, before)
    if (!seen) continue
    const after = step(rule, before, seen, atMs)
    evaluation.standing.set(rule.name, after)
    if (after.alert && !before.alert) evaluation.raised.push(after.alert)
    if (before.alert && !after.alert)
      evaluation.cleared.push({
        ...before.alert,
        value: seen.value,
        summary: describe(rule, seen.value, 'no longer '),
        clearedAt: toTimestamp(atMs),
      })
  }
  return evaluation
}

interface Measured {
  value: number
  /** For a rate: all runs so far. */
  runs?: Runs
}

function measure(rule: AlertRule, measures: Measures, before: Standing): Measured | undefined {
  const { metric } = rule.when
  if (metric === 'utilisation')
    return measures.utilisation === undefined ? undefined : { value: measures.utilisation }
  if (metric === 'breaker-open') {
    const open = measures.breakers?.get(rule.name)
    return open === undefined ? undefined : { value: open ? 1 : 0 }
  }
  const counts =
    rule.queue === undefined ? measures.all : (measures.queues.get(rule.queue) ?? nothing)
  return metric === 'success-rate' ? rateOf(rule, counts, before) : { value: counts[metric] }
}

const nothing: QueueMeasures = { exhausted: 0, parked: 0, pending: 0, resolved: 0, failed: 0 }
const defaultMinRuns = 20

/** Counts below the previous ones come from another store: then all of them are new. */
function rateOf(
  rule: AlertRule,
  counts: QueueMeasures,
  { judged }: Standing,
): Measured | undefined {
  const runs: Runs = { resolved: counts.resolved, failed: counts.failed }
  const fell = judged && (runs.resolved < judged.resolved || runs.failed < judged.failed)
  const resolved = runs.resolved - (judged && !fell ? judged.resolved : 0)
  const failed = runs.failed - (judged && !fell ? judged.failed : 0)
  const ended = resolved + failed
  if (ended === 0 || ended < (rule.minRuns ?? defaultMinRuns)) return undefined
  return { value: resolved / ended, runs }
}

function step(
  rule: AlertRule,
  before: Standing,
  { value, runs }: Measured,
  atMs: number,
): Standing {
  const judged = runs ? { judged: runs } : {}
  if (!isCrossed(rule.when, value)) return judged
  const sinceMs = before.sinceMs ?? atMs
  const lasted = atMs - sinceMs >= (rule.forMs ?? 0)
  const alert = before.alert ?? (lasted ? alertOf(rule, value, atMs) : undefined)
  return { ...judged, sinceMs, ...(alert ? { alert } : {}) }
}

function isCrossed({ above, below }: Threshold, value: number): boolean {
  return above === undefined ? value < below : value > above
}

function alertOf(rule: AlertRule, value: number, atMs: number): Alert {
  const { name, severity, queue, hint, when } = rule
  return {
    name,
    severity,
    ...when,
    value,
    ...(queue === undefined ? {} : { queue }),
    summary: describe(rule, value),
    ...(hint === undefined ? {} : { hint }),
    raisedAt: toTimestamp(atMs),
  }
}

function describe({ name, when, queue }: AlertRule, value: number, not = ''): string {
  const { metric, above, below } = when
  if (metric === 'breaker-open')
    return `breaker of ${name.slice(breakerPrefix.length)} is ${not}open`
  const where = queue === undefined ? '' : ` in queue ${queue}`
  const inPercent = metric === 'utilisation' || metric === 'success-rate'
  const format = (figure: number): string =>
    inPercent ? `${Math.round(figure * 1000) / 10} %` : String(figure)
  const limit = above === undefined ? `below ${format(below)}` : `above ${format(above)}`
  return `${metric.replace('-', ' ')} is ${format(value)}${where}, ${not}${limit}`
}
