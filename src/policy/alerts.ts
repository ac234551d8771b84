import { toTimestamp } from '../letter/time.ts'
import type { Alert, AlertCondition, AlertRule, Threshold } from './alert-rule.ts'
import type {
  Check,
  GroupMeasures,
  Measured,
  Measures,
  QueueMeasures,
  Runs,
  RuleState,
} from './alert-measures.ts'
import { describeCleared, describeRaised } from './alert-summary.ts'
import { observe, silenceLimitMs, silentMs } from './silence.ts'

/** Raised alerts of one rule about groups. One further alert tells the number of other groups. */
export const maxGroupAlerts = 50

/**
 * The checks of the rules: one for each rule, and for rules about groups and queues one for each
 * group and queue. If two have the same name, the first one counts.
 */
export function checksOf(
  rules: readonly AlertRule[],
  measures: Measures,
  states: ReadonlyMap<string, RuleState>,
): Check[] {
  const names = new Set<string>()
  return [...rules]
    .toSorted((a, b) => Number(isPerCause(a)) - Number(isPerCause(b)))
    .flatMap((rule) => (isPerCause(rule) ? checksPerCause(rule, measures, states) : [rule]))
    .filter(({ name }) => !names.has(name) && names.add(name))
}

function isPerCause({ when, queue }: AlertRule): boolean {
  return isAboutGroups(when) || (when.metric === 'silent' && queue === undefined)
}

export function isAboutGroups({ metric }: AlertCondition): boolean {
  return metric === 'new-group' || metric === 'regressed-group'
}

function checksPerCause(
  rule: AlertRule,
  { queues, groups = new Map() }: Measures,
  states: ReadonlyMap<string, RuleState>,
): Check[] {
  if (!isAboutGroups(rule.when))
    return [...queues.keys()].map((queue) => ({ ...rule, name: `${rule.name}:${queue}`, queue }))
  const checks: Check[] = []
  for (const [group, { queues: names, isNew, status }] of groups) {
    const name = `${rule.name}:${group}`
    const isRelevant = rule.when.metric === 'new-group' ? isNew : status === 'regressed'
    if (states.get(name)?.alert || (isRelevant && isIn(rule.queue, names)))
      checks.push({ ...rule, name, group, rule: rule.name })
  }
  // A group that is not known any more clears its alert.
  for (const [name, { alert }] of states) {
    const group = alert?.group
    if (group !== undefined && !groups.has(group) && name === `${rule.name}:${group}`)
      checks.push({ ...rule, name, group, rule: rule.name })
  }
  return [...checks, { ...rule, name: `${rule.name}:more`, rule: rule.name }]
}

function isIn(queue: string | undefined, names: readonly string[]): boolean {
  return queue === undefined || names.includes(queue)
}

export interface Evaluation {
  states: Map<string, RuleState>
  raised: Alert[]
  cleared: Alert[]
}

/**
 * Evaluates checks. A check raises its alert when its condition has held for `forMs` and clears it
 * when the condition no longer holds. A check that cannot be measured keeps its state.
 */
export function evaluate(
  checks: readonly Check[],
  measures: Measures,
  states: ReadonlyMap<string, RuleState>,
  atMs: number,
): Evaluation {
  const evaluation: Evaluation = { states: new Map(states), raised: [], cleared: [] }
  const limiter = new GroupLimiter(checks, states)
  for (const check of checks) {
    const before = states.get(check.name) ?? {}
    const measured = limiter.measure(check) ?? measure(check, measures, before, atMs)
    if (!measured) continue
    const after = step(check, before, measured, atMs)
    if (after.alert && !before.alert) {
      if (!limiter.admits(check)) continue
      evaluation.raised.push(after.alert)
    }
    evaluation.states.set(check.name, after)
    if (before.alert && !after.alert)
      evaluation.cleared.push({
        ...before.alert,
        value: measured.value,
        summary: describeCleared(check, measured, before.alert),
        clearedAt: toTimestamp(atMs),
      })
  }
  return evaluation
}

/** Limits the alerts of rules about groups, and counts the groups beyond the limit. */
class GroupLimiter {
  readonly #raised = new Map<string, number>()
  readonly #beyond = new Map<string, number>()

  constructor(checks: readonly Check[], states: ReadonlyMap<string, RuleState>) {
    for (const { name, rule, group } of checks)
      if (rule !== undefined && group !== undefined && states.get(name)?.alert)
        this.#raised.set(rule, (this.#raised.get(rule) ?? 0) + 1)
  }

  /** Whether a check may raise its alert. */
  admits({ rule, group }: Check): boolean {
    if (rule === undefined || group === undefined) return true
    const raised = this.#raised.get(rule) ?? 0
    const counts = raised < maxGroupAlerts ? this.#raised : this.#beyond
    counts.set(rule, (counts.get(rule) ?? 0) + 1)
    return raised < maxGroupAlerts
  }

  /** For the last check of a rule about groups: the number of groups beyond the limit. */
  measure({ rule, group }: Check): Measured | undefined {
    if (rule === undefined || group !== undefined) return undefined
    const value = this.#beyond.get(rule) ?? 0
    return { value, crossed: value > 0 }
  }
}

function measure(
  check: Check,
  measures: Measures,
  before: RuleState,
  atMs: number,
): Measured | undefined {
  const { when } = check
  const counts =
    check.queue === undefined ? measures.all : (measures.queues.get(check.queue) ?? nothing)
  switch (when.metric) {
    case 'utilisation':
      return measures.utilisation === undefined ? undefined : compare(when, measures.utilisation)
    case 'breaker-open': {
      const open = measures.breakers?.get(check.name)
      return open === undefined ? undefined : compare(when, open ? 1 : 0)
    }
    case 'success-rate':
      return measureRate(check, when, counts, before)
    case 'pending-age':
      return compare(when, counts.pendingAgeMs ?? 0)
    case 'new-group':
    case 'regressed-group':
      return measureGroup(when, measures.groups?.get(check.group ?? ''), before, atMs)
    case 'silent':
      return measureSilence(check, when, counts.captured, measures, before, atMs)
    default:
      return compare(when, counts[when.metric])
  }
}

function compare({ above, below }: Threshold, value: number): Measured {
  return { value, crossed: above === undefined ? value < below : value > above }
}

const defaultWithinMs = 3_600_000

function measureGroup(
  when: Extract<AlertCondition, { metric: 'new-group' | 'regressed-group' }>,
  group: GroupMeasures | undefined,
  { alert, done }: RuleState,
  atMs: number,
): Measured {
  if (!group || done) return { value: 0, crossed: false }
  const { status, hasOpenLetters, failures, firstMs } = group
  if (when.metric === 'regressed-group')
    return { value: failures, crossed: status === 'regressed', group }
  const isOpen = (status === 'open' || status === 'regressed') && hasOpenLetters
  const { above = 0, withinMs = defaultWithinMs } = when
  const isMany = failures > above && atMs - firstMs <= withinMs
  return { value: failures, crossed: isOpen && (alert !== undefined || isMany), group }
}

const defaultSilenceMs = 3_600_000
const defaultLearnMs = 7 * 86_400_000
const defaultEveryMs = 60_000

function measureSilence(
  { forMs = defaultSilenceMs }: Check,
  { learnMs = defaultLearnMs }: Extract<AlertCondition, { metric: 'silent' }>,
  captured: number,
  { everyMs = defaultEveryMs }: Measures,
  before: RuleState,
  atMs: number,
): Measured {
  const limits = { forMs, learnMs, everyMs }
  const hasAlert = before.alert !== undefined
  const silence = observe(before.silence, captured, atMs, limits, hasAlert)
  const limitMs = silenceLimitMs(silence, limits)
  const value = silentMs(silence, atMs)
  // A raised alert stays until the queue captures, also when unobserved time shortens the silence.
  const crossed = hasAlert ? captured === before.silence?.count : value > limitMs
  return { value, crossed, state: { silence }, limitMs }
}

const nothing: QueueMeasures = {
  exhausted: 0,
  parked: 0,
  pending: 0,
  resolved: 0,
  failed: 0,
  captured: 0,
}
const defaultMinRuns = 20

/** Counts below the previous ones come from another store: then all of them are new. */
function measureRate(
  { minRuns = defaultMinRuns }: Check,
  when: Threshold,
  counts: QueueMeasures,
  { judged }: RuleState,
): Measured | undefined {
  const runs: Runs = { resolved: counts.resolved, failed: counts.failed }
  const fell = judged && (runs.resolved < judged.resolved || runs.failed < judged.failed)
  const resolved = runs.resolved - (judged && !fell ? judged.resolved : 0)
  const failed = runs.failed - (judged && !fell ? judged.failed : 0)
  const ended = resolved + failed
  if (ended === 0 || ended < minRuns) return undefined
  return { ...compare(when, resolved / ended), state: { judged: runs } }
}

function step(check: Check, before: RuleState, measured: Measured, atMs: number): RuleState {
  const { state = {}, crossed } = measured
  if (!crossed) {
    const isOver = before.done || (before.alert && check.when.metric === 'new-group')
    return isOver && check.group !== undefined ? { ...state, done: true } : state
  }
  const sinceMs = before.sinceMs ?? atMs
  // The limit of a silence contains `forMs`.
  const forMs = check.when.metric === 'silent' ? 0 : (check.forMs ?? 0)
  const lasted = atMs - sinceMs >= forMs
  const alert = before.alert ?? (lasted ? alertOf(check, measured, atMs) : undefined)
  return { ...state, sinceMs, ...(alert ? { alert } : {}) }
}

function alertOf(check: Check, measured: Measured, atMs: number): Alert {
  const { name, severity, hint, when, group } = check
  const { value, group: known } = measured
  const { above, below } = when as Partial<Record<'above' | 'below', number>>
  // With several queues, a person who may see only one of them must not see the alert.
  const queue = check.queue ?? (known?.queues.length === 1 ? known.queues[0] : undefined)
  return {
    name,
    severity,
    metric: when.metric,
    value,
    ...(above === undefined ? {} : { above }),
    ...(below === undefined ? {} : { below }),
    ...(queue === undefined ? {} : { queue }),
    ...(group === undefined ? {} : { group }),
    ...(known ? { title: known.title } : {}),
    summary: describeRaised(check, measured),
    ...(hint === undefined ? {} : { hint }),
    raisedAt: toTimestamp(atMs),
  }
}
