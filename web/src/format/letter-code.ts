import type { LetterView } from 'redrive/api'
import { firstLine } from './text.ts'

type Copied = Pick<LetterView, 'queue' | 'payload' | 'failure' | 'headers' | 'tenant' | 'id'>

/**
 * A test that runs the handler of the queue with the payload of the letter. All values of the
 * letter are inside string literals, so none of them can become code.
 */
export function toTest(letter: Copied): string {
  const { queue, failure, id } = letter
  const title = `handles the payload of letter ${id}`
  return `import { expect, it } from 'vitest'
import { handler } from './handler.ts' // The handler of ${toComment(queue)}

// It failed with ${toComment(`${failure.name}: ${firstLine(failure.message)}`)}
it(${toLiteral(title)}, async () => {
  const payload = ${payloadCode(letter.payload)}
  await expect(handler(payload)).resolves.not.toThrow()
})
`
}

/** A command that captures the failure again over HTTP. The shell sees only quoted strings. */
export function toCurl(letter: Copied, origin: string): string {
  const { queue, payload, failure, headers, tenant } = letter
  const { name, message, code, status } = failure
  const body = {
    queue,
    ...payloadInput(payload),
    error: {
      name,
      message,
      ...(code === undefined ? {} : { code }),
      ...(status === undefined ? {} : { status }),
    },
    ...(headers === undefined ? {} : { headers }),
    ...(tenant === undefined ? {} : { tenant }),
  }
  return [
    `curl ${quoteShell(`${origin}/api/capture`)}`,
    `-H "Authorization: Bearer $REDRIVE_TOKEN"`,
    `-H 'Content-Type: application/json'`,
    `--data-binary ${quoteShell(JSON.stringify(body))}`,
  ].join(' \\\n  ')
}

function payloadInput({ json, text, base64, contentType }: Copied['payload']): object {
  if (json !== undefined) return { json }
  if (text !== undefined) return { text, contentType }
  return base64 === undefined ? {} : { base64, contentType }
}

function payloadCode({ json, text, base64 }: Copied['payload']): string {
  if (json !== undefined) return `JSON.parse(${toLiteral(JSON.stringify(json))})`
  if (text !== undefined) return toLiteral(text)
  return base64 === undefined ? 'undefined' : `Buffer.from(${toLiteral(base64)}, 'base64')`
}

/** A string literal of JavaScript in single quotes. */
function toLiteral(text: string): string {
  const escaped = JSON.stringify(text.toWellFormed())
    .slice(1, -1)
    .replaceAll('\\"', '"')
    .replaceAll("'", "\\'")
    .replaceAll('\u2028', '\\u2028')
    .replaceAll('\u2029', '\\u2029')
  return `'${escaped}'`
}

const maxComment = 200

/** Text for the rest of a line comment: no character in it can end the line. */
function toComment(text: string): string {
  return text
    .slice(0, maxComment)
    .toWellFormed()
    .replaceAll(/[\p{Cc}\p{Zl}\p{Zp}]+/gu, ' ')
}

/** A word of a POSIX shell that stands for exactly this text. */
export function quoteShell(text: string): string {
  return `'${text.replaceAll("'", `'\\''`)}'`
}
