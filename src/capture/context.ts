import { RedriveError } from '../errors.ts'
import { checkKeys, keysOf } from '../check/keys.ts'
import {
  priorities,
  type DeadLetter,
  type Json,
  type Payload,
  type Priority,
  type RetryPolicy,
} from '../letter/letter.ts'
import { encodePayload } from '../letter/payload.ts'
import { fitsJson } from '../letter/schema.ts'
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

type Task = NonNullable<CaptureContext['task']>
type Github = NonNullable<CaptureContext['github']>

const uuid = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/i

const contextKeys = keysOf<CaptureContext>({
  id: true,
  task: true,
  github: true,
  metadata: true,
  tags: true,
  headers: true,
  priority: true,
  maxRetries: true,
  policy: true,
  dedupeKey: true,
  lane: true,
  dependsOn: true,
  tenant: true,
  traceparent: true,
  attempts: true,
  failedAt: true,
  expiresAt: true,
  contentType: true,
  by: true,
  client: true,
})
const taskKeys = keysOf<Task>({ id: true, description: true, source: true })
const githubKeys = keysOf<Github>({ owner: true, repo: true, entityNumber: true, entityType: true })

/** Refuses what a caller may not say, before anything is kept. `also` names keys that the caller's object has besides. */
export function checkContext(
  context: CaptureContext,
  thing = 'capture context',
  also: readonly string[] = [],
): void {
  const bad = (what: string): never => {
    throw new RedriveError('INVALID_INPUT', what)
  }
  checkKeys(thing, context, [...contextKeys, ...also])
  if (context.task ?? undefined) checkKeys('task', context.task, taskKeys)
  if (context.github ?? undefined) checkKeys('github', context.github, githubKeys)
  if (context.id !== undefined && !isUuid(context.id))
    bad(`id must be a UUID (use dedupeKey for other keys), got ${String(context.id).slice(0, 80)}`)
  const dependsOn = context.dependsOn ?? []
  if (!Array.isArray(dependsOn)) bad('dependsOn must be a list of ids')
  for (const id of dependsOn)
    if (!isUuid(id)) bad(`dependsOn must hold ids of letters, got ${String(id).slice(0, 80)}`)
  const own = context.id?.toLowerCase()
  if (dependsOn.some((id) => id.toLowerCase() === own))
    bad('a letter that depends on itself would wait for ever')
  if (context.maxRetries !== undefined && !isCount(context.maxRetries))
    bad(`maxRetries must be a whole number from 0 on, got ${context.maxRetries}`)
  if (context.attempts !== undefined && !isCount(context.attempts))
    bad(`attempts must be a whole number from 0 on, got ${context.attempts}`)
  for (const key of ['failedAt', 'expiresAt'] as const)
    if (context[key] !== undefined && !isTimestamp(context[key]))
      bad(`${key} must be an ISO-8601 moment, got ${String(context[key]).slice(0, 80)}`)
  if (context.priority !== undefined && !priorities.includes(context.priority))
    bad(`priority must be ${priorities.join(', ')}, got ${String(context.priority).slice(0, 80)}`)
  if (context.policy !== undefined && parsePolicy(context.policy) === undefined)
    bad('policy must be made by never, immediate, fixed, linear, exponential or custom')
  const headers: unknown = context.headers ?? {}
  // A Map or a Headers would be kept without what is in it.
  if (typeof headers !== 'object' || headers === null || Symbol.iterator in headers)
    return bad('headers must be an object of texts')
  for (const [name, value] of Object.entries(headers))
    if (typeof value !== 'string') bad(`header ${name.slice(0, 80)} must be a text`)
  const tags: unknown = context.tags ?? []
  if (!Array.isArray(tags) || [...(tags as unknown[])].some((tag) => typeof tag !== 'string'))
    bad('tags must be a list of texts')
  if (!isTask(context.task ?? undefined))
    bad('task must have an id, a description and a source, all of them texts')
  if (!isGithub(context.github ?? undefined))
    bad(
      'github must have an owner and a repo, both texts, and may have an entityNumber and an entityType: issue, pr or comment',
    )
  for (const key of ['by', 'traceparent', 'contentType'] as const)
    if (typeof (context[key] ?? '') !== 'string') bad(`${key} must be a text`)
  for (const key of ['dedupeKey', 'lane', 'tenant'] as const)
    if (context[key] !== undefined && (typeof context[key] !== 'string' || context[key] === ''))
      bad(`${key} must be a text that is not empty`)
  // UTF-8 has no half characters: a letter would come back under another name, and not be found by the one that it was given.
  for (const key of ['dedupeKey', 'lane', 'tenant', 'tags'] as const)
    if ([context[key] ?? ''].flat().some((name) => !name.isWellFormed()))
      bad(`${key} must be whole text: there is half of a character in it (a lone surrogate)`)
}

const isoDate = /^(?:[+-]\d\d)?\d{4}(?:-\d\d(?:-\d\d(?:[T ][\d:.]+(?:Z|[+-]\d\d:?\d\d)?)?)?)?$/i

/** The platform reads a date into almost anything that has a number in it: 5 is a day in May 2001. */
export function isTimestamp(value: unknown): boolean {
  if (value instanceof Date) return !Number.isNaN(value.getTime())
  return typeof value === 'string' && isoDate.test(value) && !Number.isNaN(toMs(value))
}

function isCount(value: number): boolean {
  return Number.isSafeInteger(value) && value >= 0
}

function isUuid(value: unknown): boolean {
  return typeof value === 'string' && uuid.test(value)
}

function isTask(task: CaptureContext['task']): boolean {
  if (task === undefined) return true
  return [task.id, task.description, task.source].every((part) => typeof part === 'string')
}

function isGithub(github: CaptureContext['github']): boolean {
  if (github === undefined) return true
  const { owner, repo, entityNumber = 0, entityType = 'issue' } = github
  return (
    [owner, repo].every((part) => typeof part === 'string') &&
    Number.isFinite(entityNumber) &&
    ['issue', 'pr', 'comment'].includes(entityType)
  )
}

/**
 * What is said around a failure, as JSON of its own: later changes by the caller do not reach it. What JSON cannot
 * hold is kept in the marked form of the payload's codec, and what is nested too deep for a letter as the text of its
 * JSON, so that nothing that is said can break a capture.
 */
export function jsonOf(value: unknown): Json {
  const json = parsedOf(value)
  return fitsJson(json) ? json : JSON.stringify(json)
}

function parsedOf(value: unknown): Json {
  try {
    return JSON.parse(JSON.stringify(value)) as Json
  } catch {
    return JSON.parse(Buffer.from(encodePayload(value).bytes).toString()) as Json
  }
}

/** Metadata as a letter keeps it. What is no object, or too deep to be one, stands under `value`. */
export function metadataOf(said: unknown): { [key: string]: Json } {
  const value = jsonOf(said)
  return typeof value === 'object' && value !== null && !Array.isArray(value) ? value : { value }
}

/** Refuses a payload that is larger than a letter may keep. */
export function checkSize({ size }: Payload, queue: string, maxPayloadBytes: number): void {
  if (size > maxPayloadBytes)
    throw new RedriveError(
      'TOO_LARGE',
      `payload of ${queue} has ${size} bytes, the limit is ${maxPayloadBytes} (maxPayloadBytes): keep a reference instead`,
    )
}
