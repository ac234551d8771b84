import { RedriveError } from '../errors.ts'
import { checkKeys, keysOf } from '../check/keys.ts'
import { hasMethods } from '../letter/reading.ts'
import { ancestorsOf } from './ancestors.ts'
import { neverAgain } from './backoff.ts'
import { classify } from './classify.ts'
import { inWords } from './in-words.ts'

/** Selects errors: a class, a name or code, or a function that returns true. */
export type ErrorMatch = ErrorClass | string | ((error: unknown) => boolean)
type ErrorClass = abstract new (...args: never[]) => object

/** The fields of a message that the policy reads. */
export interface Delivered {
  deliveryCount: number
}

/**
 * A mailbox or a destination, such as `dlq.deadLetters()`. The policy only passes it on, so the
 * type names only what distinguishes the two.
 */
export type PolicyMailbox =
  | { readonly name: string; send(body: unknown): Promise<string> }
  | { readonly name: string; keep(dead: never, thrown: unknown): Promise<void> }

export interface DLQPolicyOptions {
  /**
   * Where dead messages go: a mailbox or `dlq.deadLetters()`. Needed to use the policy as `dlq`.
   */
  mailbox?: PolicyMailbox
  /** Deliveries after which a message is dead-lettered. Default: 5. */
  maxDeliveryCount?: number
  /** Dead-lettered at the first failure. */
  includeErrors?: Iterable<ErrorMatch>
  /** Redelivered beyond `maxDeliveryCount`, up to `absoluteCap`. */
  excludeErrors?: Iterable<ErrorMatch>
  /** True: matches only the exact class, no subclasses or causes. Default: false. */
  exact?: boolean
  /** Delivery limit for excluded errors. Default: 10 times `maxDeliveryCount`, at least 50. */
  absoluteCap?: number
  /**
   * True: dead-letters errors of the categories permanent, permission and validation at the first
   * failure. Default: false.
   */
  classify?: boolean
}

const optionKeys = keysOf<DLQPolicyOptions>({
  mailbox: true,
  maxDeliveryCount: true,
  includeErrors: true,
  excludeErrors: true,
  exact: true,
  absoluteCap: true,
  classify: true,
})
const renamedOptions = {
  to: 'mailbox',
  max_delivery_count: 'maxDeliveryCount',
  include_errors: 'includeErrors',
  exclude_errors: 'excludeErrors',
}

/**
 * Decides when a failed message becomes a dead letter: excluded errors at `absoluteCap`, included
 * ones at once, permanent ones at once if `classify` is set, and all others after
 * `maxDeliveryCount` deliveries. Subclass it and override `shouldDeadLetter` to decide otherwise.
 */
export class DLQPolicy {
  readonly mailbox: PolicyMailbox | undefined
  readonly maxDeliveryCount: number
  readonly includeErrors: readonly ErrorMatch[]
  readonly excludeErrors: readonly ErrorMatch[]
  readonly exact: boolean
  readonly absoluteCap: number
  readonly classify: boolean

  constructor(options: DLQPolicyOptions = {}) {
    checkKeys('DLQPolicy options', options, optionKeys, {
      code: 'INVALID_CONFIG',
      renamed: renamedOptions,
    })
    const { maxDeliveryCount = 5, includeErrors = [], excludeErrors = [] } = options
    this.mailbox = place(options.mailbox)
    this.maxDeliveryCount = count('maxDeliveryCount', maxDeliveryCount, 1)
    this.includeErrors = matchers('includeErrors', includeErrors)
    this.excludeErrors = matchers('excludeErrors', excludeErrors)
    this.exact = flag('exact', options.exact ?? false)
    this.classify = flag('classify', options.classify ?? false)
    const { absoluteCap = Math.max(50, 10 * maxDeliveryCount) } = options
    this.absoluteCap =
      absoluteCap === Infinity ? Infinity : count('absoluteCap', absoluteCap, maxDeliveryCount)
  }

  /** Called after a failure. True: dead-letter the message. False: redeliver it after a delay. */
  shouldDeadLetter(message: Delivered, error: unknown): boolean {
    if (this.#matches(this.excludeErrors, error)) return message.deliveryCount >= this.absoluteCap
    if (this.#matches(this.includeErrors, error)) return true
    if (this.classify && isPermanent(error)) return true
    return message.deliveryCount >= this.maxDeliveryCount
  }

  /**
   * Called on receive. `deliveries` counts this delivery and earlier ones that ended without a
   * caught failure: each may have crashed its worker. True: dead-letter the message without running
   * it. Excluded errors were caught, so they do not raise this limit.
   */
  overDelivered(deliveries: number): boolean {
    return deliveries > this.maxDeliveryCount
  }

  #matches(matches: readonly ErrorMatch[], error: unknown): boolean {
    if (matches.length === 0) return false
    const suspects = this.exact ? [error] : causesOf(error)
    return matches.some((match) => suspects.some((suspect) => isMatch(match, suspect, this.exact)))
  }
}

/** A decision, and the problem with the policy, if there was one. */
export interface DeadLetterDecision {
  deadLetter: boolean
  problem?: string
}

/**
 * Calls the policy. If it throws or returns no boolean, `maxDeliveryCount` decides. Beyond
 * `absoluteCap` no message is redelivered, whatever an override returns.
 */
export function decideDeadLetter(
  policy: DLQPolicy,
  message: Delivered,
  error: unknown,
): DeadLetterDecision {
  if (message.deliveryCount >= policy.absoluteCap) return { deadLetter: true }
  const atThreshold = message.deliveryCount >= policy.maxDeliveryCount
  try {
    const answer: unknown = policy.shouldDeadLetter(message, error)
    if (typeof answer === 'boolean') return { deadLetter: answer }
    return { deadLetter: atThreshold, problem: `shouldDeadLetter returned ${inWords(answer)}` }
  } catch (thrown) {
    return { deadLetter: atThreshold, problem: `shouldDeadLetter threw ${inWords(thrown)}` }
  }
}

/** Whether the classifier expects the same failure again. An unknown error is not permanent. */
function isPermanent(error: unknown): boolean {
  return neverAgain.has(classify(error).category)
}

const maxCauses = 16

/** The error and its causes, nearest first. A cycle of causes ends it. */
function causesOf(error: unknown): unknown[] {
  const found = new Set<unknown>([error])
  for (const one of found) {
    if (typeof one !== 'object' || one === null) continue
    const { cause, errors } = one as { cause?: unknown; errors?: unknown }
    for (const next of [cause, ...(Array.isArray(errors) ? (errors as unknown[]) : [])])
      if (next !== undefined && next !== null && found.size < maxCauses) found.add(next)
  }
  return [...found]
}

function isMatch(match: ErrorMatch, error: unknown, exact: boolean): boolean {
  if (typeof match === 'string') return hasName(match, error, exact)
  if (!isClass(match)) return match(error)
  if (!exact) return error instanceof match
  return (
    typeof error === 'object' && error !== null && Object.getPrototypeOf(error) === match.prototype
  )
}

function hasName(name: string, error: unknown, exact: boolean): boolean {
  if (typeof error !== 'object' || error === null) return false
  const { name: own, code } = error as { name?: unknown; code?: unknown }
  if (own === name || code === name) return true
  const classes = ancestorsOf(error)
  return exact ? classes[0] === name : classes.includes(name)
}

/** The prototype of a class is not writable; that of a function is, and an arrow has none. */
function isClass(match: ErrorClass | ((error: unknown) => boolean)): match is ErrorClass {
  const prototype = Object.getOwnPropertyDescriptor(match, 'prototype')
  return prototype?.writable === false || prototype?.value instanceof Error
}

function place(given: PolicyMailbox | undefined): PolicyMailbox | undefined {
  if (given === undefined || hasMethods(given, 'send') || hasMethods(given, 'keep')) return given
  const got = given instanceof Promise ? 'a promise: await it' : typeof given
  throw invalid(`mailbox must be a mailbox, or a destination such as dlq.deadLetters(), got ${got}`)
}

function matchers(option: string, given: Iterable<ErrorMatch>): readonly ErrorMatch[] {
  if (typeof given === 'string' || !hasMethods(given, Symbol.iterator))
    throw invalid(
      `${option} must be an iterable of classes, names and functions, got ${inWords(given)}`,
    )
  const all = [...given]
  for (const match of all)
    if (typeof match !== 'string' && typeof match !== 'function')
      throw invalid(`${option} takes classes, names and functions, got ${inWords(match)}`)
  return all
}

function count(option: string, value: number, least: number): number {
  if (Number.isInteger(value) && value >= least) return value
  throw invalid(`${option} must be a whole number of at least ${least}, got ${inWords(value)}`)
}

function flag(option: string, value: boolean): boolean {
  if (typeof value === 'boolean') return value
  throw invalid(`${option} must be true or false, got ${inWords(value)}`)
}

function invalid(problem: string): RedriveError {
  return new RedriveError('INVALID_CONFIG', `DLQPolicy option ${problem}`)
}
