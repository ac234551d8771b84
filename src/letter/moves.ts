import type {
  Action,
  DeadLetter,
  ErrorCategory,
  Failure,
  HistoryEntry,
  Lease,
  Patch,
  Payload,
  Priority,
  Reason,
  Recoverability,
  RetryPolicy,
  Review,
  Severity,
  State,
} from './letter.ts'
import { appendHistory, inHistory } from './history.ts'
import { isLegal, moveTable, type Move } from './move-table.ts'
import { toTimestamp, type Timestamp } from './time.ts'

/**
 * One change of one letter, as data. A store writes it if the guard still holds and otherwise
 * returns `conflict`. The guard of a worker is its lease, that of a person the version that the
 * person read. The name of the worker is part of the guard: a letter that was removed and captured
 * again under its old id starts with the first epoch again.
 */
export interface Change {
  id: string
  guard: { epoch: number; worker?: string } | { version: number }
  action: Action
  set: Patch
  entry: HistoryEntry
  /** The data subject of the letter, if it has one: what the change sets belongs to it too. */
  subject?: string
}

/** The change of a letter for each state that it may be in. Letters in other states stay. */
export type BulkMoves = { readonly [S in State]?: Omit<Change, 'id' | 'guard'> }

/** Who moves the letter, when, and with which guard. */
export interface Mover {
  at: Timestamp
  actor: string
  note?: string
  guard: 'epoch' | 'version'
}

/** The fields that a move needs, so that letters can be moved without loading payloads. */
export type Subject = Omit<DeadLetter, 'payload' | 'history'>

/** A failure and its classification. */
export interface Judged {
  failure: Failure
  category: ErrorCategory
  severity: Severity
  recoverability: Recoverability
  fingerprint: string
}

/** The letter after the change. Stores that hold objects write exactly this. */
export function withChange(letter: DeadLetter, change: Change): DeadLetter {
  const set = change.set as Readonly<Record<string, unknown>>
  const keys = Object.keys(set)
  // Null removes a field; undefined leaves it.
  const removed = keys.filter((key) => set[key] === null && key in letter)
  const next: Record<string, unknown> = { ...removed.reduce<object>(without, letter) }
  for (const key of keys) if (set[key] !== null && set[key] !== undefined) next[key] = set[key]
  return Object.assign(next, appendHistory(letter.history, letter.historyOmitted, change.entry), {
    version: letter.version + 1,
    updatedAt: change.entry.at,
  }) as unknown as DeadLetter
}

/** A copy without the key. `delete` would make every later copy of the letter much slower. */
function without(letter: object, key: string): object {
  const { [key]: _, ...rest } = letter as Record<string, unknown>
  return rest
}

/**
 * The letter after a claim: leased, with the retry counted in the same write, so that a letter that
 * crashes its worker is counted too. Taking over an expired lease adds an entry to the history.
 */
export function claim(
  letter: DeadLetter,
  by: { worker: string; atMs: number; leaseMs: number },
): DeadLetter {
  const at = toTimestamp(by.atMs)
  const epoch = letter.epoch + 1
  const lease: Lease = { worker: by.worker, epoch, expiresAt: toTimestamp(by.atMs + by.leaseMs) }
  const { retryAt: _, ...rest } = letter
  const lapsed = letter.lease ? lapse(letter.lease, at) : undefined
  const history = lapsed ? appendHistory(letter.history, letter.historyOmitted, lapsed) : {}
  return {
    ...rest,
    ...history,
    state: 'retrying',
    lease,
    epoch,
    retries: letter.retries + 1,
    version: letter.version + 1,
    updatedAt: at,
  }
}

/** The history entry of a claim that takes over the expired lease of another worker. */
export function lapse(old: Lease, at: Timestamp): HistoryEntry {
  return {
    at,
    actor: old.worker,
    action: 'claim',
    from: 'retrying',
    to: 'retrying',
    epoch: old.epoch,
    note: `the lease of ${old.worker} lapsed at ${old.expiresAt}`,
  }
}

/**
 * The open letter after the same failure was captured again: one more occurrence, and the newer
 * failure. Its payload, its place and its retry budget stay.
 */
export function occur(letter: DeadLetter, newer: DeadLetter): DeadLetter {
  const { failure, category, severity, recoverability, fingerprint } = newer
  const entry: HistoryEntry = {
    at: newer.deadLetteredAt,
    actor: newer.history[0]?.actor ?? 'capture',
    action: 'occur',
    from: letter.state,
    to: letter.state,
    failure: inHistory({ failure, category }),
  }
  return {
    ...letter,
    ...appendHistory(letter.history, letter.historyOmitted, entry),
    failure,
    category,
    severity,
    recoverability,
    fingerprint,
    occurrences: letter.occurrences + 1,
    version: letter.version + 1,
    updatedAt: entry.at,
  }
}

const unscheduled: Patch = { lease: null, retryAt: null }

export function resolve(letter: Subject, by: Mover): Change {
  return change('resolve', letter, by, { ...resolvedPatch(by), ...clearPendingReview(letter) })
}

const resolvedPatch = ({ at }: Mover): Patch => ({
  ...unscheduled,
  state: 'resolved',
  reason: null,
  settledAt: at,
})

/** An action without a review makes a pending review obsolete. A decided review stays. */
function clearPendingReview({ review: pending }: Subject): Patch {
  return pending && pending.decidedAt === undefined ? { review: null } : {}
}

/** A failed run: its failure, the input of the next run if it changes, and a new retry limit. */
interface Failed {
  judged: Judged
  payload?: Payload | undefined
  maxRetries?: number | undefined
}

/** The run failed. The letter runs again at `retryAt`, with the new policy if one is given. */
export function reschedule(
  letter: Subject,
  by: Mover,
  to: Failed & { retryAt: Timestamp; backoffMs: number; policy?: RetryPolicy | undefined },
): Change {
  const { judged, retryAt, backoffMs, policy = letter.policy } = to
  const { retries } = letter
  const due: Patch = { lease: null, state: 'pending', retryAt, backoffMs, retries, policy }
  return change('reschedule', letter, by, { ...failurePatch(to), ...due }, judged)
}

/** The run failed and the letter has no retries left. */
export function exhaust(letter: Subject, by: Mover, to: Failed): Change {
  const set: Patch = {
    ...failurePatch(to),
    ...unscheduled,
    state: 'exhausted',
    reason: 'retries-exhausted',
    settledAt: by.at,
    retries: letter.retries,
  }
  return change('exhaust', letter, by, set, to.judged)
}

/** The letter waits for a person, and needs a review. */
export function park(
  letter: Subject,
  by: Mover,
  to: Partial<Failed> & { reason: Reason; retries?: number },
): Change {
  const { reason, judged, retries = letter.retries } = to
  const set = { ...failurePatch(to), ...parkedPatch(by, reason), retries }
  return change('park', letter, by, set, judged)
}

function parkedPatch({ at }: Mover, reason: Reason): Patch {
  return { ...unscheduled, state: 'parked', reason, review: { neededSince: at }, settledAt: at }
}

/** The run is not counted, and the letter is due at once. */
export function release(
  letter: Subject,
  by: Mover,
  to: Pick<Partial<Failed>, 'payload'> = {},
): Change {
  const retries = Math.max(0, letter.retries - 1)
  const set: Patch = { ...failurePatch(to), lease: null, state: 'pending', retryAt: by.at, retries }
  return change('release', letter, by, set)
}

/** An outage caused the failure: the run is not counted, and the letter is due at `retryAt`. */
export function defer(
  letter: Subject,
  by: Mover,
  to: Failed & { retryAt: Timestamp; backoffMs: number; policy?: RetryPolicy | undefined },
): Change {
  const { judged, retryAt, backoffMs, policy = letter.policy } = to
  // The earliest timestamp counts: one of a clock that is ahead would extend `patienceMs`.
  const { deferredSince: since = by.at } = letter
  const deferredSince = since < by.at ? since : by.at
  const { set } = release(letter, by)
  const patch = { ...set, ...failurePatch(to), retryAt, backoffMs, policy, deferredSince }
  return change('release', letter, by, patch, judged)
}

/** A person makes the letter due, now or at `retryAt`. A settled one gets a fresh retry budget. */
export function retry(letter: Subject, by: Mover, retryAt: Timestamp = by.at): Change {
  return change('retry', letter, by, {
    ...dueWithFreshBudget(letter, by),
    retryAt,
    ...clearPendingReview(letter),
  })
}

function dueWithFreshBudget(letter: Subject, by: Mover): Patch {
  const fresh: Patch =
    letter.state === 'pending' ? {} : { retries: 0, budgetSince: by.at, deferredSince: null }
  return { ...fresh, ...dueNow(by) }
}

const dueNow = ({ at }: Mover): Patch => ({
  state: 'pending',
  retryAt: at,
  reason: null,
  settledAt: null,
})

/** The reason for parking no longer holds: the letter is due now, with its remaining retries. */
export function wake(letter: Subject, by: Mover): Change {
  return change('wake', letter, by, { ...dueNow(by), review: null })
}

/** A person's decision on a letter that waited for one. */
export function review(
  letter: Subject,
  by: Mover,
  decision: 'requeue' | 'resolve' | 'discard',
): Change {
  const decided: Review = {
    neededSince: letter.review?.neededSince ?? letter.settledAt ?? letter.updatedAt,
    decidedBy: by.actor,
    decidedAt: by.at,
    decision,
    ...(by.note === undefined ? {} : { note: by.note }),
  }
  const outcome: Record<typeof decision, Patch> = {
    requeue: dueWithFreshBudget(letter, by),
    resolve: resolvedPatch(by),
    discard: { ...archivedPatch(letter, by), reason: 'operator' },
  }
  return change('review', letter, by, { ...outcome[decision], review: decided })
}

/**
 * The letter was published to its source. If it fails there, it becomes another letter. With
 * `confirmAt`, the letter waits until then and is parked.
 */
export function replay(letter: Subject, by: Mover, replays: number, confirmAt?: Timestamp): Change {
  const ended: Patch =
    confirmAt === undefined
      ? { ...resolvedPatch(by), ...clearPendingReview(letter) }
      : { ...parkedPatch(by, 'replayed'), review: null, retryAt: confirmAt }
  return change('replay', letter, by, { ...ended, replays })
}

/** The letter failed again while it waited for the confirmation of its replay. */
export function parkUnconfirmed(letter: Subject, by: Mover): Change {
  return change('replay', letter, by, parkedPatch(by, 'replayed'))
}

/** The letter was not published, because it reached its replay limit. It needs a review. */
export function parkAtReplayLimit(letter: Subject, by: Mover): Change {
  return change('replay', letter, by, parkedPatch(by, 'replay-limit'))
}

export interface Edit {
  payload?: DeadLetter['payload']
  headers?: Record<string, string>
  priority?: Priority
  tags?: string[]
  metadata?: DeadLetter['metadata']
}

export function edit(letter: Subject, by: Mover, values: Edit): Change {
  return change('edit', letter, by, { ...values, state: letter.state })
}

/** A person's note. It changes nothing but the history. */
export function note(letter: Subject, by: Mover): Change {
  return change('note', letter, by, {})
}

function archivedPatch(letter: Subject, by: Mover): Patch {
  const archivedFrom = letter.state as NonNullable<DeadLetter['archivedFrom']>
  return { state: 'archived', lease: null, settledAt: by.at, archivedFrom }
}

/** The letter is hidden from lists by default, complete and restorable. */
export function archive(letter: Subject, by: Mover): Change {
  return change('archive', letter, by, archivedPatch(letter, by))
}

/**
 * Back to the state before archiving. A letter that was pending is due again, not before now. One
 * that waited for the confirmation of its replay needs a review.
 */
export function restore(letter: Subject, by: Mover): Change {
  const state = letter.archivedFrom ?? 'parked'
  const when: Patch =
    state === 'pending'
      ? {
          retryAt: letter.retryAt && letter.retryAt > by.at ? letter.retryAt : by.at,
          settledAt: null,
        }
      : { settledAt: by.at }
  const undecided: Patch =
    state === 'parked' && letter.reason === 'replayed' ? parkedPatch(by, 'replayed') : {}
  return change('restore', letter, by, { ...when, ...undecided, state, archivedFrom: null })
}

/** The fields that a failed run changes. */
function failurePatch({ judged, payload, maxRetries }: Partial<Failed>): Patch {
  return {
    ...judged,
    ...(payload ? { payload } : {}),
    ...(maxRetries === undefined ? {} : { maxRetries }),
  }
}

/** Builds every change. An illegal move is a bug in this package, not a result. */
function change(action: Move, letter: Subject, by: Mover, set: Patch, judged?: Judged): Change {
  const to = set.state ?? letter.state
  if (!isLegal(action, letter.state) || !(moveTable[action].to as readonly State[]).includes(to))
    throw new TypeError(`illegal move ${action}: ${letter.state} to ${to}`)
  const entry: HistoryEntry = { at: by.at, actor: by.actor, action, from: letter.state, to }
  if (by.guard === 'epoch') entry.epoch = letter.epoch
  if (judged) entry.failure = inHistory(judged)
  if (by.note !== undefined) entry.note = by.note
  const { version, epoch, lease } = letter
  const leaseGuard = lease ? { epoch, worker: lease.worker } : { epoch }
  const guard = by.guard === 'epoch' ? leaseGuard : { version }
  const subject = (letter as Partial<DeadLetter>).payload?.subject
  if (subject === undefined) return { id: letter.id, guard, action, set, entry }
  const owned = set.payload ? { ...set, payload: { ...set.payload, subject } } : set
  return { id: letter.id, guard, action, set: owned, entry, subject }
}
