import type { Timestamp } from './time.ts'

export type Json = null | boolean | number | string | Json[] | { [key: string]: Json }

export const states = [
  'pending',
  'retrying',
  'resolved',
  'exhausted',
  'parked',
  'archived',
] as const
export type State = (typeof states)[number]

export const priorities = ['critical', 'high', 'medium', 'low'] as const
export type Priority = (typeof priorities)[number]

export const categories = [
  'transient',
  'network',
  'timeout',
  'rate-limit',
  'resource',
  'permission',
  'validation',
  'permanent',
  'dependency',
  'unknown',
] as const
export type ErrorCategory = (typeof categories)[number]

export const severities = ['low', 'medium', 'high', 'critical'] as const
export type Severity = (typeof severities)[number]

export const recoverabilities = ['retryable', 'recoverable', 'permanent', 'unknown'] as const
export type Recoverability = (typeof recoverabilities)[number]

/** Why a letter is parked or settled. */
export const reasons = [
  'permanent',
  'malformed',
  'no-handler',
  'never',
  'crash-loop',
  'max-hops',
  'expired',
  'replay-limit',
  'dependency-failed',
  'operator',
  'retries-exhausted',
  'superseded',
] as const
export type Reason = (typeof reasons)[number]

/** What was thrown, as data. Made by `toFailure`, which accepts anything. */
export interface Failure {
  name: string
  message: string
  code?: string
  status?: number
  /** What the other side asked us to wait, when it said so. */
  retryAfterMs?: number
  /** What kind of failure within its category, where that is known: `github_rate_limit`. */
  detail?: string
  /** What a person can do about it, where a template says so. */
  hint?: string
  stack?: string
  /** What led to it, nearest first: causes, then members of an AggregateError. Bounded. */
  causes: Failure[]
  at: Timestamp
}

/** The bytes that failed, as they were, and what they are. */
export interface Payload {
  bytes: Uint8Array
  contentType: string
  size: number
  /** 1 as captured; each edit and each partial result makes the next. Version 1 is kept for ever. */
  version: number
  /** After a partial result: the version that this is the rest of. */
  restOf?: number
  /** True when a JS value could not be kept exactly (a function, a throwing getter); the view marks where. */
  lossy?: boolean
  /** Where the real body is kept, when it is too large to be kept here. */
  reference?: string
  /** The key that the bytes are sealed with. */
  keyId?: string
}

export type Source =
  | { kind: 'operation'; type: string; method?: string; endpoint?: string; context?: Json }
  | {
      kind: 'mailbox'
      mailbox: string
      messageId: string
      replyTo?: string
      requestId?: string
      deliveries: number
      enqueuedAt?: Timestamp
      firstReceivedAt?: Timestamp
    }
  | {
      kind: 'workflow'
      name: string
      taskId: string
      targets: string[]
      adapter?: string
      context?: Json
    }
  | {
      kind: 'pipeline'
      cluster: string
      graph?: string
      node: string
      topic: string
      partition: number
      offset: string
      streamId: string
      hops: number
    }

/** How long to wait before a retry. Data, so that it can be stored with the letter. */
export type RetryPolicy =
  | { kind: 'never' }
  | { kind: 'immediate' }
  | { kind: 'fixed'; delayMs: number; jitter?: Jitter }
  | { kind: 'linear'; stepMs: number; maxMs: number; jitter?: Jitter }
  | { kind: 'exponential'; baseMs: number; factor: number; maxMs: number; jitter?: Jitter }
  | { kind: 'custom'; name: string }

/** none; full: anywhere in [0, delay]; a number: delay ± that share of it. */
export type Jitter = 'none' | 'full' | number

/** A worker's right to settle a letter. Only the current epoch counts. */
export interface Lease {
  worker: string
  epoch: number
  expiresAt: Timestamp
}

export interface Review {
  neededSince: Timestamp
  decidedBy?: string
  decidedAt?: Timestamp
  decision?: 'requeue' | 'resolve' | 'discard'
  note?: string
}

/** The program that captured a letter. */
export interface App {
  name?: string
  version?: string
  host: string
  /** The process id. */
  pid: number
}

export interface HistoryEntry {
  at: Timestamp
  actor: string
  action: Action
  from: State | null
  to: State | null
  /** The epoch of the run that this line is about. */
  epoch?: number
  /** Name and message only; the letter has the first and the last failure whole. */
  failure?: { name: string; message: string; category: ErrorCategory }
  note?: string
}

/** Everything that can happen to a letter. */
export const actions = [
  'capture',
  'occur',
  'claim',
  'resolve',
  'reschedule',
  'exhaust',
  'park',
  'release',
  'retry',
  'review',
  'edit',
  'replay',
  'archive',
  'restore',
  'remove',
  'evict',
  'wake',
] as const
export type Action = (typeof actions)[number]

/**
 * What the lifetime totals count: every action, and two things that a history has under another action. `fail` is a run that
 * somebody reported with `fail()` on a pending letter; `park-at-capture` is a letter that was captured as parked.
 */
export type CountedAction = Action | 'fail' | 'park-at-capture'

/** The letter: one failed piece of work, kept until someone decides that it need not be. */
export interface DeadLetter {
  /** A UUID, version 7 unless the caller chose one. Sorts by time of capture. */
  id: string
  /** Grows with every change; a person's change is refused when it was decided on an older one. */
  version: number
  /** Grows with every claim and never falls: the fencing token of the newest lease. */
  epoch: number
  dedupeKey?: string
  /** How often this was captured while the letter was open. */
  occurrences: number
  lane?: string
  dependsOn?: string[]
  tenant?: string

  queue: string
  source: Source
  traceparent?: string
  /** Absent on letters that an older version captured, or that were imported from another system. */
  app?: App

  payload: Payload
  headers?: Record<string, string>
  task?: { id: string; description: string; source: string }
  github?: {
    owner: string
    repo: string
    entityNumber?: number
    entityType?: 'issue' | 'pr' | 'comment'
  }
  metadata: { [key: string]: Json }
  tags: string[]

  failure: Failure
  firstFailure: Failure
  category: ErrorCategory
  severity: Severity
  recoverability: Recoverability
  /** One cause, one fingerprint: letters that share it form a group. */
  fingerprint: string

  priority: Priority
  policy: RetryPolicy
  /** Runs before capture. */
  attempts: number
  /** Runs after capture, counted when they are claimed. */
  retries: number
  /** The limit of `retries` that is in force. It follows the category of each failure. */
  maxRetries: number
  /** True: `maxRetries` was chosen for this letter, and does not follow the category. */
  maxRetriesChosen?: true
  /** When a person gave it a fresh budget of retries. Absent: the budget began at capture. */
  budgetSince?: Timestamp
  /** When an outage first made a run fail that was not counted, since the budget began. */
  deferredSince?: Timestamp
  replays: number
  retryAt?: Timestamp
  backoffMs: number
  expiresAt?: Timestamp

  state: State
  reason?: Reason
  lease?: Lease
  review?: Review
  /** The state to go back to on restore. */
  archivedFrom?: Exclude<State, 'archived' | 'retrying'>

  failedAt: Timestamp
  deadLetteredAt: Timestamp
  updatedAt: Timestamp
  /** When it last came to rest: resolved, exhausted, parked or archived. */
  settledAt?: Timestamp

  history: HistoryEntry[]
  /** Entries left out of the middle of `history` to keep it bounded. */
  historyOmitted: number

  /** Set by a store that could not read the row: why. Such a letter can be looked at, parked, archived, removed. */
  corrupt?: string
}

/** A letter as lists show it: without the bytes and the history. */
export type LetterSummary = Omit<DeadLetter, 'payload' | 'history'> & {
  payload: Omit<Payload, 'bytes'>
}

/** What never changes after capture, and is stored apart. */
export type OriginKey =
  | 'id'
  | 'dedupeKey'
  | 'lane'
  | 'dependsOn'
  | 'tenant'
  | 'queue'
  | 'source'
  | 'traceparent'
  | 'app'
  | 'task'
  | 'github'
  | 'firstFailure'
  | 'attempts'
  | 'maxRetriesChosen'
  | 'failedAt'
  | 'deadLetteredAt'

/** What a move may set. `payload` makes a new version; the first one stays in the origin. */
export type PatchKey = Exclude<
  keyof DeadLetter,
  OriginKey | 'version' | 'epoch' | 'history' | 'historyOmitted' | 'corrupt' | 'occurrences'
>

/** New values of some fields; null takes an optional field away. */
export type Patch = {
  [K in PatchKey]?: undefined extends DeadLetter[K]
    ? Exclude<DeadLetter[K], undefined> | null
    : DeadLetter[K]
}

/** Still to be dealt with: while such a letter holds a dedupeKey, the same capture adds an occurrence to it. */
export function isOpen(state: State): boolean {
  return state !== 'resolved' && state !== 'archived'
}

/** On its way: it can run, and it holds its place in its lane. */
export function isActive(state: State): boolean {
  return state === 'pending' || state === 'retrying'
}
