import { checkKeys } from '../check/keys.ts'
import { readTime } from '../check/read-time.ts'
import { RedriveError } from '../errors.ts'
import type { Timestamp } from '../letter/time.ts'

export interface RetryOptions {
  /** When it becomes due: an ISO-8601 timestamp or a Date. A past time means now. Default: now. */
  at?: string | Date
  /**
   * True: resolves after the next run, in any process, with the letter after it: resolved,
   * rescheduled, exhausted or parked. If no process has a handler for its queue, a worker parks the
   * letter; while no worker runs, it stays due.
   */
  wait?: boolean
  /** Aborts the wait. The letter stays due. */
  signal?: AbortSignal
}

export interface ReadRetryOptions {
  at: Timestamp | undefined
  wait: boolean
  signal: AbortSignal | undefined
}

export function readRetryOptions(options: RetryOptions): ReadRetryOptions {
  checkKeys('retry options', options, ['at', 'wait', 'signal'])
  const { at, wait, signal } = options
  if (wait !== undefined && typeof wait !== 'boolean')
    reject(`\`wait\` must be true or false, got ${typeof wait}`)
  if (signal !== undefined && !(signal instanceof AbortSignal))
    reject(`\`signal\` must be an AbortSignal, got ${typeof signal}`)
  return { at: at === undefined ? undefined : readTime('at', at), wait: wait ?? false, signal }
}

function reject(why: string): never {
  throw new RedriveError('INVALID_INPUT', why)
}
