import type {
  Action,
  CountedAction,
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
import { toTimestamp, type Timestamp } from './time.ts'

/**
 * The declared table: from where each move may start and where it may end. Code asks this table and nothing
 * else; `docs/concepts/states.md` shows it. `remove` ends nowhere: the letter is gone.
 */
export const moveTable = {
  claim: { from: ['pending', 'retrying'], to: ['retrying'] },
  resolve: { from: ['pending', 'retrying', 'exhausted', 'parked'], to: ['resolved'] },
  reschedule: { from: ['pending', 'retrying'], to: ['pending'] },
  exhaust: { from: ['pending', 'retrying'], to: ['exhausted'] },
  park: { from: ['pending', 'retrying', 'exhausted'], to: ['parked'] },
  release: { from: ['retrying'], to: ['pending'] },
  retry: { from: ['pending', 'exhausted', 'parked'], to: ['pending'] },
  wake: { from: ['parked'], to: ['pending'] },
  review: { from: ['parked', 'exhausted'], to: ['pending', 'resolved', 'archived'] },
  edit: { from: ['pending', 'exhausted', 'parked'], to: ['pending', 'exhausted', 'parked'] },
  replay: { from: ['pending', 'exhausted', 'parked'], to: ['resolved', 'parked'] },
  archive: { from: ['pending', 'resolved', 'exhausted', 'parked'], to: ['archived'] },
  restore: { from: ['archived'], to: ['pending', 'resolved', 'exhausted', 'parked'] },
  remove: { from: ['pending', 'resolved', 'exhausted', 'parked', 'archived'], to: [] },
} as const satisfies Partial<Record<Action, { from: readonly State[]; to: readonly State[] }>>

export type Move = keyof typeof moveTable

/** Whether this move may start from this state. */
export function isLegal(move: Move, from: State): boolean {
  return (moveTable[move].from as readonly State[]).includes(from)
}

/**
 * One change of one letter, as data: a store writes it if the guard still holds and otherwise answers
 * `conflict`. A worker is guarded by its lease, a person by the version that was looked at. (The worker's
 * name counts too: a letter that was removed and captured again under its old id begins with its first epoch.)
 */
export interface Change {
  id: string
  guard: { epoch: number; worker?: string } | { version: number }
  action: Action
  set: Patch
  entry: HistoryEntry
}

/** Who moves the letter, when, and by which right. */
export interface Mover {
  at: Timestamp
  actor: string
  note?: string
  guard: 'epoch' | 'version'
}

/** As much of a letter as a move looks at: lists need not load payloads to move letters. */
export type Subject = Omit<DeadLetter, 'payload' | 'history'>

/** A failure with what the classifier made of it. */
export interface Judged {
  failure: Failure
  category: ErrorCategory
  severity: Severity
  recoverability: Recoverability
  fingerprint: string
}

/** What a new letter in this state counts as in the lifetime totals. */
export function countsOfCapture(state: State): readonly CountedAction[] {
  return state === 'parked' ? ['capture', 'park-at-capture'] : ['capture']
}

/** What a decision of a review counts as, beside the review itself. */
const countsOfReview: Partial<Record<State, CountedAction>> = {
  pending: 'retry',
  resolved: 'resolve',
  archived: 'archive',
}

/**
 * What a written change counts as in the lifetime totals: its action, and what else it was. A replay that parks the letter at the
 * limit published nothing, so it counts as a park, or as nothing when the letter was parked before.
 */
export function countsOf({ action, entry }: Pick<Change, 'action' | 'entry'>): CountedAction[] {
  const { from, to, failure, epoch } = entry
  if (action === 'review') return [action, ...[countsOfReview[to!] ?? []].flat()]
  if (action === 'replay' && to === 'parked') return from === 'parked' ? [] : ['park']
  // Only `fail()` moves a pending letter for a failure: no claim has counted that run.
  if (from === 'pending' && failure) return ['fail', action]
  // A worker parks what it claimed and must not run: the claim has counted a run that never was.
  if (action === 'park' && epoch !== undefined && !failure) return ['release', action]
  return [action]
}

/** How many entries a history keeps. */
export const maxHistory = 50

/** Appends an entry; past the bound the oldest but the first goes, and is counted. */
export function appendHistory(
  history: readonly HistoryEntry[],
  omitted: number,
  entry: HistoryEntry,
): { history: HistoryEntry[]; historyOmitted: number } {
  const longer = [...history, entry]
  const excess = Math.max(0, longer.length - maxHistory)
  if (excess > 0) longer.splice(1, excess)
  return { history: longer, historyOmitted: omitted + excess }
}

/** The letter as it stands after the change. Stores that keep objects write exactly this. */
export function withChange(letter: DeadLetter, change: Change): DeadLetter {
  let kept: object = letter
  const set: Record<string, unknown> = {}
  for (const [key, value] of Object.entries(change.set)) {
    // Only null takes a field away: undefined is what a field that nobody named looks like.
    if (value === undefined) continue
    if (value !== null) set[key] = value
    else if (key in kept) kept = without(kept, key)
  }
  return {
    ...kept,
    ...set,
    ...appendHistory(letter.history, letter.historyOmitted, change.entry),
    version: letter.version + 1,
    updatedAt: change.entry.at,
  } as DeadLetter
}

/** A copy instead of `delete`, which would make every later copy of the letter many times slower. */
function without(letter: object, key: string): object {
  const { [key]: _, ...rest } = letter as Record<string, unknown>
  return rest
}

/**
 * The letter as it stands once claimed: leased, and the retry counted, in one step with the claim, so that a
 * letter that kills its worker is still counted. A claim from a lapsed lease leaves a line in the history.
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
  const told = lapsed ? appendHistory(letter.history, letter.historyOmitted, lapsed) : {}
  return {
    ...rest,
    ...told,
    state: 'retrying',
    lease,
    epoch,
    retries: letter.retries + 1,
    version: letter.version + 1,
    updatedAt: at,
  }
}

/** The line that a claim leaves behind when it takes a letter over from a worker that went silent. */
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
 * The open letter as it stands after the same thing was captured once more: one occurrence more, and what is known
 * of the failure is the newer. It keeps its payload, its place and its budget.
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

const atRest: Patch = { lease: null, retryAt: null }

export function resolve(letter: Subject, by: Mover): Change {
  return change('resolve', letter, by, { ...resolved(by), ...unasked(letter) })
}

const resolved = ({ at }: Mover): Patch => ({
  ...atRest,
  state: 'resolved',
  reason: null,
  settledAt: at,
})

/** Somebody has acted without a review: it is not needed any more. One that was decided stays as it is. */
function unasked({ review: asked }: Subject): Patch {
  return asked && asked.decidedAt === undefined ? { review: null } : {}
}

/**
 * What a failed run leaves behind: why it failed, the input of the next run when part of the work is done, and the
 * limit of retries when it is another one from now on.
 */
interface Failed {
  judged: Judged
  payload?: Payload | undefined
  maxRetries?: number | undefined
}

/** Failed once more and will run again at `retryAt`, by another policy from now on if one is given. */
export function reschedule(
  letter: Subject,
  by: Mover,
  to: Failed & {
    retryAt: Timestamp
    backoffMs: number
    retries?: number
    policy?: RetryPolicy | undefined
  },
): Change {
  const { judged, retryAt, backoffMs, retries = letter.retries, policy = letter.policy } = to
  const set: Patch = {
    ...told(to),
    lease: null,
    state: 'pending',
    retryAt,
    backoffMs,
    retries,
    policy,
  }
  return change('reschedule', letter, by, set, judged)
}

/** Failed once more and has no retries left. */
export function exhaust(letter: Subject, by: Mover, to: Failed & { retries?: number }): Change {
  const { judged, retries = letter.retries } = to
  const set: Patch = {
    ...told(to),
    ...atRest,
    state: 'exhausted',
    reason: 'retries-exhausted',
    settledAt: by.at,
    retries,
  }
  return change('exhaust', letter, by, set, judged)
}

/** Put aside until a person or an event acts. Asks for a review. */
export function park(
  letter: Subject,
  by: Mover,
  to: Partial<Failed> & { reason: Reason; retries?: number },
): Change {
  const { reason, judged, retries = letter.retries } = to
  const review: Review = { neededSince: by.at }
  const set: Patch = {
    ...told(to),
    ...atRest,
    state: 'parked',
    reason,
    review,
    settledAt: by.at,
    retries,
  }
  return change('park', letter, by, set, judged)
}

/** Given back on purpose, unrun or unfinished: the retry is not counted, and the letter is due at once. */
export function release(
  letter: Subject,
  by: Mover,
  to: Pick<Partial<Failed>, 'payload'> = {},
): Change {
  const retries = Math.max(0, letter.retries - 1)
  const set: Patch = { ...told(to), lease: null, state: 'pending', retryAt: by.at, retries }
  return change('release', letter, by, set)
}

/** An outage made it fail: given back uncounted, and due again at `retryAt`. */
export function defer(
  letter: Subject,
  by: Mover,
  to: Failed & { retryAt: Timestamp; backoffMs: number; policy?: RetryPolicy | undefined },
): Change {
  const { judged, retryAt, backoffMs, policy = letter.policy } = to
  // The earliest timestamp counts: one of a clock that is ahead would make the patience with the letter longer.
  const { deferredSince: since = by.at } = letter
  const deferredSince = since < by.at ? since : by.at
  const { set } = release(letter, by)
  const patch = { ...set, ...told(to), retryAt, backoffMs, policy, deferredSince }
  return change('release', letter, by, patch, judged)
}

/** Due now, or at `retryAt`, because a person asked for it. A settled letter gets a fresh retry budget. */
export function retry(letter: Subject, by: Mover, retryAt: Timestamp = by.at): Change {
  return change('retry', letter, by, { ...dueNow(letter, by), retryAt, ...unasked(letter) })
}

function dueNow(letter: Subject, by: Mover): Patch {
  const fresh: Patch =
    letter.state === 'pending' ? {} : { retries: 0, budgetSince: by.at, deferredSince: null }
  return { ...fresh, ...due(by) }
}

const due = ({ at }: Mover): Patch => ({
  state: 'pending',
  retryAt: at,
  reason: null,
  settledAt: null,
})

/** Due now, since what it was parked for is over. Nobody decided on it anew: what is left of its budget stays. */
export function wake(letter: Subject, by: Mover): Change {
  return change('wake', letter, by, { ...due(by), review: null })
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
    requeue: dueNow(letter, by),
    resolve: resolved(by),
    discard: { ...shelved(letter, by), reason: 'operator' },
  }
  return change('review', letter, by, { ...outcome[decision], review: decided })
}

/** Published to its source again, where it runs again. When it fails there, it becomes another letter. */
export function replay(letter: Subject, by: Mover, replays: number): Change {
  return change('replay', letter, by, { ...resolved(by), ...unasked(letter), replays })
}

/** Not published: it was replayed as often as it may be. Asks for a review. */
export function parkAtReplayLimit(letter: Subject, by: Mover): Change {
  const review: Review = { neededSince: by.at }
  const set: Patch = {
    ...atRest,
    state: 'parked',
    reason: 'replay-limit',
    review,
    settledAt: by.at,
  }
  return change('replay', letter, by, set)
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

function shelved(letter: Subject, by: Mover): Patch {
  const archivedFrom = letter.state as NonNullable<DeadLetter['archivedFrom']>
  return { state: 'archived', lease: null, settledAt: by.at, archivedFrom }
}

/** Out of the way, kept whole, restorable. */
export function archive(letter: Subject, by: Mover): Change {
  return change('archive', letter, by, shelved(letter, by))
}

/** Back to where it was when it was archived. A letter that was pending is due again, now at the earliest. */
export function restore(letter: Subject, by: Mover): Change {
  const state = letter.archivedFrom ?? 'parked'
  const when: Patch =
    state === 'pending'
      ? {
          retryAt: letter.retryAt && letter.retryAt > by.at ? letter.retryAt : by.at,
          settledAt: null,
        }
      : { settledAt: by.at }
  return change('restore', letter, by, { ...when, state, archivedFrom: null })
}

function told({ judged, payload, maxRetries }: Partial<Failed>): Patch {
  return {
    ...judged,
    ...(payload ? { payload } : {}),
    ...(maxRetries === undefined ? {} : { maxRetries }),
  }
}

/** A failure as the history keeps it. */
export function inHistory(
  judged: Pick<Judged, 'failure' | 'category'>,
): NonNullable<HistoryEntry['failure']> {
  const { name, message } = judged.failure
  return { name, message: message.slice(0, 500).toWellFormed(), category: judged.category }
}

/** The one place where a change is put together. An illegal one is a bug of ours, not an outcome. */
function change(action: Move, letter: Subject, by: Mover, set: Patch, judged?: Judged): Change {
  const to = set.state ?? letter.state
  if (!isLegal(action, letter.state) || !(moveTable[action].to as readonly State[]).includes(to))
    throw new TypeError(`illegal move ${action}: ${letter.state} to ${to}`)
  const failure = judged && inHistory(judged)
  const entry: HistoryEntry = {
    at: by.at,
    actor: by.actor,
    action,
    from: letter.state,
    to,
    ...(by.guard === 'epoch' ? { epoch: letter.epoch } : {}),
    ...(failure ? { failure } : {}),
    ...(by.note === undefined ? {} : { note: by.note }),
  }
  const { version, epoch, lease } = letter
  const held = lease ? { epoch, worker: lease.worker } : { epoch }
  const guard = by.guard === 'epoch' ? held : { version }
  return { id: letter.id, guard, action, set, entry }
}
