import type { Failure } from '../letter/letter.ts'
import { layersOf } from './layers.ts'
import { maxText } from './rule.ts'

/** Puts letters into a group of your choice. The first rule that matches is used. */
export interface FingerprintRule {
  match: FingerprintMatch
  /**
   * The fingerprint. `{queue}`, `{name}`, `{code}` and `{status}` are replaced by the values of the
   * failure, or by "none".
   */
  fingerprint: string
}

/** All given fields must match; `name`, `code` and `message` the same failure, or a cause of it. */
export interface FingerprintMatch {
  queue?: string
  /** Name of the error. */
  name?: string
  code?: string
  /** A pattern or a case-insensitive string in the first 1,024 characters of the message. */
  message?: RegExp | string
}

const placeholders = ['queue', 'name', 'code', 'status'] as const
type Placeholder = (typeof placeholders)[number]

/** Longer fingerprints are cut: they are keys in every store. */
const maxFingerprint = 200

/** The result of the first rule that matches. */
export function applyRules(
  rules: readonly FingerprintRule[],
  queue: string,
  failure: Failure,
): string | undefined {
  for (const { match, fingerprint } of rules) {
    if (match.queue !== undefined && match.queue !== queue) continue
    const found = layersOf(failure).find((layer) => holds(match, layer))
    if (found) return fillIn(fingerprint, queue, found)
  }
  return undefined
}

/** The first placeholder that is unknown. */
export function unknownPlaceholder(template: string): string | undefined {
  const names = [...template.matchAll(/\{([^{}]*)\}/g)].map(([, name]) => name!)
  return names.find((name) => !(placeholders as readonly string[]).includes(name))
}

function holds({ name, code, message }: FingerprintMatch, failure: Failure): boolean {
  if (name !== undefined && failure.name !== name) return false
  if (code !== undefined && failure.code !== code) return false
  if (message === undefined) return true
  const text = failure.message.slice(0, maxText)
  if (typeof message === 'string') return text.toLowerCase().includes(message.toLowerCase())
  message.lastIndex = 0
  return message.test(text)
}

function fillIn(template: string, queue: string, { name, code, status }: Failure): string {
  const values: Record<Placeholder, string> = {
    queue,
    name,
    code: code ?? 'none',
    status: status === undefined ? 'none' : String(status),
  }
  return template
    .replace(/\{(queue|name|code|status)\}/g, (_, key: Placeholder) => values[key])
    .slice(0, maxFingerprint)
    .toWellFormed()
}
