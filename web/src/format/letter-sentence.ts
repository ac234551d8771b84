import type { SummaryView } from 'redrive/api'
import { formatAmount } from './number.ts'
import { firstLine, toWords } from './text.ts'
import { formatDuration } from './time.ts'

/** What the sentence is made of. */
export type Described = Pick<
  SummaryView,
  | 'queue'
  | 'state'
  | 'reason'
  | 'failure'
  | 'attempts'
  | 'retries'
  | 'maxRetries'
  | 'retryAt'
  | 'settledAt'
  | 'archivedFrom'
  | 'lease'
  | 'review'
  | 'dependsOn'
>

/** What happened to a letter and what happens next, in plain words. */
export function describeLetter(letter: Described, nowMs: number): string {
  return `${describeFailure(letter)} ${describeNext(letter, nowMs)}`
}

const maxQuoted = 100

/**
 * The shortest name of an error that a person recognizes: its code, its status, its class, or its
 * message if the class says nothing.
 */
function nameFailure({ code, status, name, message }: Described['failure']): string {
  if (code !== undefined && /[A-Za-z]/.test(code)) return code
  if (status !== undefined) return `HTTP ${status}`
  const quoted = firstLine(message)
  if (name !== 'Error' || quoted === '') return name
  return `“${quoted.length > maxQuoted ? `${quoted.slice(0, maxQuoted)}…` : quoted}”`
}

function describeFailure({ queue, state, failure, attempts, retries }: Described): string {
  // A run that is still going on has not failed.
  const hasSuccess = state === 'resolved' && retries > 0
  const failures = attempts + retries - (state === 'retrying' || hasSuccess ? 1 : 0)
  const times = failures <= 1 ? '' : failures === 2 ? ' twice' : ` ${failures} times`
  return `${queue} failed${times} with ${nameFailure(failure)}.`
}

function describeNext(letter: Described, nowMs: number): string {
  switch (letter.state) {
    case 'pending':
      return describePending(letter, nowMs)
    case 'retrying':
      return `Retry ${letter.retries} of ${letter.maxRetries} runs now${letter.lease ? ` on ${letter.lease.worker}` : ''}.`
    case 'exhausted':
      return describeExhausted(letter)
    case 'parked':
      return describeParked(letter)
    case 'resolved':
      return describeResolved(letter, nowMs)
    case 'archived':
      return describeArchived(letter, nowMs)
  }
}

function describePending({ retryAt, retries, maxRetries, dependsOn }: Described, nowMs: number) {
  const left = Math.max(0, maxRetries - retries)
  const rest = left === 0 ? 'no retries left' : `${formatAmount(left, 'retry', 'retries')} left`
  if (retryAt === undefined)
    return dependsOn && dependsOn.length > 0
      ? `It waits for ${formatAmount(dependsOn.length, 'letter')} that must succeed before it, ${rest}.`
      : `It has no time for its next retry, ${rest}.`
  const waitMs = Date.parse(retryAt) - nowMs
  return waitMs < 1000
    ? `The next retry is due now, ${rest}.`
    : `Next retry in ${formatDuration(waitMs)}, ${rest}.`
}

function describeExhausted({ reason, retries, maxRetries }: Described): string {
  if (reason === 'expired') return 'It expired before a retry succeeded.'
  const runs = Math.max(retries, maxRetries)
  const all =
    runs === 0
      ? 'It has no retries.'
      : runs === 1
        ? 'Its retry failed.'
        : `All ${runs} retries failed.`
  return `${all} Fix the cause, then retry it.`
}

type Reason = NonNullable<Described['reason']>

/** Why a letter waits for a person, and what helps. */
const parkedBecause: Record<Reason, string> = {
  permanent: 'The same run would fail again: fix the cause or the payload, then requeue it.',
  malformed: 'Its payload or its stored row cannot be read: edit the payload or archive it.',
  'no-handler': 'No live worker has a handler for its queue: it continues when one starts.',
  never: 'Its policy allows no automatic retries: a person decides.',
  'crash-loop': 'Its runs kept killing their worker: find out why before you requeue it.',
  'max-hops': 'It passed more steps of its pipeline than allowed, probably in a loop.',
  expired: 'It expired before a retry succeeded.',
  'replay-limit': 'It was replayed as often as allowed, and failed each time.',
  'dependency-failed': 'A letter that it depends on was archived or removed, or waits for it.',
  operator: 'A person set it aside.',
  'retries-exhausted': 'All of its retries failed: a person decides.',
  superseded: 'Newer work replaced it.',
  replayed: 'It was published to its source again.',
  redacted: 'Parts of its payload were removed by redaction, so it cannot run: edit the payload.',
  erased: 'Its content was erased, so it cannot run: archive or remove it.',
}

function describeParked({ reason, retryAt }: Described): string {
  if (reason === 'replayed')
    return retryAt === undefined
      ? 'It was published to its source again, and nothing confirmed that it succeeded.'
      : 'It was published to its source again, and waits for the confirmation that it succeeded.'
  return reason === undefined ? 'It waits for the decision of a person.' : parkedBecause[reason]
}

function describeResolved({ reason, retries, settledAt }: Described, nowMs: number): string {
  const ago = settledAt === undefined ? '' : ` ${agoOf(settledAt, nowMs)}`
  if (reason === 'operator') return `A person marked it as resolved${ago}.`
  if (reason === 'replayed') return `It was published to its source again${ago}.`
  if (reason === 'superseded') return `Newer work replaced it${ago}.`
  if (reason !== undefined) return `It was resolved${ago} (${toWords(reason)}).`
  return retries > 0 ? `Retry ${retries} succeeded${ago}.` : `It was resolved${ago}.`
}

function describeArchived({ archivedFrom, settledAt }: Described, nowMs: number): string {
  const ago = settledAt === undefined ? '' : ` ${agoOf(settledAt, nowMs)}`
  const before = archivedFrom === undefined ? '' : ` It was ${archivedFrom} before.`
  return `Archived${ago}: nothing happens to it.${before}`
}

function agoOf(at: string, nowMs: number): string {
  const ms = nowMs - Date.parse(at)
  return ms < 1000 ? 'just now' : `${formatDuration(ms)} ago`
}
