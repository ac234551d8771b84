// Summaries of alerts. They contain names and numbers only: no data of payloads, no error text.
import { breakerPrefix, type Alert, type CountMetric } from './alert-rule.ts'
import type { Check, GroupMeasures, Measured } from './alert-measures.ts'

/** What is wrong, for people, without data of payloads. */
export function describeRaised(check: Check, measured: Measured, not = ''): string {
  const { name, when, queue, rule } = check
  const { metric } = when
  const { value, group, limitMs = 0 } = measured
  if (rule !== undefined && check.group === undefined)
    return `${value} further ${metric === 'new-group' ? 'new' : 'resolved'} causes of failures, without an alert each`
  switch (metric) {
    case 'breaker-open':
      return `breaker of ${name.slice(breakerPrefix.length)} is ${not}open`
    case 'new-group':
      return `new cause of failures: ${describeGroup(group)}`
    case 'regressed-group':
      return `a resolved cause of failures is back: ${describeGroup(group)}`
    case 'silent':
      return `queue ${queue} has captured nothing for ${describePeriod(value)}, and was never silent for more than ${describePeriod(limitMs / 2)} before`
  }
  const where = queue === undefined ? '' : ` in queue ${queue}`
  const { above, below } = when
  const limit =
    above === undefined ? `below ${format(metric, below)}` : `above ${format(metric, above)}`
  return `${metric.replace('-', ' ')} is ${format(metric, value)}${where}, ${not}${limit}`
}

/** Why an alert is cleared. */
export function describeCleared(check: Check, measured: Measured, alert: Alert): string {
  const { metric } = check.when
  if (metric === 'silent') return `queue ${check.queue} captures again`
  if (check.rule !== undefined && check.group === undefined)
    return 'every cause of failures has its own alert again'
  if (metric === 'new-group' || metric === 'regressed-group')
    return `${describeStatus(measured.group)}: ${alert.summary}`
  return describeRaised(check, measured, 'no longer ')
}

function describeStatus(group: GroupMeasures | undefined): string {
  if (!group) return 'the group has no letters any more'
  if (group.status === 'resolved' || group.status === 'ignored')
    return `the group is ${group.status}`
  return group.hasOpenLetters ? 'the group is open again' : 'no letter of the group is open'
}

function describeGroup(group: GroupMeasures | undefined): string {
  if (!group) return 'no failures'
  const { errorName, queues, failures } = group
  const [first] = queues
  const where = queues.length === 1 ? `queue ${first}` : `${queues.length} queues`
  return `${errorName} in ${where}, ${failures} ${failures === 1 ? 'failure' : 'failures'}`
}

function format(metric: CountMetric, value: number): string {
  if (metric === 'pending-age') return describePeriod(value)
  const inPercent = metric === 'utilisation' || metric === 'success-rate'
  return inPercent ? `${Math.round(value * 1000) / 10} %` : String(value)
}

const timeUnits = [
  ['d', 86_400_000],
  ['h', 3_600_000],
  ['min', 60_000],
  ['s', 1000],
] as const

/** A duration in its largest unit, with one digit after the point. */
function describePeriod(ms: number): string {
  const [unit, size] = timeUnits.find(([, size]) => ms >= size) ?? ['ms', 1]
  return `${Math.round((ms / size) * 10) / 10} ${unit}`
}
