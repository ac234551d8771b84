import { priorities, type DeadLetter, type Priority } from './letter.ts'
import type { Timestamp } from './time.ts'

/**
 * Who is claimed first: priority, then due time, then id. Waiting counts: each `ageingMs` past due lifts a
 * letter by one priority, so that low ones are overtaken for a while but never starve. With the default, a low
 * letter that has waited 45 minutes goes before a critical one that has just become due.
 */
export const ageingMs = 15 * 60_000

/** 0 for critical to 3 for low. */
export function rankOf(priority: Priority): number {
  return priorities.indexOf(priority)
}

/** Smaller goes first. */
export function claimScore(rank: number, dueMs: number): number {
  return dueMs + rank * ageingMs
}

/**
 * From when a claim may take the letter: a pending one from its retryAt (without one, since its capture), a leased
 * one from the end of its lease. Undefined: never, in its present state.
 */
export function dueAt(letter: DeadLetter): Timestamp | undefined {
  if (letter.state === 'pending') return letter.retryAt ?? letter.deadLetteredAt
  if (letter.state === 'retrying') return letter.lease?.expiresAt ?? letter.updatedAt
  return undefined
}
