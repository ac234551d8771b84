import type { Timestamp } from './time.ts'

/** A queue whose letters are not run at present, by the decision of a person. */
export interface PausedQueue {
  queue: string
  /** Who paused it. */
  by: string
  reason: string
  at: Timestamp
}
