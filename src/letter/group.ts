import type { ErrorCategory, State } from './letter.ts'
import type { Timestamp } from './time.ts'

/**
 * `regressed`: resolved, and then seen again. An ignored group is open again when a limit of
 * `ignored` is passed.
 */
export const groupStatuses = ['open', 'ignored', 'resolved', 'regressed'] as const
export type GroupStatus = (typeof groupStatuses)[number]

/** Letters with the same cause: those with the same fingerprint, or with a merged one. */
export interface Group {
  fingerprint: string
  /** Further fingerprints that were merged into the group. Absent: none. */
  merged?: string[]
  /** First line of the newest failure. */
  title: string
  /** Queue and category of the newest failure. */
  queue: string
  category: ErrorCategory
  status: GroupStatus
  /** The person who takes care of the group. */
  assignee?: string
  /** Number of letters, excluding archived ones unless the query asks for them. */
  count: number
  states: Partial<Record<State, number>>
  /** When the first and the last failure were captured. */
  firstSeen: Timestamp
  lastSeen: Timestamp
  /** Failures captured in the last 24 hours, minus those of the 24 hours before. */
  growth: number
  /** Failures captured in each of the last 24 clock hours, the oldest first. */
  trend: number[]
  /** Id of the newest letter. It may have been removed. */
  sampleId: string
}

/** Failures that were captured in an hour or a day, which begins at `at`. */
export interface TrendPoint {
  at: Timestamp
  count: number
}

/** A queue, tenant, host or version with failures of a group. */
export interface GroupFacet {
  name: string
  /** Failures that were captured. */
  count: number
  firstSeen: Timestamp
  lastSeen: Timestamp
}

export interface GroupNote {
  at: Timestamp
  by: string
  text: string
}

/**
 * What happened to a group. `regress` and `limit` (a limit of `ignored` was passed) are caused by
 * letters, all others by people.
 */
export const groupChangeKinds = [
  'resolve',
  'ignore',
  'reopen',
  'regress',
  'limit',
  'assign',
  'note',
  'merge',
  'split',
] as const
export type GroupChangeKind = (typeof groupChangeKinds)[number]

export interface GroupChange {
  at: Timestamp
  by: string
  change: GroupChangeKind
  from: GroupStatus
  to: GroupStatus
  /** Details: a version, a limit, an assignee or a fingerprint. */
  note?: string
}

/** A group with all of its queues, by its letters and by what was seen of them. */
export interface FoundGroup {
  group: Group
  /** Undefined: there are 20 or more, of which others may not be known. */
  queues: string[] | undefined
}

/** The latest change of a group. `new`: first seen within a day, and not changed since. */
export interface LatestGroupChange extends Pick<GroupChange, 'at'> {
  change: GroupChangeKind | 'new'
  /** Absent: the group is new. */
  by?: string
}

/** When the group counts as resolved. */
export interface GroupResolution {
  at: Timestamp
  by: string
  /** Failures of older versions do not make the group regress. */
  inVersion?: string
}

/** Until when the group is ignored: the first limit that is passed. Without one: until `reopen`. */
export interface GroupIgnoring {
  at: Timestamp
  by: string
  /** A time. */
  until?: Timestamp
  /** A number of further failures. */
  count?: number
  /** A number of failures in one clock hour. */
  rate?: number
  /** Failures that were captured since. */
  seen: number
}

export interface GroupDetail extends Omit<Group, 'trend'> {
  /** Failures by hour for the last 48 hours, and by day for the last 30 days, the oldest first. */
  trend: { hours: TrendPoint[]; days: TrendPoint[] }
  /** The most frequent ones, at most 20 of each. */
  queues: GroupFacet[]
  tenants: GroupFacet[]
  hosts: GroupFacet[]
  /** Versions of the application, at most 50. */
  versions: GroupFacet[]
  resolved?: GroupResolution
  ignored?: GroupIgnoring
  notes: GroupNote[]
  /** The latest changes, the oldest first, at most 100. */
  history: GroupChange[]
}

export interface GroupQuery {
  queue?: string | string[]
  /**
   * Only groups that are in none but these queues, by their letters and by what was seen of them. A
   * group with 20 queues or more is left out, because others may not be known. A page may have
   * fewer groups than `limit`.
   */
  within?: readonly string[]
  /** Counts only letters in these states. */
  state?: State | State[]
  /** Default: groups of every status. */
  status?: GroupStatus | GroupStatus[]
  /** `count`: most letters first; `lastSeen`: newest first; `growth`: fastest first. */
  sort?: 'count' | 'lastSeen' | 'growth'
  /** Page size, at most 100. Default: 20. */
  limit?: number
  cursor?: string
}

export interface ResolveGroupOptions {
  /** The version of the application that contains the fix. */
  inVersion?: string
}

export interface IgnoreGroupOptions {
  /** Until this time: an ISO-8601 timestamp or a Date. */
  until?: string | Date
  /** Until so many further failures. */
  count?: number
  /** Until so many failures in one clock hour. */
  rate?: number
}

/** Why a letter is in its category and its group, by the rules in force now. */
export interface GroupExplanation {
  /** The category of the failure, and the rule that decides it: `code:ECONNRESET`. */
  category: ErrorCategory
  rule: string
  /** The fingerprint of the letter. */
  fingerprint: string
  /** The fingerprint of the group: another one if the letter's was merged into it. */
  group: string
  /**
   * The fingerprint that the failure has now. It differs from that of the letter if rules changed
   * since, or if the letter comes from another system.
   */
  computed: string
  /** What the fingerprint is made of: the hash of these parts, or the result of a rule. */
  parts: { part: string; value: string }[]
  /** The frames of the stack that were read, and whether they count. */
  frames: { frame: string; used: boolean }[]
  /** The variable parts of the message that were replaced by "#", if the message counts. */
  masked: string[]
}
