import type {
  ErrorCategory,
  Failure,
  Priority,
  Recoverability,
  RetryPolicy,
  Severity,
} from '../letter/letter.ts'

/** A rule of the user's. It goes before the built-in ones; the first that matches wins. */
export interface Rule {
  name: string
  /** Of several matches, one is enough. */
  when: RuleMatch | readonly RuleMatch[] | ((failure: Failure, thrown: unknown) => boolean)
  category: ErrorCategory
  severity?: Severity
  recoverability?: Recoverability
  /** What kind of failure within its category. */
  detail?: string
  /** What a person can do about it. It is kept with the failure. */
  hint?: string
  /** How letters that fail this way wait, how often they are tried, and how urgent they are. */
  backoff?: RetryPolicy
  maxRetries?: number
  priority?: Priority
}

/** All that is given must hold for the failure, or all of it for one of its causes. */
export interface RuleMatch {
  /** The name of the error's class, or of one that it extends. */
  errorName?: string
  code?: string
  status?: number
  /** A pattern, or a text in any case, in the first 1,024 characters of the message. */
  message?: RegExp | string
}

/** What a rule advises beyond saying what a failure is. */
export type Advice = Pick<Rule, 'name' | 'hint' | 'backoff' | 'maxRetries' | 'priority'>

/** What a message says, it says at its beginning. */
export const maxText = 1024

const none: readonly string[] = []

/** Whether a rule is about this failure. Throws what a function of the user's throws. */
export function matches(
  when: Rule['when'],
  layers: readonly Failure[],
  ancestors: readonly string[],
  thrown: unknown,
): boolean {
  if (typeof when === 'function') {
    const answer: unknown = when(layers[0]!, thrown)
    // An async rule answers a promise, which must not count as yes.
    return answer === true
  }
  const any = (match: RuleMatch): boolean =>
    layers.some((layer, index) => holds(match, layer, index === 0 ? ancestors : none))
  return isList(when) ? when.some(any) : any(when)
}

function isList(when: RuleMatch | readonly RuleMatch[]): when is readonly RuleMatch[] {
  return Array.isArray(when)
}

/** What a rule advises; undefined when it only says what a failure is. */
export function adviceOf({ name, hint, backoff, maxRetries, priority }: Rule): Advice | undefined {
  const advice = {
    ...(hint === undefined ? {} : { hint }),
    ...(backoff === undefined ? {} : { backoff }),
    ...(maxRetries === undefined ? {} : { maxRetries }),
    ...(priority === undefined ? {} : { priority }),
  }
  return Object.keys(advice).length === 0 ? undefined : { name, ...advice }
}

function holds(when: RuleMatch, failure: Failure, ancestors: readonly string[]): boolean {
  const { errorName, code, status, message } = when
  if (errorName !== undefined && failure.name !== errorName && !ancestors.includes(errorName))
    return false
  if (code !== undefined && failure.code !== code) return false
  if (status !== undefined && failure.status !== status) return false
  if (message === undefined) return true
  const text = failure.message.slice(0, maxText)
  if (typeof message === 'string') return text.toLowerCase().includes(message.toLowerCase())
  message.lastIndex = 0
  return message.test(text)
}
