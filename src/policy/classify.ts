import { isFailure, toFailure } from '../letter/failure.ts'
import type { Failure } from '../letter/letter.ts'
import { memoize } from '../letter/memoize.ts'
import { ancestorsOf } from './ancestors.ts'
import { asksForRetry } from './asks-for-retry.ts'
import { neverAgain } from './backoff.ts'
import { inWords } from './in-words.ts'
import { judgement, type Judgement } from './judgement.ts'
import { layersOf, statusOf } from './layers.ts'
import { strongest } from './phrases.ts'
import { adviceOf, maxText, matches, type Advice, type Rule } from './rule.ts'
import {
  codes,
  codeStem,
  grpcNames,
  knownMessages,
  names,
  sqlStateClasses,
  statuses,
  vagueNames,
  vagueTypes,
  weakNames,
} from './rules.ts'

export type { Rule, RuleMatch } from './rule.ts'

/** A classification, the rule that matched, and errors of user rules. */
export interface Classification extends Judgement {
  rule: string
  detail?: string
  /** Advice of the rule that matched, if it has any. */
  template?: Advice
  problems?: string[]
}

/** Timestamp of failures that `classify` creates. No rule reads it. */
const noTimestamp = '1970-01-01T00:00:00.000Z'

/**
 * Classifies anything that was thrown, or the failure of a letter: an Error, a string, undefined, a
 * hostile object. Never throws. `rules` precede the built-in ones.
 */
export function classify(thrown: unknown, rules: readonly Rule[] = []): Classification {
  return isFailure(thrown)
    ? classifyFailure(thrown, undefined, rules)
    : classifyFailure(toFailure(thrown, noTimestamp), thrown, rules)
}

/**
 * Classifies a failure and its causes: by user rules, then codes, class names, HTTP statuses, and
 * the words of the message last. A failure without a match is `unknown`, never permanent. An error
 * that declares itself retryable is never parked.
 */
export function classifyFailure(
  failure: Failure,
  thrown?: unknown,
  rules: readonly Rule[] = [],
): Classification {
  const layers = layersOf(failure)
  const ancestors = ancestorsOf(thrown)
  if (rules.length === 0) return builtIn(layers, ancestors, thrown)
  const problems: string[] = []
  const own =
    byUser(rules, layers, ancestors, thrown, problems) ?? builtIn(layers, ancestors, thrown)
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
  for (const rule of rules)
    try {
      if (matches(rule.when, layers, ancestors, thrown)) return classifyByRule(rule)
    } catch (error) {
      problems.push(`rule "${rule.name}" threw ${inWords(error)}`)
    }
  return undefined
}

function classifyByRule(rule: Rule): Classification {
  const { name, category, severity, recoverability, detail } = rule
  const own = classification(`user:${name}`, judgement(category, severity, recoverability))
  if (detail !== undefined) own.detail = detail
  const template = adviceOf(rule)
  return template ? { ...own, template } : own
}

function builtIn(
  layers: readonly Failure[],
  ancestors: readonly string[],
  thrown: unknown,
): Classification {
  const answer =
    first(layers, byClearMessage) ??
    first(layers, byCode) ??
    first(layers, byName) ??
    first(ancestors, byClassName) ??
    first(layers, byReply) ??
    first(layers, byStatus) ??
    byText(layers) ??
    (layers[0]!.retryAfterMs === undefined ? unclassified : withRetryAfter)
  const parks = neverAgain.has(answer.category) || answer === unclassified
  return parks && asksForRetry(thrown) ? declaredRetryable : answer
}

const unclassified: Classification = classification('unknown', judgement('unknown'))
const withRetryAfter: Classification = classification('retry-after', judgement('transient'))
const declaredRetryable: Classification = classification('retryable', judgement('transient'))

function first<T>(
  items: readonly T[],
  classifyItem: (item: T) => Classification | undefined,
): Classification | undefined {
  for (const item of items) {
    const hit = classifyItem(item)
    if (hit) return hit
  }
  return undefined
}

function classification(
  rule: string,
  { category, severity, recoverability }: Judgement,
): Classification {
  return { category, severity, recoverability, rule }
}

/** Phrases that override a 400, which many services return for every error. */
const clearPhrases = new Set([
  'credit balance is too low',
  'api key not valid',
  'api key expired',
  'invalid grant',
  'transactionconflict',
])
const htmlForJson = /^Unexpected token '?</

/** Failures whose message is more specific than their code, status or class. */
function byClearMessage(failure: Failure): Classification | undefined {
  const { code, status, name, message } = failure
  // An HTML page of a proxy in place of the JSON of a service.
  if (name === 'SyntaxError' && htmlForJson.test(message))
    return classification('message:html for json', judgement('dependency'))
  if (code !== 'ECONNABORTED' && status !== 400) return undefined
  const hit = strongest(wordsOf(textOf(failure)))
  if (!hit) return undefined
  // Some HTTP clients report timeouts with the code of a broken connection.
  const isTimeout = code === 'ECONNABORTED' && hit.judgement.category === 'timeout'
  return isTimeout || clearPhrases.has(hit.text)
    ? classification(`message:${hit.text}`, hit.judgement)
    : undefined
}

function byName({ name, stack }: Failure): Classification | undefined {
  const vague = vagueTypes.get(name)
  return vague !== undefined && stack?.startsWith(vague) ? undefined : byClassName(name)
}

function byClassName(name: string): Classification | undefined {
  if (name === 'Error' || name === '' || vagueNames.has(name)) return undefined
  const known = names.get(name) ?? judgeName(name)
  return known && classification(`name:${name}`, known)
}

/** Size of the cache of class names: the same few classes fail many times. */
const maxKnown = 1000

/** "RateLimitError" is read as "rate limit error". */
const judgeName = memoize(maxKnown, (name: string) => {
  const words = name
    .slice(0, 100)
    .replace(/([a-z0-9])(?=[A-Z])|([A-Z])(?=[A-Z][a-z])/g, '$1$2 ')
    .toLowerCase()
    .replace(/(?:exception|failure|fault)$/, 'error')
  return strongest(wordsOf(words))?.judgement
})

function byCode(failure: Failure): Classification | undefined {
  const { code } = failure
  if (code === undefined) return undefined
  const known =
    judgeCode(code) ?? (isGrpc(failure) ? judgeCode(grpcNames[Number(code)]) : undefined)
  return known && classification(`code:${code}`, known)
}

function judgeCode(code: string | undefined): Judgement | undefined {
  if (code === undefined) return undefined
  const known = codes.get(code)
  if (known) return known
  if (code.length === 5 && /^[0-9A-Z]{5}$/.test(code)) return sqlStateClasses.get(code.slice(0, 2))
  const stem = codeStem.exec(code)
  return stem ? codes.get(stem[0]) : undefined
}

/** Small numbers are gRPC statuses only if name or message show that they are. */
function isGrpc({ name, code, message }: Failure): boolean {
  return (
    /grpc|^ConnectError$/i.test(name) || message.startsWith(`${code} ${grpcNames[Number(code)]}:`)
  )
}

function byStatus(failure: Failure): Classification | undefined {
  const status = statusOf(failure)
  if (status === undefined) return undefined
  const known = judgeStatus(status)
  if (!known) return undefined
  return (status === 403 && byLimit(failure)) || classification(`status:${status}`, known)
}

function judgeStatus(status: number): Judgement | undefined {
  if (!(status >= 400 && status <= 599)) return undefined
  return statuses.get(String(status)) ?? statuses.get(status < 500 ? '400' : '500')
}

/** Some services, such as GitHub, return 403 for rate limits and exhausted quotas. */
function byLimit(failure: Failure): Classification | undefined {
  if (failure.retryAfterMs !== undefined)
    return classification('status:403 rate limit', judgement('rate-limit'))
  const hit = strongest(wordsOf(textOf(failure)))?.judgement
  return hit?.category === 'rate-limit' || hit?.category === 'resource'
    ? classification(`status:403 ${hit.category}`, hit)
    : undefined
}

/** Mail and FTP servers use 4xx for temporary and 5xx for permanent errors, unlike HTTP. */
const reply = /(?:^|: )([45])(\d\d)[ -](?:\1\.\d{1,3}\.\d{1,3}\b|)/

function byReply({ name, message }: Failure): Classification | undefined {
  const [text, kind, rest] = reply.exec(message.slice(0, maxText)) ?? []
  if (text === undefined || (name !== 'FTPError' && !text.includes('.'))) return undefined
  const rule = `reply:${kind}${rest}`
  if (kind === '4') return classification(rule, judgement('transient'))
  return rest === '30' || rest === '35'
    ? classification(rule, judgement('permission', 'high', 'recoverable'))
    : classification(rule, judgement('permanent', 'medium', 'recoverable'))
}

/** Messages of specific classes first: the cause of a vague class may tell more. */
function byText(layers: readonly Failure[]): Classification | undefined {
  const specific = layers.filter((layer) => !weakNames.has(layer.name))
  return first(specific, byMessage) ?? first(specific, byCodeWords) ?? first(layers, byWeakName)
}

/** Unlisted codes such as "channel_not_found" and "RequestTimeout" are read as words. */
function byCodeWords({ code = '' }: Failure): Classification | undefined {
  const named = /[a-z]{3}/i.test(code) ? byClassName(code) : undefined
  return named && { ...named, rule: `code:${code}` }
}

function byWeakName(failure: Failure): Classification | undefined {
  const weak = weakNames.get(failure.name)
  if (!weak) return undefined
  const known = knownMessages.get(failure.message)
  return known
    ? classification(`message:${failure.message}`, known)
    : classification(`name:${failure.name}`, weak)
}

/** A leading code: "LOADING Redis is loading", "14 UNAVAILABLE: no connection". */
const leadingCode = /^(?:\d{1,2} )?([A-Z][A-Z0-9_]{2,30})\b/
const systemCodes = /\bE[A-Z]{3,20}\b/g
const namedStatus =
  /(?:^|[^a-z])(?:http(?:\/[\d.]{1,4})?|status(?: ?code)?|code|error|response)[ :="']{1,3}([45]\d\d)(?![\w.-])|^([45]\d\d)$/

const compilerError = /\berror TS\d{4,5}:/

function byMessage(failure: Failure): Classification | undefined {
  const text = failure.message.slice(0, maxText)
  const compiler = compilerError.exec(text)
  if (compiler)
    return classification(`message:${compiler[0]}`, judgement('permanent', 'medium', 'recoverable'))
  const code = leadingCode.exec(text)?.[1]
  const led = code && codes.get(code)
  if (led) return classification(`message:${code}`, led)
  for (const system of text.match(systemCodes) ?? none) {
    const known = codes.get(system)
    if (known) return classification(`message:${system}`, known)
  }
  const lower = text.toLowerCase()
  const status = namedStatus.exec(lower)
  if (status) return byStatus({ ...failure, status: Number(status[1] ?? status[2]) })
  const hit = strongest(wordsOf(lower))
  return hit && classification(`message:${hit.text}`, hit.judgement)
}

function textOf(failure: Failure): string {
  return failure.message.slice(0, maxText).toLowerCase()
}

function wordsOf(lower: string): readonly string[] {
  return lower.match(/[a-z0-9]+/g) ?? none
}
