import { toTimestamp, type Timestamp } from '../letter/time.ts'

/** What a rule may look at. */
export const alertMetrics = [
  /** The share of `maxItems` that is used, from 0 to 1. Says nothing without a limit. */
  'utilisation',
  /** Letters in this state now. */
  'exhausted',
  'parked',
  'pending',
  /** Of the runs that ended since the rule last judged, the share that resolved their letter. */
  'success-rate',
] as const
type AlertMetric = (typeof alertMetrics)[number] | 'breaker-open'

type AlertSeverity = 'warning' | 'critical'

/** Crossed strictly: what is equal is still well. */
type Threshold = { above: number; below?: never } | { below: number; above?: never }

/** When to raise an alert, as data. */
export interface AlertRule {
  /** The alert stands under this name in the store: processes that share one mean the same by it. */
  name: string
  when: { metric: AlertMetric } & Threshold
  /** Only this queue. All queues together unless said. */
  queue?: string
  /** It must hold for so long. 0 unless said. */
  forMs?: number
  /** A rate over fewer runs is not judged, and they wait for more. 20 unless said. */
  minRuns?: number
  severity: AlertSeverity
  /** What to do about it, for people. */
  hint?: string
}

/** A rule that has been crossed. There is one at a time for each rule, however many letters are behind it. */
export interface Alert {
  name: string
  severity: AlertSeverity
  metric: AlertMetric
  /** What was measured when it was raised, or when it was cleared. */
  value: number
  above?: number
  below?: number
  queue?: string
  /** The same in words. */
  summary: string
  hint?: string
  raisedAt: Timestamp
  clearedAt?: Timestamp
}

/** Runs that ended, since the store was made. */
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
  /** Absent: there is no limit. */
  utilisation?: number
  all: QueueMeasures
  queues: ReadonlyMap<string, QueueMeasures>
  /** Whether a breaker is open, where that is known, by the name of its rule. */
  breakers?: ReadonlyMap<string, boolean>
}

/** What is remembered of a rule from one look to the next. Empty: all is well. */
export interface Standing {
  /** Since when the condition has held. */
  sinceMs?: number
  /** There while it is raised. */
  alert?: Alert
  /** Runs that have been judged. */
  judged?: Runs
}

export const defaultAlertRules: readonly AlertRule[] = [
  {
    name: 'nearly-full',
    when: { metric: 'utilisation', above: 0.8 },
    severity: 'critical',
    hint: 'Archive or remove letters, or raise maxItems: at the limit, new letters are refused.',
  },
  {
    name: 'many-exhausted',
    when: { metric: 'exhausted', above: 100 },
    severity: 'warning',
    hint: 'Look at the groups: what failed for the same cause can be retried together once it is fixed.',
  },
  {
    name: 'retries-fail',
    when: { metric: 'success-rate', below: 0.5 },
    severity: 'warning',
    hint: 'Most retries fail: look at the latest failures, and whether what they need is down.',
  },
]

/** How the names of alerts about breakers begin. */
export const breakerPrefix = 'breaker-open:'

/** The rule behind the alert that a breaker is open: of a queue, or of something that has a name of its own. */
export function breakerRule(kind: string, name: string): AlertRule {
  const isQueue = kind === 'queue'
  return {
    name: breakerPrefix + (isQueue ? name : `${kind}:${name}`),
    when: { metric: 'breaker-open', above: 0 },
    ...(isQueue ? { queue: name } : {}),
    severity: 'warning',
    hint: 'One call after another has failed. What needs it waits, and spends no retry, until a try succeeds.',
  }
}

export interface Evaluation {
  standing: Map<string, Standing>
  raised: Alert[]
  cleared: Alert[]
}

/**
 * What the rules say of these measures. A rule raises when its condition has held for `forMs`, clears when it no
 * longer holds, and does neither twice in a row. What cannot be measured or judged leaves its rule as it stood.
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
    const seen = measured(rule, measures, before)
    if (!seen) continue
    const after = step(rule, before, seen, atMs)
    evaluation.standing.set(rule.name, after)
    if (after.alert && !before.alert) evaluation.raised.push(after.alert)
    if (before.alert && !after.alert)
      evaluation.cleared.push({
        ...before.alert,
        value: seen.value,
        summary: inWords(rule, seen.value, 'no longer '),
        clearedAt: toTimestamp(atMs),
      })
  }
  return evaluation
}

interface Measured {
  value: number
  /** For a rate: all runs up to now. */
  runs?: Runs
}

function measured(rule: AlertRule, measures: Measures, before: Standing): Measured | undefined {
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
const usualMinRuns = 20

/** Counts that fell belong to another store than the last ones: then all of them are new. */
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
  if (ended === 0 || ended < (rule.minRuns ?? usualMinRuns)) return undefined
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
    summary: inWords(rule, value),
    ...(hint === undefined ? {} : { hint }),
    raisedAt: toTimestamp(atMs),
  }
}

function inWords({ name, when, queue }: AlertRule, value: number, not = ''): string {
  const { metric, above, below } = when
  if (metric === 'breaker-open')
    return `breaker of ${name.slice(breakerPrefix.length)} is ${not}open`
  const where = queue === undefined ? '' : ` in queue ${queue}`
  const inPercent = metric === 'utilisation' || metric === 'success-rate'
  const shown = (figure: number): string =>
    inPercent ? `${Math.round(figure * 1000) / 10} %` : String(figure)
  const limit = above === undefined ? `below ${shown(below)}` : `above ${shown(above)}`
  return `${metric.replace('-', ' ')} is ${shown(value)}${where}, ${not}${limit}`
}
