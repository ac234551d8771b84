import { isFailure, toFailure } from '../letter/failure.ts'
import type { Failure } from '../letter/letter.ts'
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

/** What a failure is, which rule said so, and which rules of the user's failed while being asked. */
export interface Classification extends Judgement {
  rule: string
  detail?: string
  /** Of the rule that matched, where it has any. */
  template?: Advice
  problems?: string[]
}

/** The timestamp of a failure that `classify` makes itself. No rule looks at it. */
const noTimestamp = '1970-01-01T00:00:00.000Z'

/**
 * Classifies anything that was thrown, or the failure of a letter: an Error, a string, undefined, a hostile object. Never
 * throws. `rules` go before the built-in ones.
 */
export function classify(thrown: unknown, rules: readonly Rule[] = []): Classification {
  return isFailure(thrown)
    ? classifyFailure(thrown, undefined, rules)
    : classifyFailure(toFailure(thrown, noTimestamp), thrown, rules)
}

/**
 * Says what a failure is: by the user's rules, then by codes, then class names, then HTTP statuses, of the failure
 * and of its causes, and by the words of its message last. What no rule knows is unknown, never permanent; and what
 * says of itself that it may be tried again is never parked.
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
      if (matches(rule.when, layers, ancestors, thrown)) return ofRule(rule)
    } catch (error) {
      problems.push(`rule "${rule.name}" threw ${inWords(error)}`)
    }
  return undefined
}

function ofRule(rule: Rule): Classification {
  const { name, category, severity, recoverability, detail } = rule
  const own = found(`user:${name}`, judgement(category, severity, recoverability))
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
    first(layers, byPlainSpeech) ??
    first(layers, byCode) ??
    first(layers, byName) ??
    first(ancestors, byClassName) ??
    first(layers, byReply) ??
    first(layers, byStatus) ??
    byText(layers) ??
    (layers[0]!.retryAfterMs === undefined ? unclassified : saidWhen)
  const parks = neverAgain.has(answer.category) || answer === unclassified
  return parks && asksForRetry(thrown) ? saidAgain : answer
}

const unclassified: Classification = found('unknown', judgement('unknown'))
const saidWhen: Classification = found('retry-after', judgement('transient'))
const saidAgain: Classification = found('retryable', judgement('transient'))

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

/** What is said so plainly that it goes before a 400, which many services answer for everything. */
const plain = new Set([
  'credit balance is too low',
  'api key not valid',
  'api key expired',
  'invalid grant',
  'transactionconflict',
])
const htmlForJson = /^Unexpected token '?</

/** Answers whose words say more than their code, status or class. */
function byPlainSpeech(failure: Failure): Classification | undefined {
  const { code, status, name, message } = failure
  // A page of a proxy where the answer of a service was expected.
  if (name === 'SyntaxError' && htmlForJson.test(message))
    return found('message:html for json', judgement('dependency'))
  if (code !== 'ECONNABORTED' && status !== 400) return undefined
  const hit = strongest(wordsOf(textOf(failure)))
  if (!hit) return undefined
  // Some HTTP clients give up with the code of a broken connection.
  const gaveUp = code === 'ECONNABORTED' && hit.judgement.category === 'timeout'
  return gaveUp || plain.has(hit.text) ? found(`message:${hit.text}`, hit.judgement) : undefined
}

function byName({ name, stack }: Failure): Classification | undefined {
  const vague = vagueTypes.get(name)
  return vague !== undefined && stack?.startsWith(vague) ? undefined : byClassName(name)
}

/** "RateLimitError" says the same as "rate limit error". */
function byClassName(name: string): Classification | undefined {
  if (name === 'Error' || name === '' || vagueNames.has(name)) return undefined
  const known = names.get(name)
  if (known) return found(`name:${name}`, known)
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
  const status = statusOf(failure)
  if (status === undefined) return undefined
  const known = judgeStatus(status)
  if (!known) return undefined
  return (status === 403 && byLimit(failure)) || found(`status:${status}`, known)
}

function judgeStatus(status: number): Judgement | undefined {
  if (!(status >= 400 && status <= 599)) return undefined
  return statuses.get(String(status)) ?? statuses.get(status < 500 ? '400' : '500')
}

/** Some, GitHub among them, answer 403 where they mean 429, or that a quota is used up. */
function byLimit(failure: Failure): Classification | undefined {
  if (failure.retryAfterMs !== undefined)
    return found('status:403 rate limit', judgement('rate-limit'))
  const said = strongest(wordsOf(textOf(failure)))?.judgement
  return said?.category === 'rate-limit' || said?.category === 'resource'
    ? found(`status:403 ${said.category}`, said)
    : undefined
}

/** Mail and file servers answer 4xx for what passes and 5xx for what does not: the reverse of HTTP. */
const reply = /(?:^|: )([45])(\d\d)[ -](?:\1\.\d{1,3}\.\d{1,3}\b|)/

function byReply({ name, message }: Failure): Classification | undefined {
  const [text, kind, rest] = reply.exec(message.slice(0, maxText)) ?? []
  if (text === undefined || (name !== 'FTPError' && !text.includes('.'))) return undefined
  const rule = `reply:${kind}${rest}`
  if (kind === '4') return found(rule, judgement('transient'))
  return rest === '30' || rest === '35'
    ? found(rule, judgement('permission', 'high', 'recoverable'))
    : found(rule, judgement('permanent', 'medium', 'recoverable'))
}

/** Words of what is told in words first: a class that says little about why may have a cause that says more. */
function byText(layers: readonly Failure[]): Classification | undefined {
  const telling = layers.filter((layer) => !weakNames.has(layer.name))
  return first(telling, byMessage) ?? first(telling, byCodeWords) ?? first(layers, byWeakName)
}

/** "channel_not_found" and "RequestTimeout" say something, though nobody has listed them. */
function byCodeWords({ code = '' }: Failure): Classification | undefined {
  const named = /[a-z]{3}/i.test(code) ? byClassName(code) : undefined
  return named && { ...named, rule: `code:${code}` }
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

const compilerError = /\berror TS\d{4,5}:/

function byMessage(failure: Failure): Classification | undefined {
  const text = failure.message.slice(0, maxText)
  const compiler = compilerError.exec(text)
  if (compiler)
    return found(`message:${compiler[0]}`, judgement('permanent', 'medium', 'recoverable'))
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
