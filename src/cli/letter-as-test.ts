import type { DeadLetter, Json, Payload } from '../letter/letter.ts'
import { decodeText, kindOf } from '../letter/payload.ts'
import { redactJson, redactText } from '../letter/redact.ts'

/**
 * A vitest file with the payload, headers and failure of a letter. It runs as it is printed: the
 * handler is a placeholder that fails as the real one did. Secrets are masked, except in bytes.
 */
export function formatAsTest(letter: DeadLetter): string {
  const { id, queue, failure, headers = {} } = letter
  const { name, code, status } = failure
  const known = {
    name,
    ...(code === undefined ? {} : { code }),
    ...(status === undefined ? {} : { status }),
  }
  const { value, imports, notes } = formatPayload(letter.payload)
  const message = redactText(failure.message)
  return [
    `// Letter ${toLiteral(id)} of queue ${toLiteral(queue)}, dead-lettered at ${letter.deadLetteredAt}.`,
    '// Values that look like secrets are replaced by "[masked]".',
    ...notes,
    "import { expect, it } from 'vitest'",
    ...imports,
    '',
    `const payload: unknown = ${value}`,
    `const headers: Record<string, string> = ${toLiteral(redactJson(headers))}`,
    `const message: string = ${toLiteral(message)}`,
    `const failure = ${toLiteral(redactJson(known))}`,
    '',
    '// Call the code that failed here. The test passes while the failure occurs.',
    '// After the fix, expect it to resolve: await expect(handle(payload, headers)).resolves…',
    'async function handle(_payload: unknown, _headers: Record<string, string>): Promise<unknown> {',
    '  throw Object.assign(new Error(message), failure)',
    '}',
    '',
    `it(${toLiteral(`fails like letter ${id}`)}, async () => {`,
    '  await expect(handle(payload, headers)).rejects.toMatchObject(failure)',
    '})',
  ].join('\n')
}

interface FormattedPayload {
  /** The payload as an expression. */
  value: string
  imports: string[]
  notes: string[]
}

function formatPayload(payload: Payload): FormattedPayload {
  const { bytes, contentType, reference } = payload
  const notes =
    reference === undefined ? [] : [`// The payload is only a reference: ${toLiteral(reference)}`]
  const kind = kindOf(contentType)
  const text = kind === 'bytes' ? undefined : tryDecode(payload)
  if (text === undefined) {
    const base64 = Buffer.from(bytes).toString('base64')
    return {
      value: `Buffer.from(${toLiteral(base64)}, 'base64')`,
      imports: [],
      notes: [...notes, '// The payload is bytes: secrets in it are not masked.'],
    }
  }
  const document = kind === 'text' ? undefined : tryParse(text)
  if (document === undefined) return { value: toLiteral(redactText(text)), imports: [], notes }
  const redacted = redactJson(document.value)
  if (kind === 'json') return { value: toLiteral(redacted), imports: [], notes }
  const json = toLiteral(JSON.stringify(redacted))
  return {
    value: `decodePayload({ bytes: Buffer.from(${json}), contentType: ${toLiteral(contentType)} })`,
    imports: ["import { decodePayload } from 'redrive'"],
    notes,
  }
}

function tryDecode({ bytes, contentType }: Payload): string | undefined {
  try {
    return decodeText(bytes, contentType)
  } catch {
    return undefined
  }
}

function tryParse(text: string): { value: Json } | undefined {
  try {
    return { value: JSON.parse(text.replace(/^\ufeff/, '')) as Json }
  } catch {
    return undefined
  }
}

const hidden = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu

/**
 * A value as an expression on one or more lines. Line breaks of its strings and characters that an
 * editor hides are escaped. In a literal, the key `__proto__` would set the prototype.
 */
function toLiteral(value: Json): string {
  const json = JSON.stringify(value, null, typeof value === 'object' ? 2 : undefined)
  if (typeof value === 'object' && /"(?:_|\\u005f){2}proto/i.test(json))
    return `JSON.parse(${toLiteral(JSON.stringify(value))})`
  return json.replaceAll(hidden, (char) =>
    char === '\n' ? char : `\\u{${char.codePointAt(0)!.toString(16)}}`,
  )
}
