import type { ErrorCategory, Failure, Recoverability, Severity } from '../letter/letter.ts'
import { ancestorsOf } from './ancestors.ts'
import { inWords } from './in-words.ts'
import { judgement, type Judgement } from './judgement.ts'
import { layersOf } from './layers.ts'
import { strongest, type Hit } from './phrases.ts'
import {
  codes,
  codeStem,
  grpcNames,
  knownMessages,
  sqlStateClasses,
  statuses,
  weakNames,
} from './rules.ts'

/** A rule of the user's. It goes before the built-in ones; the first that matches wins. */
export interface Rule {
  name: string
  when: RuleMatch | ((failure: Failure, thrown: unknown) => boolean)
  category: ErrorCategory
  severity?: Severity
  recoverability?: Recoverability
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

/** What a failure is, which rule said so, and which rules of the user's failed while being asked. */
export interface Classification extends Judgement {
  rule: string
  problems?: string[]
}

/** What a message says, it says at its beginning. */
const maxText = 1024

/**
 * Says what a failure is: by the user's rules, then by class names, then codes, then HTTP statuses, of the failure
 * and of its causes, and by the words of its message last. What no rule knows is unknown, never permanent.
 */
export function classify(
  failure: Failure,
  thrown?: unknown,
  rules: readonly Rule[] = [],
): Classification {
  const layers = layersOf(failure)
  const ancestors = ancestorsOf(thrown)
  if (rules.length === 0) return builtIn(layers, ancestors)
  const problems: string[] = []
  const own = byUser(rules, layers, ancestors, thrown, problems) ?? builtIn(layers, ancestors)
  return problems.length === 0 ? own : { ...own, problems }
}

const none: readonly string[] = []

function byUser(
  rules: readonly Rule[],
  layers: readonly Failure[],
  ancestors: readonly string[],
  thrown: unknown,
  problems: string[],
): Classification | undefined {
  for (const { name, when, category, severity, recoverability } of rules)
    try {
      const answer: unknown =
        typeof when === 'function'
          ? when(layers[0]!, thrown)
          : layers.some((layer, index) => holds(when, layer, index === 0 ? ancestors : none))
      // An async rule answers a promise, which must not count as yes.
      if (answer === true)
        return found(`user:${name}`, judgement(category, severity, recoverability))
    } catch (error) {
      problems.push(`rule "${name}" threw ${inWords(error)}`)
    }
  return undefined
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

function builtIn(layers: readonly Failure[], ancestors: readonly string[]): Classification {
  return (
    first(layers, byName) ??
    first(ancestors, byClassName) ??
    first(layers, byCode) ??
    first(layers, byStatus) ??
    first(layers, byText) ??
    (layers[0]!.retryAfterMs === undefined ? unclassified : saidWhen)
  )
}

const unclassified: Classification = found('unknown', judgement('unknown'))
const saidWhen: Classification = found('retry-after', judgement('transient'))

function first<T>(
  items: readonly T[],
  look: (item: T) => Classification | undefined,
): Classification | undefined {
  for (const item of items) {
    const classification = look(item)
    if (classification) return classification
  }
  return undefined
}

function found(rule: string, { category, severity, recoverability }: Judgement): Classification {
  return { category, severity, recoverability, rule }
}

function byName(failure: Failure): Classification | undefined {
  return byClassName(failure.name)
}

/** "RateLimitError" says the same as "rate limit error". */
function byClassName(name: string): Classification | undefined {
  if (name === 'Error' || name === '') return undefined
  const words = name
    .slice(0, 100)
    .replace(/([a-z0-9])(?=[A-Z])|([A-Z])(?=[A-Z][a-z])/g, '$1$2 ')
    .toLowerCase()
    .replace(/(?:exception|failure|fault)$/, 'error')
  const hit = strongest(wordsOf(words))
  return hit && found(`name:${name}`, hit.judgement)
}

function byCode(failure: Failure): Classification | undefined {
  const { code } = failure
  if (code === undefined) return undefined
  const known =
    judgeCode(code) ?? (speaksGrpc(failure) ? judgeCode(grpcNames[Number(code)]) : undefined)
  return known && found(`code:${code}`, known)
}

function judgeCode(code: string | undefined): Judgement | undefined {
  if (code === undefined) return undefined
  const known = codes.get(code)
  if (known) return known
  if (code.length === 5 && /^[0-9A-Z]{5}$/.test(code)) return sqlStateClasses.get(code.slice(0, 2))
  const stem = codeStem.exec(code)
  return stem ? codes.get(stem[0]) : undefined
}

/** Small numbers mean a gRPC status only when something says that they are one. */
function speaksGrpc({ name, code, message }: Failure): boolean {
  return (
    /grpc|^ConnectError$/i.test(name) || message.startsWith(`${code} ${grpcNames[Number(code)]}:`)
  )
}

function byStatus(failure: Failure): Classification | undefined {
  const status = failure.status ?? (failure.code?.length === 3 ? Number(failure.code) : undefined)
  if (status === undefined) return undefined
  const known = judgeStatus(status)
  if (!known) return undefined
  if (status === 403 && limitsRate(failure))
    return found('status:403 rate limit', judgement('rate-limit'))
  return found(`status:${status}`, known)
}

function judgeStatus(status: number): Judgement | undefined {
  if (!(status >= 400 && status <= 599)) return undefined
  return statuses.get(String(status)) ?? statuses.get(status < 500 ? '400' : '500')
}

/** Some, GitHub among them, answer 403 where they mean 429. */
function limitsRate(failure: Failure): boolean {
  const said = (): Hit | undefined => strongest(wordsOf(textOf(failure)))
  return failure.retryAfterMs !== undefined || said()?.judgement.category === 'rate-limit'
}

function byText(failure: Failure): Classification | undefined {
  return byWeakName(failure) ?? byMessage(failure)
}

function byWeakName(failure: Failure): Classification | undefined {
  const weak = weakNames.get(failure.name)
  if (!weak) return undefined
  const known = knownMessages.get(failure.message)
  return known ? found(`message:${failure.message}`, known) : found(`name:${failure.name}`, weak)
}

/** The first word of a message is often a code: "LOADING Redis is loading", "14 UNAVAILABLE: no connection". */
const leadingCode = /^(?:\d{1,2} )?([A-Z][A-Z0-9_]{2,30})\b/
const systemCodes = /\bE[A-Z]{3,20}\b/g
const namedStatus =
  /(?:^|[^a-z])(?:http(?:\/[\d.]{1,4})?|status(?: ?code)?|code|error|response)[ :="']{1,3}([45]\d\d)(?![\w.-])|^([45]\d\d)$/

function byMessage(failure: Failure): Classification | undefined {
  const text = failure.message.slice(0, maxText)
  const code = leadingCode.exec(text)?.[1]
  const led = code && codes.get(code)
  if (led) return found(`message:${code}`, led)
  for (const system of text.match(systemCodes) ?? none) {
    const known = codes.get(system)
    if (known) return found(`message:${system}`, known)
  }
  const lower = text.toLowerCase()
  const status = namedStatus.exec(lower)
  if (status) return byStatus({ ...failure, status: Number(status[1] ?? status[2]) })
  const hit = strongest(wordsOf(lower))
  return hit && found(`message:${hit.text}`, hit.judgement)
}

function textOf(failure: Failure): string {
  return failure.message.slice(0, maxText).toLowerCase()
}

function wordsOf(lower: string): readonly string[] {
  return lower.match(/[a-z0-9]+/g) ?? none
}
