import type { Payload } from '../../letter/letter.ts'
import { decodeText, kindOf } from '../../letter/payload.ts'

/** How much of a payload can be searched. */
const maxBytes = 32 * 1024

/**
 * The text of a payload that is JSON or text. Undefined for others, for encrypted ones, and for
 * invalid ones.
 */
export function payloadText({ bytes, contentType, keyId }: Payload): string | undefined {
  if (keyId !== undefined || bytes.length === 0 || kindOf(contentType) === 'bytes') return undefined
  try {
    const text = decodeText(bytes.subarray(0, maxBytes), contentType, bytes.length > maxBytes)
    return text.toWellFormed()
  } catch {
    return undefined
  }
}
