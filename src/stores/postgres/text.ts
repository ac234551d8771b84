/*
 * Postgres rejects NUL in text, and its UTF-8 has no lone surrogates. Names may contain both. They
 * are escaped, so that the original string is restored; other strings are stored unchanged. The
 * separators of lists are escaped too.
 */
const escape = '\u0010'
// oxlint-disable-next-line no-control-regex -- control characters are the point
const reserved = /[\0\u0010\u001d\u001e]/
const odd =
  // oxlint-disable-next-line no-control-regex -- likewise
  /[\0\u0010\u001d\u001e]|[\ud800-\udbff](?![\udc00-\udfff])|(?<![\ud800-\udbff])[\udc00-\udfff]/g
// oxlint-disable-next-line no-control-regex -- likewise
const escaped = /\u0010([0-9a-f]{4})/g

/** Escapes a string for Postgres. */
export function toText(text: string): string {
  if (text.isWellFormed() && !reserved.test(text)) return text
  return text.replace(odd, (unit) => escape + unit.charCodeAt(0).toString(16).padStart(4, '0'))
}

/** The original string of `toText`. */
export function fromText(kept: string): string {
  if (!kept.includes(escape)) return kept
  return kept.replace(escaped, (_, code: string) => String.fromCharCode(Number.parseInt(code, 16)))
}

/** Escapes a string as in JSON, without quotes: a statement can put it into a line of history. */
export function toJsonText(text: string): string {
  return JSON.stringify(text).slice(1, -1)
}

/** The original string of `toJsonText`. */
export function fromJsonText(kept: string): string {
  return kept.includes('\\') ? (JSON.parse(`"${kept}"`) as string) : kept
}

/*
 * A list of strings is sent as one string with separators, which `string_to_array` splits: an array
 * would have to be quoted, and JSON to be parsed. No string of a list contains the separators:
 * `toText` escapes them, and JSON escapes all control characters.
 */
const separator = '\u001e'
const nothing = '\u001d'

/** Whether a string with UTF-8 bytes can be an item of a list. */
export function isListable(bytes: Uint8Array): boolean {
  return !bytes.includes(0) && !bytes.includes(0x1d) && !bytes.includes(0x1e)
}

/** A list of strings as one parameter. Null if it has only nulls. */
export function joinTexts<T>(
  items: readonly T[],
  value: (item: T) => string | null,
): string | null {
  let joined = ''
  let hasValue = false
  for (let n = 0; n < items.length; n++) {
    const text = value(items[n]!)
    if (text !== null) hasValue = true
    joined += (n > 0 ? separator : '') + (text ?? nothing)
  }
  // An empty string would be split into no item; the row of the item after it has no id.
  return hasValue ? joined || separator : null
}

/** SQL for the array of a list that `joinTexts` made. */
export const splitTexts = (param: string): string =>
  `string_to_array(${param}::text, E'\\x1e', E'\\x1d')`

/** A list of numbers or ids as one parameter. Null if it has only nulls. */
export function joinNumbers<T>(
  items: readonly T[],
  value: (item: T) => number | string | boolean | null,
): string | null {
  let joined = ''
  let hasValue = false
  for (let n = 0; n < items.length; n++) {
    const one = value(items[n]!)
    if (one !== null) hasValue = true
    joined += `${n > 0 ? ',' : ''}${one ?? 'NULL'}`
  }
  return hasValue ? `{${joined}}` : null
}

/** A list of ids as one parameter. */
export const joinIds = (ids: readonly string[]): string => `{${ids.join()}}`
