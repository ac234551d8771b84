import type {
  ErrorCategory,
  Failure,
  Priority,
  Recoverability,
  RetryPolicy,
  Severity,
} from '../letter/letter.ts'

/** A user rule. User rules precede the built-in ones; the first match wins. */
export interface Rule {
  name: string
  /** Of a list, one match is enough. */
  when: RuleMatch | readonly RuleMatch[] | ((failure: Failure, thrown: unknown) => boolean)
  category: ErrorCategory
  severity?: Severity
  recoverability?: Recoverability
  /** The kind of failure within its category. */
  detail?: string
  /** Advice for people, stored with the failure. */
  hint?: string
  /** Retry policy, retry limit and priority of letters with this failure. */
  backoff?: RetryPolicy
  maxRetries?: number
  priority?: Priority
}

/** All given fields must match the failure, or all of them one of its causes. */
export interface RuleMatch {
  /** Name of the error's class or of a superclass. */
  errorName?: string
  code?: string
  status?: number
  /** A pattern or a case-insensitive string in the first 1,024 characters of the message. */
  message?: RegExp | string
}

/** The advice of a rule, besides the classification. */
export type Advice = Pick<Rule, 'name' | 'hint' | 'backoff' | 'maxRetries' | 'priority'>

/** Only the beginning of a message is read. */
export const maxText = 1024

const none: readonly string[] = []

/** Whether a rule matches this failure. Throws what a user function throws. */
export function matches(
  when: Rule['when'],
  layers: readonly Failure[],
  ancestors: readonly string[],
  thrown: unknown,
): boolean {
  if (typeof when === 'function') {
    const answer: unknown = when(layers[0]!, thrown)
    // An async function returns a promise, which must not count as true.
    return answer === true
  }
  const any = (match: RuleMatch): boolean =>
    layers.some((layer, index) => holds(match, layer, index === 0 ? ancestors : none))
  return isList(when) ? when.some(any) : any(when)
}

function isList(when: RuleMatch | readonly RuleMatch[]): when is readonly RuleMatch[] {
  return Array.isArray(when)
}

/** The advice of a rule. Undefined if it only classifies. */
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
