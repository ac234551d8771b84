import { RedriveError } from '../errors.ts'
import {
  priorities,
  type DeadLetter,
  type Json,
  type Priority,
  type RetryPolicy,
} from '../letter/letter.ts'
import { encodePayload } from '../letter/payload.ts'
import { toMs, type Timestamp } from '../letter/time.ts'
import { parsePolicy } from '../policy/backoff.ts'

/** What the caller may say about a failure beside the error itself. */
export interface CaptureContext {
  /** A UUID of the caller's choice: capturing it again gives back the letter that is kept already. */
  id?: string
  task?: DeadLetter['task']
  github?: DeadLetter['github']
  metadata?: { [key: string]: Json }
  tags?: string[]
  headers?: Record<string, string>
  priority?: Priority
  maxRetries?: number
  /** How to wait between retries, whatever the category of the failure says. */
  policy?: RetryPolicy
  /** While an open letter of the queue has this key, the same capture adds an occurrence to it. */
  dedupeKey?: string
  /** Letters of one lane run one after the other, in the order of capture. */
  lane?: string
  /** Ids of letters that must be resolved before this one runs. */
  dependsOn?: string[]
  tenant?: string
  traceparent?: string
  /** Runs before this capture. 1 unless said. */
  attempts?: number
  /** When it first failed. Now, unless said. */
  failedAt?: Timestamp
  expiresAt?: Timestamp
  /** What the payload is, when it is given as bytes or text. */
  contentType?: string
  /** Who captured it, for the history. */
  by?: string
  /**
   * A client of `pg` on which you have begun a transaction: the letter is kept, and workers hear of it, when that commits.
   * With a Postgres store only.
   */
  client?: unknown
}

const uuid = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/i

/** Refuses what a caller may not say, before anything is kept. */
export function checkContext(context: CaptureContext): void {
  const bad = (what: string): never => {
    throw new RedriveError('INVALID_INPUT', what)
  }
  if (context.id !== undefined && !uuid.test(context.id))
    bad(`id must be a UUID (use dedupeKey for other keys), got ${String(context.id).slice(0, 80)}`)
  for (const id of context.dependsOn ?? [])
    if (!uuid.test(id)) bad(`dependsOn must hold ids of letters, got ${String(id).slice(0, 80)}`)
  if (context.maxRetries !== undefined && !isCount(context.maxRetries))
    bad(`maxRetries must be a whole number from 0 on, got ${context.maxRetries}`)
  if (context.attempts !== undefined && !isCount(context.attempts))
    bad(`attempts must be a whole number from 0 on, got ${context.attempts}`)
  for (const key of ['failedAt', 'expiresAt'] as const)
    if (context[key] !== undefined && Number.isNaN(toMs(context[key])))
      bad(`${key} must be an ISO-8601 moment, got ${String(context[key]).slice(0, 80)}`)
  if (context.priority !== undefined && !priorities.includes(context.priority))
    bad(`priority must be ${priorities.join(', ')}, got ${String(context.priority).slice(0, 80)}`)
  if (context.policy !== undefined && parsePolicy(context.policy) === undefined)
    bad('policy must be made by never, immediate, fixed, linear, exponential or custom')
  for (const [name, value] of Object.entries(context.headers ?? {}))
    if (typeof value !== 'string') bad(`header ${name.slice(0, 80)} must be a text`)
  if (context.tags?.some((tag) => typeof tag !== 'string')) bad('tags must be texts')
  for (const key of ['dedupeKey', 'lane', 'tenant'] as const)
    if (context[key] !== undefined && (typeof context[key] !== 'string' || context[key] === ''))
      bad(`${key} must be a text that is not empty`)
}

function isCount(value: number): boolean {
  return Number.isInteger(value) && value >= 0
}

// oxlint-disable-next-line no-control-regex -- control characters are what is looked for
const unprintable = /[\u0000-\u001f\u007f]/

export function isQueueName(name: unknown): boolean {
  return typeof name === 'string' && name !== '' && name.length <= 200 && !unprintable.test(name)
}

/** Queue names are for people to read and filter by: any text of 1 to 200 characters without control characters. */
export function checkQueueName(name: unknown): string {
  if (isQueueName(name)) return name as string
  const got = typeof name === 'string' ? JSON.stringify(name.slice(0, 80)) : typeof name
  throw new RedriveError(
    'INVALID_INPUT',
    `a queue name is a text of 1 to 200 characters without control characters, got ${got}`,
  )
}

/**
 * What is said around a failure, as JSON of its own: later changes by the caller do not reach it. What JSON cannot
 * hold is kept in the marked form of the payload's codec, so that nothing that is said can break a capture.
 */
export function jsonOf(value: unknown): Json {
  try {
    return JSON.parse(JSON.stringify(value)) as Json
  } catch {
    return JSON.parse(Buffer.from(encodePayload(value).bytes).toString()) as Json
  }
}
