import { checkKeys } from '../check/keys.ts'
import type { ErrorCategory, Failure, Jitter, Priority, RetryPolicy } from '../letter/letter.ts'
import { inWords } from './in-words.ts'

const minuteMs = 60_000
const dayMs = 24 * 60 * minuteMs

/** Ten years, the longest delay. A larger number is rejected as a mistake. */
export const longestMs = 3650 * dayMs

/** Limit of the delay that another side may ask for: a letter is retried at least once a day. */
export const longestRetryAfterMs = dayMs

/** A custom backoff, registered by name. Retry 0 is the first one. */
export type CustomBackoff = (retry: number, failure: Failure) => number
export type Customs = Readonly<Record<string, CustomBackoff>>

/** No automatic retry: only a person can retry the letter. */
export function never(): RetryPolicy {
  return { kind: 'never' }
}

/** Retry as soon as a worker is free. */
export function immediate(): RetryPolicy {
  return { kind: 'immediate' }
}

/** The same delay before every retry. */
export function fixed(delayMs: number, jitter?: Jitter): RetryPolicy {
  return makePolicy('fixed', { delayMs, jitter })
}

/** Default: 5, 10, 15 … 60 minutes. */
export function linear(
  options: { stepMs?: number; maxMs?: number; jitter?: Jitter } = {},
): RetryPolicy {
  return makePolicy('linear', options)
}

/** Default: 1, 2, 4 … 60 minutes. */
export function exponential(
  options: { baseMs?: number; factor?: number; maxMs?: number; jitter?: Jitter } = {},
): RetryPolicy {
  return makePolicy('exponential', options)
}

/** The backoff registered under this name; if there is none, the default exponential one. */
export function custom(name: string): RetryPolicy {
  return makePolicy('custom', { name })
}

const policyKeys: Record<RetryPolicy['kind'], readonly string[]> = {
  never: [],
  immediate: [],
  fixed: ['delayMs', 'jitter'],
  linear: ['stepMs', 'maxMs', 'jitter'],
  exponential: ['baseMs', 'factor', 'maxMs', 'jitter'],
  custom: ['name'],
}

/** Checks a policy and fills in its defaults. Throws a TypeError with the invalid value. */
function makePolicy(kind: unknown, values: Readonly<Record<string, unknown>>): RetryPolicy {
  if (typeof kind === 'string' && Object.hasOwn(policyKeys, kind))
    checkKeys(`${kind} backoff`, values, ['kind', ...policyKeys[kind as RetryPolicy['kind']]])
  const { maxMs = 60 * minuteMs } = values
  switch (kind) {
    case 'never':
      return never()
    case 'immediate':
      return immediate()
    case 'fixed':
      return { kind, delayMs: duration('delayMs', values['delayMs']), ...readJitter(values) }
    case 'linear': {
      const stepMs = duration('stepMs', values['stepMs'] ?? 5 * minuteMs)
      return { kind, stepMs, maxMs: duration('maxMs', maxMs), ...readJitter(values) }
    }
    case 'exponential': {
      const baseMs = duration('baseMs', values['baseMs'] ?? minuteMs)
      const factor = atLeastOne('factor', values['factor'] ?? 2)
      return { kind, baseMs, factor, maxMs: duration('maxMs', maxMs), ...readJitter(values) }
    }
    case 'custom':
      return { kind, name: nonEmptyString('name', values['name']) }
    default:
      throw new TypeError(
        `a retry policy must be never, immediate, fixed, linear, exponential or custom, got ${inWords(kind)}`,
      )
  }
}

function duration(name: string, ms: unknown): number {
  if (typeof ms === 'number' && ms >= 0 && ms <= longestMs) return ms
  throw new TypeError(`${name} must be milliseconds from 0 to ${longestMs}, got ${inWords(ms)}`)
}

function atLeastOne(name: string, value: unknown): number {
  if (typeof value === 'number' && value >= 1 && Number.isFinite(value)) return value
  throw new TypeError(`${name} must be a number of at least 1, got ${inWords(value)}`)
}

function nonEmptyString(name: string, value: unknown): string {
  if (typeof value === 'string' && value !== '') return value
  throw new TypeError(
    `${name} of a custom backoff must be a non-empty string, got ${inWords(value)}`,
  )
}

function readJitter({ jitter }: Readonly<Record<string, unknown>>): { jitter?: Jitter } {
  if (jitter === undefined) return {}
  if (jitter === 'none' || jitter === 'full') return { jitter }
  if (typeof jitter === 'number' && jitter >= 0 && jitter <= 1) return { jitter }
  throw new TypeError(
    `jitter must be 'none', 'full' or a share from 0 to 1, got ${inWords(jitter)}`,
  )
}

/** The policy of letters of this category when none is chosen. */
export function defaultPolicyFor(category: ErrorCategory): RetryPolicy {
  if (neverAgain.has(category)) return never()
  return category === 'resource' ? linear() : exponential()
}

/** Categories of failures that would happen again: a person has to act first. */
export const neverAgain: ReadonlySet<ErrorCategory> = new Set<ErrorCategory>([
  'permanent',
  'permission',
  'validation',
])

/** Reads a policy by name or as data and fills in the defaults. Undefined if it is invalid. */
export function parsePolicy(input: unknown): RetryPolicy | undefined {
  try {
    if (typeof input === 'string') return makePolicy(input.trim().toLowerCase(), {})
    const values: Record<string, unknown> = { ...Object(input) }
    return makePolicy(values['kind'], values)
  } catch {
    return undefined
  }
}

/** The policy with all defaults filled in. Letters store complete policies. */
export function withDefaults(policy: RetryPolicy): RetryPolicy {
  return parsePolicy(policy) ?? policy
}

/** A delay, and the problem with a custom backoff, if there was one. Null: no further run. */
export interface Delay {
  delayMs: number | null
  problem?: string
}

/**
 * The delay before a retry (0 is the first) in milliseconds; null for never. The same random
 * numbers give the same delay. A custom backoff that is missing, throws or returns an invalid value
 * is replaced by the default one.
 */
export function backoffMs(
  policy: RetryPolicy,
  retry: number,
  random: () => number,
  customs: Customs = {},
  failure?: Failure,
): number | null {
  return delayOf(policy, retry, random, customs, failure).delayMs
}

export interface RetryQuestion {
  policy: RetryPolicy
  retry: number
  priority: Priority
  failure: Failure
  random: () => number
  customs?: Customs
  /** Maximum delay, unless the other side asks for more. Default: none. */
  withinMs?: number
}

/**
 * The delay before a retry of a letter: at least what the other side asked for, up to a day.
 * Otherwise the first retry of a critical letter has no delay.
 */
export function retryDelay(asked: RetryQuestion): Delay {
  const { policy, retry, priority, failure, random, customs = {}, withinMs = Infinity } = asked
  if (policy.kind === 'never') return { delayMs: null }
  const urgent = priority === 'critical' && retry <= 0
  const delay: Delay = urgent ? { delayMs: 0 } : delayOf(policy, retry, random, customs, failure)
  if (delay.delayMs === null) return delay
  const delayMs = Math.min(delay.delayMs, withinMs)
  const wanted = Math.min(failure.retryAfterMs ?? 0, longestRetryAfterMs)
  return { ...delay, delayMs: wanted > delayMs ? Math.ceil(wanted) : delayMs }
}

const fallback = exponential()

function delayOf(
  policy: RetryPolicy,
  retry: number,
  random: () => number,
  customs: Customs,
  failure: Failure | undefined,
): Delay {
  if (policy.kind === 'never') return { delayMs: null }
  const count = retry > 0 ? Math.floor(retry) : 0
  const found =
    policy.kind === 'custom' ? callCustom(policy.name, count, customs, failure) : undefined
  const delayMs = typeof found === 'string' ? NaN : (found ?? arithmetic(policy, count, random))
  if (Number.isFinite(delayMs)) return { delayMs }
  const problem = typeof found === 'string' ? found : `backoff ${policy.kind} is not a number`
  return { delayMs: arithmetic(fallback, count, random), problem }
}

/** NaN for an unknown policy, which another version may have stored. */
function arithmetic(policy: RetryPolicy, retry: number, random: () => number): number {
  switch (policy.kind) {
    case 'immediate':
      return 0
    case 'fixed':
      return addJitter(policy.delayMs, longestMs, policy.jitter, random)
    case 'linear':
      return addJitter(policy.stepMs * (retry + 1), policy.maxMs, policy.jitter, random)
    case 'exponential': {
      // A base of 0 times a power that overflowed would be NaN.
      const grown = policy.baseMs === 0 ? 0 : policy.baseMs * policy.factor ** retry
      return addJitter(grown, policy.maxMs, policy.jitter, random)
    }
    default:
      return NaN
  }
}

/**
 * Draws from the range of the jitter. The range is limited to `maxMs` before the draw, not after
 * it, so that letters at the maximum stay spread out.
 */
function addJitter(
  uncappedMs: number,
  maxMs: number,
  jitter: Jitter = 'none',
  random: () => number,
): number {
  const delayMs = Math.min(uncappedMs, maxMs)
  if (!(delayMs >= 0)) return NaN
  if (jitter === 'none' || jitter === 0) return delayMs
  const share = jitter === 'full' ? 1 : jitter
  const lowMs = Math.max(0, delayMs * (1 - share))
  const highMs = jitter === 'full' ? delayMs : Math.min(delayMs * (1 + share), maxMs)
  return Math.min(Math.round(lowMs + random() * (highMs - lowMs)), highMs)
}

/** The delay of a custom backoff, or a description of what is wrong with it. */
function callCustom(
  name: string,
  retry: number,
  customs: Customs,
  failure: Failure | undefined,
): number | string {
  const backoff = Object.hasOwn(customs, name) ? customs[name] : undefined
  if (typeof backoff !== 'function') return `custom backoff "${name}" is not registered`
  try {
    const answer: unknown = backoff(retry, failure ?? noFailure)
    if (typeof answer === 'number' && answer >= 0 && answer <= longestMs) return answer
    return `custom backoff "${name}" returned ${inWords(answer)}`
  } catch (error) {
    return `custom backoff "${name}" threw ${inWords(error)}`
  }
}

const noFailure: Failure = {
  name: 'Error',
  message: '',
  causes: [],
  at: '1970-01-01T00:00:00.000Z',
}
