import type { Action, Reason, State } from '../../src/letter/letter.ts'
import { terminalActions, type Claimed, type Life, type Settle } from './life.ts'
import { mayEnd } from './plan.ts'

/** A letter as it lies in the store after the run. */
export interface Stored {
  id: string
  state: State
  reason?: Reason
  epoch: number
  retries: number
  maxRetries: number
  /** Of the payload as it was captured. */
  sha: string
  /** What was done to it, oldest first. */
  actions: Action[]
}

export interface RuleContext {
  leaseMs: number
}

/** One way in which a letter can be wrong: says what it found, or nothing. */
type Rule = (life: Life, stored: Stored | undefined, context: RuleContext) => string | undefined

/** Wall clocks are read at both ends of a call, and stores keep whole milliseconds. */
const slackMs = 2

const written = (life: Life): Settle[] => life.settles.filter(({ result }) => result === 'written')
const maybeWritten = (life: Life): Settle[] =>
  life.settles.filter(({ result }) => result === 'written' || result === 'unknown')
/** What was answered as written, or what a queue told its observers after it had looked: each result once. */
function accepted(life: Life): { epoch?: number; action: Action }[] {
  const answered = written(life)
  const looked = life.told.filter(
    ({ epoch, action }) => !answered.some((one) => one.epoch === epoch && one.action === action),
  )
  return [...answered, ...looked]
}
const isTerminal = ({ action }: { action: Action }): boolean => terminalActions.includes(action)

const lost: Rule = (life, stored) => {
  if (!life.captured) return undefined
  if (!stored) return 'was acknowledged and is not in the store'
  return stored.sha === life.sha ? undefined : 'has other bytes than were captured'
}

const ghost: Rule = (life, stored) =>
  stored && life.sha === undefined ? 'is in the store and nobody tried to capture it' : undefined

/** The renewals of a claim that were kept. */
function renewalsOf(claim: Claimed, life: Life): Life['renewals'] {
  return life.renewals.filter(({ epoch, kept }) => kept && epoch === claim.epoch)
}

/** When the lease of a claim ended by the store's time: renewals move the end, from when they were asked for. */
function leaseEnd(claim: Claimed, life: Life, leaseMs: number): number {
  const renewed = renewalsOf(claim, life).map(({ since }) => since.w + leaseMs)
  return Math.max(claim.expiresMs, ...renewed)
}

/** Until when it held at least, by a clock that nobody can set: it cannot have begun before it was asked for. */
function heldUntil(claim: Claimed, life: Life, leaseMs: number): number {
  const asked = [claim, ...renewalsOf(claim, life)].map(({ since }) => since.t)
  return Math.max(...asked) + leaseMs
}

/**
 * No two leases of a letter hold at once. By the store's own time, which is the end of a claim less its length,
 * each one must lie behind the end of the one before; and whatever that time says, no claim may be answered while the one
 * before must still hold. Or the one before was given up by a settle, which must have been on its way before the claim was
 * answered.
 */
const overlap: Rule = (life, _stored, { leaseMs }) => {
  const claims = [...life.claims].sort((a, b) => a.epoch - b.epoch)
  for (const [index, next] of claims.entries()) {
    const before = claims[index - 1]
    if (!before) continue
    if (before.epoch === next.epoch)
      return `epoch ${next.epoch} was claimed by ${before.p} and ${next.p}`
    const startMs = next.expiresMs - leaseMs
    const given = maybeWritten(life).some(
      ({ epoch, tried }) => epoch === before.epoch && tried.t <= next.t,
    )
    const early = Math.max(
      leaseEnd(before, life, leaseMs) - startMs,
      heldUntil(before, life, leaseMs) - next.t,
    )
    if (!given && early > slackMs)
      return `${next.p} claimed epoch ${next.epoch} ${Math.ceil(early)} ms before the lease of ${before.p} ended`
  }
  const epochs = life.starts.map(({ epoch }) => epoch)
  return new Set(epochs).size < epochs.length ? 'ran twice under one epoch' : undefined
}

/** A result or a renewal was accepted although a newer claim had been answered before it was even asked for. */
const staleAccepted: Rule = (life) => {
  const renewals = life.renewals
    .filter(({ kept }) => kept)
    .map(({ epoch, since }) => ({ what: 'renew', epoch, askedAt: since.t }))
  const settles = written(life).map(({ action, epoch, tried }) => ({
    what: action,
    epoch,
    askedAt: tried.t,
  }))
  for (const { what, epoch, askedAt } of [...renewals, ...settles]) {
    const newer = life.claims.find(
      (claim) => epoch !== undefined && claim.epoch > epoch && claim.t < askedAt,
    )
    if (newer)
      return `${what} of epoch ${epoch} was accepted after ${newer.p} had claimed epoch ${newer.epoch}`
  }
  return undefined
}

const dupSettle: Rule = (life, stored) => {
  const results = accepted(life)
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

const reopened: Rule = (life, stored) => {
  const end = written(life).find(isTerminal)
  if (!end) return undefined
  const later = life.claims.find(({ since }) => since.t > end.t)
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

/** Claims that were given back, at least and at most: an unknown outcome may be either. */
function releases(life: Life, beforeEpoch: number): { least: number; most: number } {
  const count = (settles: Settle[]): number =>
    settles.filter(
      ({ action, epoch }) => action === 'release' && epoch !== undefined && epoch < beforeEpoch,
    ).length
  return { least: count(written(life)), most: count(maybeWritten(life)) }
}

const overAttempts: Rule = (life, stored) => {
  const limit = life.plan?.maxRetries ?? Infinity
  const allowed = limit + releases(life, Infinity).most
  if (life.starts.length > allowed) return `ran ${life.starts.length} times of ${limit}`
  return stored && stored.retries > limit ? `has ${stored.retries} retries of ${limit}` : undefined
}

/**
 * Each claim counts one retry and raises the epoch by one, and only a release takes a retry back. So at every
 * claim, retries = epoch − releases; and at the end too, but for the claim that found a crash loop and parked it.
 */
const countDrift: Rule = (life, stored) => {
  for (const { epoch, retries } of life.claims) {
    const { least, most } = releases(life, epoch)
    if (retries > epoch - least || retries < epoch - most)
      return `claim ${epoch} counted ${retries} retries with ${least} to ${most} releases`
  }
  if (!stored) return undefined
  const { least, most } = releases(life, Infinity)
  const crashLoop = stored.state === 'parked' && stored.reason === 'crash-loop'
  if (crashLoop)
    return stored.retries === stored.maxRetries ? poisonRuns(life, stored) : crashLoopDrift(stored)
  if (stored.retries > stored.epoch - least || stored.retries < stored.epoch - most)
    return `has ${stored.retries} retries after ${stored.epoch} claims and ${least} to ${most} releases`
  return undefined
}

const crashLoopDrift = ({ retries, maxRetries }: Stored): string =>
  `was parked as a crash loop with ${retries} retries of ${maxRetries}`

/** Poison must run exactly `maxRetries` times, less the claims whose worker died before the handler started. */
function poisonRuns(life: Life, stored: Stored): string | undefined {
  const unstarted = stored.epoch - life.starts.length
  const parkingClaim = 1
  if (life.starts.length + unstarted - parkingClaim >= stored.maxRetries) return undefined
  return `was parked as a crash loop after ${stored.epoch} claims of ${stored.maxRetries}`
}

const wrongEnd: Rule = (life, stored) => {
  if (!stored || !life.plan || stuck(life, stored, { leaseMs: 0 })) return undefined
  if (!mayEnd(life.plan, stored.state, stored.reason))
    return `was made to be ${life.plan.kind} and ended ${stored.state} (${stored.reason ?? 'no reason'})`
  if (stored.state === 'exhausted' && stored.retries !== life.plan.maxRetries)
    return `is exhausted after ${stored.retries} of ${life.plan.maxRetries} retries`
  return undefined
}

/** What was answered as written is in the letter's own history, and the other way round. */
const historyDrift: Rule = (life, stored) => {
  if (!stored) return undefined
  for (const action of ['resolve', 'exhaust', 'park', 'reschedule', 'release'] as const) {
    const inHistory = stored.actions.filter((one) => one === action).length
    const least = accepted(life).filter((result) => result.action === action).length
    const most = maybeWritten(life).filter((settle) => settle.action === action).length
    if (inHistory < least || inHistory > most)
      return `its history has ${inHistory} × ${action}, the ledgers have ${least} to ${most}`
  }
  return undefined
}

/** Every rule that a single letter can break, by the name it has in the verdict. */
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
