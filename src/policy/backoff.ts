import { checkKeys } from '../check/keys.ts'
import type { ErrorCategory, Failure, Jitter, Priority, RetryPolicy } from '../letter/letter.ts'
import { inWords } from './in-words.ts'

const minuteMs = 60_000
const dayMs = 24 * 60 * minuteMs

/** Ten years. No wait of ours is longer: what is further away is a mistake in a number, not a plan. */
export const longestMs = 3650 * dayMs

/** However long the other side asks us to stay away, a letter is looked at once a day. */
export const longestRetryAfterMs = dayMs

/** A backoff of the caller's own, registered by name. Retry 0 is the first one. */
export type CustomBackoff = (retry: number, failure: Failure) => number
export type Customs = Readonly<Record<string, CustomBackoff>>

/** Kept, and run again only when a person says so. */
export function never(): RetryPolicy {
  return { kind: 'never' }
}

/** Run again as soon as a worker is free. */
export function immediate(): RetryPolicy {
  return { kind: 'immediate' }
}

/** The same wait before every retry. */
export function fixed(delayMs: number, jitter?: Jitter): RetryPolicy {
  return made('fixed', { delayMs, jitter })
}

/** 5, 10, 15 … 60 minutes unless said otherwise. */
export function linear(
  options: { stepMs?: number; maxMs?: number; jitter?: Jitter } = {},
): RetryPolicy {
  return made('linear', options)
}

/** 1, 2, 4 … 60 minutes unless said otherwise. */
export function exponential(
  options: { baseMs?: number; factor?: number; maxMs?: number; jitter?: Jitter } = {},
): RetryPolicy {
  return made('exponential', options)
}

/** The backoff that is registered under this name. While there is none, the default exponential one. */
export function custom(name: string): RetryPolicy {
  return made('custom', { name })
}

const policyKeys: Record<RetryPolicy['kind'], readonly string[]> = {
  never: [],
  immediate: [],
  fixed: ['delayMs', 'jitter'],
  linear: ['stepMs', 'maxMs', 'jitter'],
  exponential: ['baseMs', 'factor', 'maxMs', 'jitter'],
  custom: ['name'],
}

/** The one place where a policy is checked and its defaults are filled in. Throws a TypeError that names the value. */
function made(kind: unknown, values: Readonly<Record<string, unknown>>): RetryPolicy {
  if (typeof kind === 'string' && Object.hasOwn(policyKeys, kind))
    checkKeys(`${kind} backoff`, values, ['kind', ...policyKeys[kind as RetryPolicy['kind']]])
  const { maxMs = 60 * minuteMs } = values
  switch (kind) {
    case 'never':
      return never()
    case 'immediate':
      return immediate()
    case 'fixed':
      return { kind, delayMs: duration('delayMs', values['delayMs']), ...jittered(values) }
    case 'linear': {
      const stepMs = duration('stepMs', values['stepMs'] ?? 5 * minuteMs)
      return { kind, stepMs, maxMs: duration('maxMs', maxMs), ...jittered(values) }
    }
    case 'exponential': {
      const baseMs = duration('baseMs', values['baseMs'] ?? minuteMs)
      const factor = atLeastOne('factor', values['factor'] ?? 2)
      return { kind, baseMs, factor, maxMs: duration('maxMs', maxMs), ...jittered(values) }
    }
    case 'custom':
      return { kind, name: text('name', values['name']) }
    default:
      throw new TypeError(
        `a retry policy is never, immediate, fixed, linear, exponential or custom, got ${inWords(kind)}`,
      )
  }
}

function duration(name: string, ms: unknown): number {
  if (typeof ms === 'number' && ms >= 0 && ms <= longestMs) return ms
  throw new TypeError(`${name} must be milliseconds from 0 to ${longestMs}, got ${inWords(ms)}`)
}

function atLeastOne(name: string, value: unknown): number {
  if (typeof value === 'number' && value >= 1 && Number.isFinite(value)) return value
  throw new TypeError(`${name} must be a number from 1 on, got ${inWords(value)}`)
}

function text(name: string, value: unknown): string {
  if (typeof value === 'string' && value !== '') return value
  throw new TypeError(`${name} of a custom backoff must be a text, got ${inWords(value)}`)
}

function jittered({ jitter }: Readonly<Record<string, unknown>>): { jitter?: Jitter } {
  if (jitter === undefined) return {}
  if (jitter === 'none' || jitter === 'full') return { jitter }
  if (typeof jitter === 'number' && jitter >= 0 && jitter <= 1) return { jitter }
  throw new TypeError(
    `jitter must be 'none', 'full' or a share from 0 to 1, got ${inWords(jitter)}`,
  )
}

/** How letters of a category wait when nobody chose: whether and when trying again can help. */
export function defaultPolicyFor(category: ErrorCategory): RetryPolicy {
  if (neverAgain.has(category)) return never()
  return category === 'resource' ? linear() : exponential()
}

/** Failures that the same run would meet again: a person has to act first. */
export const neverAgain: ReadonlySet<ErrorCategory> = new Set<ErrorCategory>([
  'permanent',
  'permission',
  'validation',
])

/** A policy from its name or its data, with the defaults filled in. Undefined when it is neither. */
export function parsePolicy(input: unknown): RetryPolicy | undefined {
  try {
    if (typeof input === 'string') return made(input.trim().toLowerCase(), {})
    const values: Record<string, unknown> = { ...Object(input) }
    return made(values['kind'], values)
  } catch {
    return undefined
  }
}

/** The policy with all defaults filled in. Letters store complete policies. */
export function withDefaults(policy: RetryPolicy): RetryPolicy {
  return parsePolicy(policy) ?? policy
}

/** A wait, and what was wrong on the way to it, if anything was. Null: no further run. */
export interface Delay {
  delayMs: number | null
  problem?: string
}

/**
 * The wait before a retry (0 is the first) in milliseconds; null for never. Asking twice with the same chance
 * gives the same answer. A custom backoff that is missing, throws or answers nonsense counts as the default one.
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
  /** The longest wait, unless the other side asks for more. Default: no limit. */
  withinMs?: number
}

/**
 * The wait before a retry of a letter. It is never shorter than what the other side asked for, within a day; else
 * the first retry of a critical letter does not wait at all.
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
  const found = policy.kind === 'custom' ? asked(policy.name, count, customs, failure) : undefined
  const delayMs = typeof found === 'string' ? NaN : (found ?? arithmetic(policy, count, random))
  if (Number.isFinite(delayMs)) return { delayMs }
  const problem = typeof found === 'string' ? found : `backoff ${policy.kind} gives no number`
  return { delayMs: arithmetic(fallback, count, random), problem }
}

/** NaN when the policy, which may have been stored by another version, is not one we can compute. */
function arithmetic(policy: RetryPolicy, retry: number, random: () => number): number {
  switch (policy.kind) {
    case 'immediate':
      return 0
    case 'fixed':
      return spread(policy.delayMs, longestMs, policy.jitter, random)
    case 'linear':
      return spread(policy.stepMs * (retry + 1), policy.maxMs, policy.jitter, random)
    case 'exponential': {
      // A base of 0 times a power that overflowed would be NaN.
      const grown = policy.baseMs === 0 ? 0 : policy.baseMs * policy.factor ** retry
      return spread(grown, policy.maxMs, policy.jitter, random)
    }
    default:
      return NaN
  }
}

/**
 * Draws from the range that the jitter allows, cut off at the cap before the draw and not after it: letters at
 * the cap stay spread out instead of all waiting exactly that long.
 */
function spread(
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

/** What the caller's function says, or in words why it could not be used. */
function asked(
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
    return `custom backoff "${name}" answered ${inWords(answer)}`
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
