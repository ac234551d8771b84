import { checkKeys, describeValue } from '../check/keys.ts'
import { readTime } from '../check/read-time.ts'
import { RedriveError } from '../errors.ts'
import type { Timestamp } from '../letter/time.ts'
import type { Mailbox } from '../mailbox.ts'

export interface ActionOptions {
  /** Acts only if the letter still has this version; otherwise it rejects with VERSION_CONFLICT. */
  ifVersion?: number
}

export interface RetryOptions extends ActionOptions {
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

export interface LetterReplayOptions extends ActionOptions {
  /** Another mailbox than the source: a mailbox, or a name that a loop or `mailboxes` defines. */
  to?: string | Mailbox
}

export interface ReviewInput extends ActionOptions {
  decision: 'requeue' | 'resolve' | 'discard'
  note?: string
  by: string
}

export interface ReadRetryOptions {
  at: Timestamp | undefined
  wait: boolean
  signal: AbortSignal | undefined
  ifVersion: number | undefined
}

export function readRetryOptions(options: RetryOptions): ReadRetryOptions {
  checkKeys('retry options', options, ['at', 'wait', 'signal', 'ifVersion'])
  const { at, wait, signal } = options
  if (wait !== undefined && typeof wait !== 'boolean')
    reject(`\`wait\` must be true or false, got ${typeof wait}`)
  if (signal !== undefined && !(signal instanceof AbortSignal))
    reject(`\`signal\` must be an AbortSignal, got ${typeof signal}`)
  return {
    at: at === undefined ? undefined : readTime('at', at),
    wait: wait ?? false,
    signal,
    ifVersion: readVersion(options),
  }
}

/** The version that a letter must have. */
export function readVersion({ ifVersion }: ActionOptions): number | undefined {
  if (ifVersion === undefined || (Number.isSafeInteger(ifVersion) && ifVersion > 0))
    return ifVersion
  return reject(`\`ifVersion\` must be the version of a letter, got ${describeValue(ifVersion)}`)
}

/** Like `readVersion`, for actions that have no other options. */
export function readActionOptions(options: ActionOptions): number | undefined {
  checkKeys('action options', options, ['ifVersion'])
  return readVersion(options)
}

function reject(why: string): never {
  throw new RedriveError('INVALID_INPUT', why)
}
