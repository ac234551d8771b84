import type { Json } from './letter.ts'
import type { Timestamp } from './time.ts'

/** What people do. `access` is a call of the server that was denied. */
export const auditActions = [
  'retry',
  'replay',
  'resolve',
  'fail',
  'park',
  'review',
  'note',
  'edit',
  'undo-edit',
  'archive',
  'restore',
  'remove',
  'clear',
  'bulk-plan',
  'bulk-approve',
  'bulk-run',
  'bulk-pause',
  'bulk-resume',
  'bulk-cancel',
  'group-resolve',
  'group-ignore',
  'group-reopen',
  'group-assign',
  'group-note',
  'group-merge',
  'group-split',
  'queue-pause',
  'queue-resume',
  'alert-acknowledge',
  'alert-test',
  'token-create',
  'token-revoke',
  'token-rotate',
  'sign-in',
  'sign-out',
  'pipeline-replay',
  'import',
  'reveal',
  'erase',
  'audit-prune',
  'keys-rotate',
  'access',
] as const
export type AuditAction = (typeof auditActions)[number]

/** How an action reached the queue. */
export const auditWays = ['library', 'cli', 'http'] as const
export type AuditVia = (typeof auditWays)[number]

/** `started` is written before the action, the others after it. */
export const auditOutcomes = ['started', 'done', 'failed', 'denied'] as const
export type AuditOutcome = (typeof auditOutcomes)[number]

export const auditSubjects = [
  'letter',
  /** All letters that match a filter; its id is the filter as JSON. */
  'letters',
  'group',
  'queue',
  'alert',
  /** A target of notifications. */
  'target',
  'bulk-action',
  'token',
  'session',
  'pipeline-node',
  'endpoint',
  'store',
  /** A data subject; its id is a keyed hash. */
  'subject',
] as const

/** What an action is about. */
export interface AuditSubject {
  kind: (typeof auditSubjects)[number]
  id: string
}

/** One entry of the audit log. Its hash covers all its fields and the hash of the entry before. */
export interface AuditEntry {
  /** From 1, without gaps. */
  seq: number
  /** Unique, so that two equal actions are different entries. */
  id: string
  at: Timestamp
  actor: string
  via: AuditVia
  action: AuditAction
  what: AuditSubject
  /** The endpoint of a denied call. */
  endpoint?: string
  /** The reason, the note, or why the call was denied. */
  reason?: string
  outcome: AuditOutcome
  /** The error code, if the action failed or was denied. */
  code?: string
  /** The entry that was written before the action. */
  startSeq?: number
  /** Equal attempts before this one that have no entry of their own. */
  repeats?: number
  /** State and version, and hashes of payloads, but never their content. */
  before?: { [key: string]: Json }
  after?: { [key: string]: Json }
  /** The hash of the entry before this one. */
  prevHash: string
  hash: string
}

export interface AuditQuery {
  actor?: string
  action?: AuditAction | AuditAction[]
  outcome?: AuditOutcome | AuditOutcome[]
  /** The id of a letter, a group, a queue, a bulk action, a token or an endpoint. */
  what?: string
  /** At this time or later. */
  since?: Timestamp
  /** Before this time. */
  until?: Timestamp
  /** Default: newest. */
  order?: 'newest' | 'oldest'
  /** Page size, from 1 to 1,000. Default: 100. */
  limit?: number
  cursor?: string
}

/** A position in the audit log: an entry and its hash. */
export interface AuditPosition {
  seq: number
  hash: string
}

export interface AuditReport {
  ok: boolean
  /** Entries that were checked. */
  entries: number
  /** The last entry that was checked. Keep it elsewhere, and give it to a later check. */
  head: AuditPosition
  /** The last entry that was removed by a prune. The check begins after it. */
  pruned?: AuditPosition
  /** Actions without an outcome: they run, or their process ended during them. At most 100. */
  unfinished: number[]
  /** The first entry that is wrong or missing. */
  firstBad?: number
  why?: string
}
