import type {
  CountedAction,
  ErrorCategory,
  Priority,
  Reason,
  Recoverability,
  RetryPolicy,
  Severity,
  State,
} from '../../letter/letter.ts'

/*
 * Enumerations stored as small numbers. The number is the index in the list, also in existing
 * files: append, never reorder.
 */

export const states = [
  'pending',
  'retrying',
  'resolved',
  'exhausted',
  'parked',
  'archived',
] as const

export const priorities = ['critical', 'high', 'medium', 'low'] as const

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

export const policies = ['never', 'immediate', 'fixed', 'linear', 'exponential', 'custom'] as const

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
  'fail',
  'park-at-capture',
  'note',
] as const

export const severities = ['low', 'medium', 'high', 'critical'] as const

export const recoverabilities = ['retryable', 'recoverable', 'permanent', 'unknown'] as const

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

export const stateCode = (state: State): number => states.indexOf(state)
export const priorityCode = (priority: Priority): number => priorities.indexOf(priority)
export const categoryCode = (category: ErrorCategory): number => categories.indexOf(category)
export const policyCode = (kind: RetryPolicy['kind']): number => policies.indexOf(kind)
export const actionCode = (action: CountedAction): number => actions.indexOf(action)
export const severityCode = (severity: Severity): number => severities.indexOf(severity)
export const reasonCode = (reason: Reason): number => reasons.indexOf(reason)
export const recoverabilityCode = (value: Recoverability): number => recoverabilities.indexOf(value)

/** Codes used in the code. */
export const pending = 0
export const retrying = 1
export const resolved = 2
export const parked = 4
export const archived = 5

/** Pending or retrying: the letter can run and occupies its lane. */
export const isActiveCode = (state: number): boolean => state === pending || state === retrying

/**
 * What a letter waits for: its due time, the end of its lease, its lane or dependencies; or it is
 * settled and has a `retryAt`.
 */
export const wait = { ready: 0, leased: 1, held: 2, resting: 3 } as const

/** What a letter is counted by, except its group and tags. */
export interface Cell {
  queue: number
  state: number
  category: number
  priority: number
  policy: number
}

/** Codes in the counters are lower than this. */
export const codesPerQueue = 4096

/** A cell as one number. The remainder modulo `codesPerQueue` is the code in the counters. */
export function cellOf(queue: number, parts: Omit<Cell, 'queue'>): number {
  const { state, category, priority, policy } = parts
  return queue * codesPerQueue + state * 512 + category * 32 + priority * 8 + policy
}

export function partsOf(cell: number): Cell {
  const code = cell % codesPerQueue
  return {
    queue: Math.floor(cell / codesPerQueue),
    state: code >> 9,
    category: (code >> 5) & 15,
    priority: (code >> 3) & 3,
    policy: code & 7,
  }
}

/** Kinds of counter rows: letters, totals of actions, letters of a group, letters with a tag. */
export const counter = { cell: 0, total: 1, group: 2, tag: 3 } as const
