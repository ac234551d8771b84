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
  'replayed',
  'redacted',
  'erased',
] as const
export type Reason = (typeof reasons)[number]

/** A thrown value as data. `toFailure` creates it from anything. */
export interface Failure {
  name: string
  message: string
  code?: string
  status?: number
  /** The delay that the service asked for, if any. */
  retryAfterMs?: number
  /** Kind of failure within its category, if known: `github_rate_limit`. */
  detail?: string
  /** What a person can do about the failure, from a template. */
  hint?: string
  stack?: string
  /** Causes, nearest first, then members of an AggregateError. Bounded. */
  causes: Failure[]
  at: Timestamp
}

/** The payload of the failed work: its bytes and their content type. */
export interface Payload {
  bytes: Uint8Array
  contentType: string
  size: number
  /** 1 as captured; each edit and each partial result increments it. Version 1 stays stored. */
  version: number
  /** After a partial result: the version whose remaining work this is. */
  restOf?: number
  /**
   * True: a JS value could not be stored exactly (a function, a throwing getter); markers show
   * where.
   */
  lossy?: boolean
  /**
   * True: the redaction rules of the queue have removed values of the payload or the headers, so
   * the letter cannot run.
   */
  redacted?: true
  /** The data subject that the payload is about: a keyed hash of its name. */
  subject?: string
  /** When the content of the letter was erased, together with the key that could decrypt it. */
  erased?: Timestamp
  /** Reference to the body, if it is too large to be stored here. */
  reference?: string
  /** Id of the key that the bytes are encrypted with. */
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

/** Delay before a retry. Plain data, so that it can be stored with the letter. */
export type RetryPolicy =
  | { kind: 'never' }
  | { kind: 'immediate' }
  | { kind: 'fixed'; delayMs: number; jitter?: Jitter }
  | { kind: 'linear'; stepMs: number; maxMs: number; jitter?: Jitter }
  | { kind: 'exponential'; baseMs: number; factor: number; maxMs: number; jitter?: Jitter }
  | { kind: 'custom'; name: string }

/** `none`; `full`: random in [0, delay]; a number: delay ± that share. */
export type Jitter = 'none' | 'full' | number

/** The right of a worker to settle a letter. Only the current epoch is valid. */
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
  /** The epoch of the run that this entry is about. */
  epoch?: number
  /** Name and message only; the letter has the first and the last failure in full. */
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
  'note',
] as const
export type Action = (typeof actions)[number]

/**
 * What the lifetime totals count: all actions, and two that the history records under another
 * action. `fail` is a run reported with `fail()` on a pending letter; `park-at-capture` is a letter
 * that was captured as parked.
 */
export type CountedAction = Action | 'fail' | 'park-at-capture'

/** A dead letter: one failed piece of work, stored until it is resolved or removed. */
export interface DeadLetter {
  /** A UUID, given by the caller or of version 7, which sorts by time of capture. */
  id: string
  /**
   * Grows with every change. A change by a person is rejected if it was based on an older version.
   */
  version: number
  /** Grows with every claim: the fencing token of the newest lease. */
  epoch: number
  dedupeKey?: string
  /** How often the failure was captured while the letter was open. */
  occurrences: number
  lane?: string
  dependsOn?: string[]
  tenant?: string

  queue: string
  source: Source
  traceparent?: string
  /** Absent in letters of older versions and in imported letters. */
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
  /** Hash of the cause: letters with the same fingerprint form a group. */
  fingerprint: string

  priority: Priority
  policy: RetryPolicy
  /** Runs before capture. */
  attempts: number
  /** Runs after capture, counted when they are claimed. */
  retries: number
  /** The current limit of `retries`. It follows the category of each failure. */
  maxRetries: number
  /** True: `maxRetries` was given for this letter, and does not follow the category. */
  maxRetriesChosen?: true
  /** When a person reset the retry count. Absent: never. */
  budgetSince?: Timestamp
  /** First failed run during an outage that was not counted, since the last reset. */
  deferredSince?: Timestamp
  replays: number
  retryAt?: Timestamp
  backoffMs: number
  expiresAt?: Timestamp

  state: State
  reason?: Reason
  lease?: Lease
  review?: Review
  /** The state to return to on restore. */
  archivedFrom?: Exclude<State, 'archived' | 'retrying'>

  failedAt: Timestamp
  deadLetteredAt: Timestamp
  updatedAt: Timestamp
  /** When the letter was last settled: resolved, exhausted, parked or archived. */
  settledAt?: Timestamp

  history: HistoryEntry[]
  /** Entries left out of the middle of `history` to keep it bounded. */
  historyOmitted: number

  /**
   * Why the store could not read the row. Such a letter can be read, parked, archived and removed.
   */
  corrupt?: string
}

/** A letter in lists: without the payload bytes and the history. */
export type LetterSummary = Omit<DeadLetter, 'payload' | 'history'> & {
  payload: Omit<Payload, 'bytes'>
}

/** Fields that never change after capture, and are stored separately. */
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

/**
 * Fields that a move may set. `payload` creates a new version; the first one stays in the origin.
 */
export type PatchKey = Exclude<
  keyof DeadLetter,
  OriginKey | 'version' | 'epoch' | 'history' | 'historyOmitted' | 'corrupt' | 'occurrences'
>

/** New values of some fields; null removes an optional field. */
export type Patch = {
  [K in PatchKey]?: undefined extends DeadLetter[K]
    ? Exclude<DeadLetter[K], undefined> | null
    : DeadLetter[K]
}

/**
 * Open letters still need an action: while one has a dedupeKey, a capture with that key adds an
 * occurrence to it.
 */
export function isOpen(state: State): boolean {
  return state !== 'resolved' && state !== 'archived'
}

/** Active letters can run, and hold their place in their lane. */
export function isActive(state: State): boolean {
  return state === 'pending' || state === 'retrying'
}

/** Resolved, or archived after it was resolved. */
export function isDone(letter: Pick<DeadLetter, 'state' | 'archivedFrom'>): boolean {
  return letter.state === 'resolved' || letter.archivedFrom === 'resolved'
}
