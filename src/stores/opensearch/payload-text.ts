import type { Payload } from '../../letter/letter.ts'
import { decodeText, kindOf } from '../../letter/payload.ts'

/** Maximum number of bytes of a payload that can be searched. */
const maxBytes = 32 * 1024

/** Decodes JSON or text. Undefined if the payload has another type, is encrypted or invalid. */
export function decodePayloadText({ bytes, contentType, keyId }: Payload): string | undefined {
  if (keyId !== undefined || bytes.length === 0 || kindOf(contentType) === 'bytes') return undefined
  try {
    const text = decodeText(bytes.subarray(0, maxBytes), contentType, bytes.length > maxBytes)
    return text.toWellFormed()
  } catch {
    return undefined
  }
}
