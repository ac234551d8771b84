import type { Action, Reason, State } from '../../src/letter/letter.ts'
import { terminalActions, type Claimed, type Timeline, type Settle } from './timeline.ts'
import { mayEnd } from './plan.ts'

/** A letter as stored after the run. */
export interface Stored {
  id: string
  state: State
  reason?: Reason
  epoch: number
  retries: number
  maxRetries: number
  /** Hash of the captured payload. */
  sha: string
  /** The actions on the letter, oldest first. */
  actions: Action[]
}

export interface RuleContext {
  leaseMs: number
}

/** One way in which a letter can be wrong: describes the violation, or returns undefined. */
type Rule = (
  timeline: Timeline,
  stored: Stored | undefined,
  context: RuleContext,
) => string | undefined

/** Tolerance: wall clocks are read at both ends of a call, and stores keep whole milliseconds. */
const slackMs = 2

const writtenSettles = (timeline: Timeline): Settle[] =>
  timeline.settles.filter(({ result }) => result === 'written')
const maybeWrittenSettles = (timeline: Timeline): Settle[] =>
  timeline.settles.filter(({ result }) => result === 'written' || result === 'unknown')
/** Results that were answered as written or reported to observers, each once. */
function acceptedResults(timeline: Timeline): { epoch?: number; action: Action }[] {
  const answered = writtenSettles(timeline)
  const reportedOnly = timeline.reported.filter(
    ({ epoch, action }) => !answered.some((one) => one.epoch === epoch && one.action === action),
  )
  return [...answered, ...reportedOnly]
}
const isTerminal = ({ action }: { action: Action }): boolean => terminalActions.includes(action)

const lost: Rule = (timeline, stored) => {
  if (!timeline.captured) return undefined
  if (!stored) return 'was acknowledged and is not in the store'
  return stored.sha === timeline.sha ? undefined : 'has other bytes than were captured'
}

const ghost: Rule = (timeline, stored) =>
  stored && timeline.sha === undefined
    ? 'is in the store and nobody tried to capture it'
    : undefined

/** The successful renewals of a claim. */
function renewalsOf(claim: Claimed, timeline: Timeline): Timeline['renewals'] {
  return timeline.renewals.filter(({ epoch, kept }) => kept && epoch === claim.epoch)
}

/** End of the lease of a claim by the clock of the store. A renewal extends it from its request. */
function leaseEnd(claim: Claimed, timeline: Timeline, leaseMs: number): number {
  const renewed = renewalsOf(claim, timeline).map(({ since }) => since.w + leaseMs)
  return Math.max(claim.expiresMs, ...renewed)
}

/** Earliest end of a lease by the monotonic clock: it cannot have begun before its request. */
function heldUntil(claim: Claimed, timeline: Timeline, leaseMs: number): number {
  const requestedAt = [claim, ...renewalsOf(claim, timeline)].map(({ since }) => since.t)
  return Math.max(...requestedAt) + leaseMs
}

/**
 * No two leases of a letter overlap. By the clock of the store, each lease must begin after the end
 * of the previous one; by the monotonic clock, no claim may be answered while the previous lease
 * must still be valid. Exception: a settle ended the previous lease; it must have been sent before
 * the claim was answered.
 */
const overlap: Rule = (timeline, _stored, { leaseMs }) => {
  const claims = [...timeline.claims].sort((a, b) => a.epoch - b.epoch)
  for (const [index, next] of claims.entries()) {
    const before = claims[index - 1]
    if (!before) continue
    if (before.epoch === next.epoch)
      return `epoch ${next.epoch} was claimed by ${before.p} and ${next.p}`
    const startMs = next.expiresMs - leaseMs
    const given = maybeWrittenSettles(timeline).some(
      ({ epoch, tried }) => epoch === before.epoch && tried.t <= next.t,
    )
    const early = Math.max(
      leaseEnd(before, timeline, leaseMs) - startMs,
      heldUntil(before, timeline, leaseMs) - next.t,
    )
    if (!given && early > slackMs)
      return `${next.p} claimed epoch ${next.epoch} ${Math.ceil(early)} ms before the lease of ${before.p} ended`
  }
  const epochs = timeline.starts.map(({ epoch }) => epoch)
  return new Set(epochs).size < epochs.length ? 'ran twice under one epoch' : undefined
}

/**
 * A result or a renewal was accepted although a newer claim had been answered before its request.
 */
const staleAccepted: Rule = (timeline) => {
  const renewals = timeline.renewals
    .filter(({ kept }) => kept)
    .map(({ epoch, since }) => ({ what: 'renew', epoch, askedAt: since.t }))
  const settles = writtenSettles(timeline).map(({ action, epoch, tried }) => ({
    what: action,
    epoch,
    askedAt: tried.t,
  }))
  for (const { what, epoch, askedAt } of [...renewals, ...settles]) {
    const newer = timeline.claims.find(
      (claim) => epoch !== undefined && claim.epoch > epoch && claim.t < askedAt,
    )
    if (newer)
      return `${what} of epoch ${epoch} was accepted after ${newer.p} had claimed epoch ${newer.epoch}`
  }
  return undefined
}

const dupSettle: Rule = (timeline, stored) => {
  const results = acceptedResults(timeline)
  const epochs = results.map(({ epoch }) => epoch)
  if (new Set(epochs).size < epochs.length) return 'two results of one epoch were accepted'
  if (results.filter(isTerminal).length > 1) return 'two final results were accepted'
  const ends = stored?.actions.filter((action) => terminalActions.includes(action)).length ?? 0
  return ends > 1 ? `its history has ${ends} final results` : undefined
}

const endStates: Record<string, State> = {
  resolve: 'resolved',
  exhaust: 'exhausted',
  park: 'parked',
}

const reopened: Rule = (timeline, stored) => {
  const end = writtenSettles(timeline).find(isTerminal)
  if (!end) return undefined
  const later = timeline.claims.find(({ since }) => since.t > end.t)
  if (later) return `${later.p} claimed it after ${end.action} had been accepted`
  const state = endStates[end.action]
  return stored && stored.state !== state
    ? `${end.action} was accepted and it is ${stored.state}`
    : undefined
}

const stuck: Rule = (_life, stored) =>
  stored && (stored.state === 'pending' || stored.state === 'retrying')
    ? `is still ${stored.state} after the drain`
    : undefined

/** Minimum and maximum number of released claims: an unknown outcome may be either. */
function countReleases(timeline: Timeline, beforeEpoch: number): { least: number; most: number } {
  const count = (settles: Settle[]): number =>
    settles.filter(
      ({ action, epoch }) => action === 'release' && epoch !== undefined && epoch < beforeEpoch,
    ).length
  return { least: count(writtenSettles(timeline)), most: count(maybeWrittenSettles(timeline)) }
}

const overAttempts: Rule = (timeline, stored) => {
  const limit = timeline.plan?.maxRetries ?? Infinity
  const allowed = limit + countReleases(timeline, Infinity).most
  if (timeline.starts.length > allowed) return `ran ${timeline.starts.length} times of ${limit}`
  return stored && stored.retries > limit ? `has ${stored.retries} retries of ${limit}` : undefined
}

/**
 * Each claim counts one retry and increments the epoch, and only a release takes a retry back. So
 * at every claim, retries = epoch − releases, and also at the end, except for the claim that found
 * a crash loop and parked the letter.
 */
const countDrift: Rule = (timeline, stored) => {
  for (const { epoch, retries } of timeline.claims) {
    const { least, most } = countReleases(timeline, epoch)
    if (retries > epoch - least || retries < epoch - most)
      return `claim ${epoch} counted ${retries} retries with ${least} to ${most} releases`
  }
  if (!stored) return undefined
  const { least, most } = countReleases(timeline, Infinity)
  const crashLoop = stored.state === 'parked' && stored.reason === 'crash-loop'
  if (crashLoop)
    return stored.retries === stored.maxRetries
      ? findPoisonDrift(timeline, stored)
      : describeCrashLoop(stored)
  if (stored.retries > stored.epoch - least || stored.retries < stored.epoch - most)
    return `has ${stored.retries} retries after ${stored.epoch} claims and ${least} to ${most} releases`
  return undefined
}

const describeCrashLoop = ({ retries, maxRetries }: Stored): string =>
  `was parked as a crash loop with ${retries} retries of ${maxRetries}`

/**
 * Poison must run exactly `maxRetries` times, minus claims whose worker died before the handler.
 */
function findPoisonDrift(timeline: Timeline, stored: Stored): string | undefined {
  const unstarted = stored.epoch - timeline.starts.length
  const parkingClaim = 1
  if (timeline.starts.length + unstarted - parkingClaim >= stored.maxRetries) return undefined
  return `was parked as a crash loop after ${stored.epoch} claims of ${stored.maxRetries}`
}

const wrongEnd: Rule = (timeline, stored) => {
  if (!stored || !timeline.plan || stuck(timeline, stored, { leaseMs: 0 })) return undefined
  if (!mayEnd(timeline.plan, stored.state, stored.reason))
    return `was planned as ${timeline.plan.kind} and ended as ${stored.state} (${stored.reason ?? 'no reason'})`
  if (stored.state === 'exhausted' && stored.retries !== timeline.plan.maxRetries)
    return `is exhausted after ${stored.retries} of ${timeline.plan.maxRetries} retries`
  return undefined
}

/** The history has exactly the results that were answered as written. */
const historyDrift: Rule = (timeline, stored) => {
  if (!stored) return undefined
  for (const action of ['resolve', 'exhaust', 'park', 'reschedule', 'release'] as const) {
    const inHistory = stored.actions.filter((one) => one === action).length
    const least = acceptedResults(timeline).filter((result) => result.action === action).length
    const most = maybeWrittenSettles(timeline).filter((settle) => settle.action === action).length
    if (inHistory < least || inHistory > most)
      return `its history has ${inHistory} × ${action}, the ledgers have ${least} to ${most}`
  }
  return undefined
}

/** Every rule for a single letter, by its name in the verdict. */
export const rules = {
  lost,
  ghost,
  overlap,
  stale_accepted: staleAccepted,
  dup_settle: dupSettle,
  reopened,
  stuck,
  over_attempts: overAttempts,
  count_drift: countDrift,
  wrong_end: wrongEnd,
  history_drift: historyDrift,
} satisfies Record<string, Rule>
