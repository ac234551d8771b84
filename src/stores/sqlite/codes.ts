import type { Action, ErrorCategory, Priority, RetryPolicy, State } from '../../letter/letter.ts'

/*
 * Words that stand in the database as small numbers. The place in the list is the number, in files that exist: append,
 * and never reorder.
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
] as const

export const stateCode = (state: State): number => states.indexOf(state)
export const priorityCode = (priority: Priority): number => priorities.indexOf(priority)
export const categoryCode = (category: ErrorCategory): number => categories.indexOf(category)
export const policyCode = (kind: RetryPolicy['kind']): number => policies.indexOf(kind)
export const actionCode = (action: Action): number => actions.indexOf(action)

/** The codes that code speaks of. */
export const pending = 0
export const retrying = 1
export const resolved = 2
export const archived = 5

/** Still to be dealt with, or on its way, by code. */
export const isOpenCode = (state: number): boolean => state !== resolved && state !== archived
export const isActiveCode = (state: number): boolean => state === pending || state === retrying

/**
 * Where a letter waits: free to be claimed when due, leased, held back by its lane or by what it depends on, or at rest
 * with a `retryAt` that it keeps for later.
 */
export const wait = { ready: 0, leased: 1, held: 2, resting: 3 } as const

/** What one letter is counted under. */
export interface Cell {
  queue: number
  state: number
  category: number
  priority: number
  policy: number
}

/*
 * Keys of the counters: the queue, and below it first the cells of letters that there are, then the totals of what
 * happened. So the counters of one queue stand together, and a capture touches one page of them.
 */
const perQueue = 8192
const firstTotal = 4096

export function cellOf(queue: number, parts: Omit<Cell, 'queue'>): number {
  const { state, category, priority, policy } = parts
  return queue * perQueue + state * 512 + category * 32 + priority * 8 + policy
}

export function totalOf(queue: number, action: number, priority: number): number {
  return queue * perQueue + firstTotal + action * 4 + priority
}

/** A condition of SQL: the key is a cell and not a total. */
export const isCell = `key % ${perQueue} < ${firstTotal}`

export function partsOf(cell: number): Cell {
  const low = cell % perQueue
  return {
    queue: Math.floor(cell / perQueue),
    state: low >> 9,
    category: (low >> 5) & 15,
    priority: (low >> 3) & 3,
    policy: low & 7,
  }
}

export function totalPartsOf(key: number): { queue: number; action: number; priority: number } {
  const low = (key % perQueue) - firstTotal
  return { queue: Math.floor(key / perQueue), action: low >> 2, priority: low & 3 }
}
