/*
 * Postgres rejects NUL in text, and its UTF-8 has no lone surrogates. Names may contain both. They
 * are escaped, so that the original string is restored; other strings are stored unchanged.
 */
const escape = '\u0010'
// oxlint-disable-next-line no-control-regex -- control characters are the point
const odd = /[\0\u0010]|[\ud800-\udbff](?![\udc00-\udfff])|(?<![\ud800-\udbff])[\udc00-\udfff]/g
// oxlint-disable-next-line no-control-regex -- likewise
const escaped = /\u0010([0-9a-f]{4})/g

/** Escapes a string for Postgres. */
export function toText(text: string): string {
  if (text.isWellFormed() && !text.includes('\0') && !text.includes(escape)) return text
  return text.replace(odd, (unit) => escape + unit.charCodeAt(0).toString(16).padStart(4, '0'))
}

/** The original string of `toText`. */
export function fromText(kept: string): string {
  if (!kept.includes(escape)) return kept
  return kept.replace(escaped, (_, code: string) => String.fromCharCode(Number.parseInt(code, 16)))
}
