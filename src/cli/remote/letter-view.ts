import type { LetterView } from '../../api/schemas/letter.ts'
import type { DeadLetter } from '../../letter/letter.ts'

/**
 * The letter that a server has shown. A server sends a JSON payload as a value, so that its white
 * space is lost, and leaves out what the caller may not read.
 */
export function toLetter(view: LetterView): DeadLetter {
  const { hidden: _, payload, ...letter } = view
  const { json: _json, text: _text, base64: _base64, ...facts } = payload
  return { ...letter, payload: { ...facts, bytes: bytesOf(payload) } }
}

function bytesOf({ json, text, base64 }: LetterView['payload']): Buffer {
  if (json !== undefined) return Buffer.from(JSON.stringify(json))
  return text === undefined ? Buffer.from(base64 ?? '', 'base64') : Buffer.from(text)
}
