import type { Payload } from './letter.ts'
import { decodeText, kindOf } from './payload.ts'

const maxViewDepth = 100

/**
 * Formats a payload for people: indented JSON, text as it is, other bytes as a hex dump. Hidden
 * characters are escaped, long payloads are cut with a mark. JSON is not parsed, so numbers, order
 * and duplicate keys appear as they were sent. Reads no more bytes than it shows. Never throws.
 */
export function viewPayload(
  payload: Pick<Payload, 'bytes' | 'contentType'>,
  maxChars: number,
): string {
  try {
    return view(payload, Math.min(Math.max(Math.trunc(maxChars) || 0, 0), 2 ** 24))
  } catch {
    return '[a payload that cannot be displayed]'
  }
}

function view(payload: Pick<Payload, 'bytes' | 'contentType'>, maxChars: number): string {
  const { bytes, contentType } = payload
  const kind = kindOf(contentType)
  if (kind === 'bytes') return hexDump(bytes, maxChars)
  const window = bytes.subarray(0, maxChars * 4 + 4)
  const whole = window.length === bytes.length
  let text: string
  try {
    text = decodeText(window, contentType, !whole)
  } catch {
    return hexDump(bytes, maxChars)
  }
  const formatted = escapeHidden(kind === 'text' ? text : indent(text, maxChars))
  if (whole && formatted.length <= maxChars) return formatted
  return formatted.slice(0, maxChars).toWellFormed() + cutMark(bytes)
}

function cutMark(bytes: Uint8Array): string {
  return `… [cut, ${bytes.length} bytes in total]`
}

const tab = 0x09
const newline = 0x0a
const hidden = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Cs}]/gu

/**
 * Escapes characters that a terminal or browser would interpret or hide: control, format and
 * direction characters, except tab and newline.
 */
export function escapeHidden(text: string): string {
  return text.replace(hidden, (char) => {
    const code = char.codePointAt(0)!
    if (code === tab || code === newline) return char
    return code > 0xffff ? `\\u{${code.toString(16)}}` : `\\u${code.toString(16).padStart(4, '0')}`
  })
}

const token = /"[^"\\]*(?:\\.?[^"\\]*)*"?|[{}[\],:]|[^\s"{}[\],:]+/gsu

/** Indents JSON without parsing it, so that depth and numbers cannot cause errors. */
function indent(text: string, maxChars: number): string {
  let out = ''
  let depth = 0
  let last = ''
  const put = (part: string, breaks: boolean): void => {
    if (breaks) out += `\n${'  '.repeat(Math.max(0, depth))}`
    out += part === ':' ? ': ' : part
    last = part
  }
  for (const [part] of text.matchAll(token)) {
    const opens = part === '{' || part === '['
    const closes = part === '}' || part === ']'
    if (closes) depth -= 1
    const opened = last === '{' || last === '['
    if (depth < maxViewDepth) put(part, closes ? !opened : opened || last === ',')
    else if (depth === maxViewDepth && opens) put(`… [deeper than ${maxViewDepth} levels]`, true)
    else if (depth === maxViewDepth && !closes) put(part, opened || last === ',')
    if (opens) depth += 1
    if (out.length > maxChars) break
  }
  return out
}

const perRow = 16

/** Offset, bytes, and printable characters. */
function hexDump(bytes: Uint8Array, maxChars: number): string {
  const rows: string[] = []
  let chars = 0
  for (let at = 0; at < bytes.length && chars <= maxChars; at += perRow) {
    const row = [...bytes.subarray(at, at + perRow)]
    const hex = row.map((byte) => byte.toString(16).padStart(2, '0')).join(' ')
    const text = row.map((byte) => (byte >= 0x20 && byte < 0x7f ? String.fromCharCode(byte) : '.'))
    const line = `${at.toString(16).padStart(8, '0')}  ${hex.padEnd(perRow * 3)} ${text.join('')}`
    chars += line.length + 1
    rows.push(line)
  }
  const dump = rows.join('\n')
  const whole = dump.length <= maxChars && rows.length * perRow >= bytes.length
  return whole ? dump : dump.slice(0, maxChars) + cutMark(bytes)
}
