import type { Json } from './letter.ts'

const mask = '[masked]'

/** Names, without separators, of values that are secrets. */
const secretName =
  /password|passwd|passphrase|^pwd$|secret|token|authorization|^auth$|apikey|accesskey|privatekey|credential|cookie|sessionid|signature|^jwt$|^cv[vc]2?$|^pin$|cardnumber|^ssn$/

/** Whether a key or a header with this name usually has a secret value. */
export function isSecretName(name: string): boolean {
  return secretName.test(name.toLowerCase().replaceAll(/[-_.\s]/g, ''))
}

/** A copy in which the values of secret names are masked, and secrets in strings. */
export function redactJson(value: Json): Json {
  if (typeof value === 'string') return redactText(value)
  if (typeof value !== 'object' || value === null) return value
  if (Array.isArray(value)) return value.map(redactJson)
  const entries = Object.entries(value).map(([name, inner]): [string, Json] => [
    name,
    isSecretName(name) && !isEmpty(inner) ? mask : redactJson(inner),
  ])
  return Object.fromEntries(entries)
}

function isEmpty(value: Json): boolean {
  return value === null || value === '' || typeof value === 'boolean'
}

const assignment =
  /([\w.-]{0,40}(?:password|passwd|passphrase|pwd|secret|token|api[-_]?key|access[-_]?key|authorization|cookie)[\w.-]{0,40}["']?\s{0,3}[:=]\s{0,3})(?:"[^"]*"|'[^']*'|(?:(?:bearer|basic)\s+)?[^\s"'&;,)}\]]+)/gi
const scheme = /\b(bearer|basic)\s+[\w.~+/=-]{8,}/gi
const userInfo = /(\b[a-z][a-z\d+.-]{0,20}:\/\/)[^\s/@]{1,300}@/gi

/** The string with secrets masked: `token=…`, `Bearer …`, and the user of a URL. */
export function redactText(text: string): string {
  return text
    .replaceAll(assignment, `$1${mask}`)
    .replaceAll(scheme, `$1 ${mask}`)
    .replaceAll(userInfo, `$1${mask}@`)
}
