import { priorities, type DeadLetter, type Priority } from './letter.ts'
import type { Timestamp } from './time.ts'

/**
 * The order of claims: priority, then due time, then id. Each `ageingMs` past due raises a letter
 * by one priority, so that low letters never starve. With the default, a low letter that is 45
 * minutes late goes before a critical one that is due now.
 */
export const ageingMs = 15 * 60_000

/** 0 for critical to 3 for low. */
export function rankOf(priority: Priority): number {
  return priorities.indexOf(priority)
}

/** The letter with the smallest score is claimed first. */
export function claimScore(rank: number, dueMs: number): number {
  return dueMs + rank * ageingMs
}

/**
 * The time from which a letter can be claimed: retryAt of a pending letter (default: its capture),
 * the end of the lease of a leased one. Undefined: not in its present state.
 */
export function dueAt(letter: DeadLetter): Timestamp | undefined {
  if (letter.state === 'pending') return letter.retryAt ?? letter.deadLetteredAt
  if (letter.state === 'retrying') return letter.lease?.expiresAt ?? letter.updatedAt
  return undefined
}
